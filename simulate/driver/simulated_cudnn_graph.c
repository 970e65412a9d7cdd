/* cuDNN's graphs: one engine and one plan for each. What a graph computes is followed from tensors
 * over operations, graph, engine and configuration to the plan, because the plan's workspace
 * depends on it. Descriptors copy what they are given: a program may destroy the first before it
 * uses the last. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_api.h"
#include "workspace_notes.h"

/* Attention of more than one query asks for this little beside what its parts need (H200, cuDNN
 * 9.19). */
enum { ATTENTION_BYTES = 256, QUERY_DIMENSION = 2 };

enum work { WORK_OTHER, WORK_CONVOLUTION, WORK_ATTENTION };

struct backend {
    cudnnBackendDescriptorType_t type;
    struct convolution_tensor tensor; /* of a tensor */
    struct convolution convolution;   /* of a convolution, and of what contains one */
    enum work work;
};

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *desc)
{
    struct backend *made = calloc(1, sizeof *made);
    *desc = made;
    if (made == NULL) {
        return CUDNN_STATUS_ALLOC_FAILED;
    }
    made->type = type;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
    free(desc);
    return CUDNN_STATUS_SUCCESS;
}

static int element_bytes(int data_type)
{
    enum { TYPE_HALF = 2, TYPE_BFLOAT16 = 9 };
    return data_type == CUDNN_DATA_DOUBLE                         ? 8
           : data_type == CUDNN_DATA_FLOAT                        ? 4
           : data_type == TYPE_HALF || data_type == TYPE_BFLOAT16 ? 2
                                                                  : 1;
}

/* COUNT numbers, as many as there is room for. */
static int take_numbers(int64_t *to, int64_t count, const void *elements)
{
    int64_t taken = count < MAX_CONVOLUTION_DIMENSIONS ? count : MAX_CONVOLUTION_DIMENSIONS;
    if (taken <= 0) {
        return 0;
    }
    memcpy(to, elements, (size_t)taken * sizeof to[0]);
    return (int)taken;
}

static const struct backend *other(const void *elements)
{
    return *(const struct backend *const *)elements;
}

static void take_geometry(struct convolution *to, const struct convolution *from)
{
    memcpy(to->stride, from->stride, sizeof to->stride);
    memcpy(to->padding, from->padding, sizeof to->padding);
    memcpy(to->dilation, from->dilation, sizeof to->dilation);
}

static enum convolution_kind kind_of(cudnnBackendDescriptorType_t type)
{
    return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? CONVOLUTION_DATA
           : type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
               ? CONVOLUTION_FILTER
               : CONVOLUTION_FORWARD;
}

static enum work work_of(cudnnBackendDescriptorType_t type)
{
    switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: return WORK_CONVOLUTION;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR: return WORK_ATTENTION;
    default: return WORK_OTHER;
    }
}

/* The first operation that says what it is about decides. */
static void take_operations(struct backend *graph, int64_t count, const void *elements)
{
    const struct backend *const *operations = elements;
    for (int64_t i = 0; i < count && graph->work == WORK_OTHER; i++) {
        graph->work = work_of(operations[i]->type);
        graph->convolution = operations[i]->convolution;
        graph->convolution.kind = kind_of(operations[i]->type);
    }
}

static void take_work(struct backend *to, const struct backend *from)
{
    to->work = from->work;
    to->convolution = from->convolution;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements)
{
    struct backend *d = desc;
    struct convolution *c = &d->convolution;
    (void)type;
    if (elements == NULL || count <= 0) {
        return CUDNN_STATUS_SUCCESS;
    }
    switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
        d->tensor.element_bytes = element_bytes(*(const int *)elements);
        break;
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
        d->tensor.dimensions = take_numbers(d->tensor.sizes, count, elements);
        break;
    case CUDNN_ATTR_TENSOR_STRIDES: take_numbers(d->tensor.strides, count, elements); break;
    case CUDNN_ATTR_CONVOLUTION_DILATIONS: take_numbers(c->dilation, count, elements); break;
    case CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES: take_numbers(c->stride, count, elements); break;
    case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS: take_numbers(c->padding, count, elements); break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC:
        take_geometry(c, &other(elements)->convolution);
        break;
    case CUDNN_ATTR_OPERATION_MATMUL_ADESC: /* the queries come first */
    case CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC:
    case CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X: c->x = other(elements)->tensor; break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW: c->w = other(elements)->tensor; break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY: c->y = other(elements)->tensor; break;
    case CUDNN_ATTR_OPERATIONGRAPH_OPS: take_operations(d, count, elements); break;
    case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINE_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: take_work(d, other(elements)); break;
    default: break;
    }
    return CUDNN_STATUS_SUCCESS;
}

static int64_t attention_bytes(const struct convolution_tensor *queries)
{
    bool several = queries->dimensions > QUERY_DIMENSION && queries->sizes[QUERY_DIMENSION] > 1;
    return several ? ATTENTION_BYTES : 0;
}

static int64_t convolution_bytes(const struct convolution *convolution)
{
    struct convolution_workspace workspace = sim_convolution_workspace(convolution);
    sim_note_workspace(workspace.source);
    return workspace.bytes;
}

static int64_t workspace_bytes(const struct backend *plan)
{
    return plan->work == WORK_CONVOLUTION ? convolution_bytes(&plan->convolution)
           : plan->work == WORK_ATTENTION ? attention_bytes(&plan->convolution.x)
                                          : 0;
}

/* A heuristic finds one configuration: the first of those that the caller brings. */
static void answer_descriptor(const struct backend *desc, cudnnBackendAttributeName_t name,
                              void *elements)
{
    struct backend *brought = *(struct backend **)elements;
    if (brought != NULL &&
        (name == CUDNN_ATTR_ENGINEHEUR_RESULTS || name == CUDNN_ATTR_ENGINECFG_ENGINE)) {
        take_work(brought, desc);
    }
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t *count, void *elements)
{
    bool wide = type == CUDNN_TYPE_INT64, number = wide || type == CUDNN_TYPE_INT32;
    bool one = number || type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
    if (count != NULL) {
        *count = name == CUDNN_ATTR_ENGINEHEUR_RESULTS || (one && requested > 0);
    }
    if (requested <= 0 || elements == NULL) {
        return CUDNN_STATUS_SUCCESS;
    }
    if (number) {
        memset(elements, 0, wide ? sizeof(int64_t) : sizeof(int32_t));
    }
    if (wide && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *(int64_t *)elements = workspace_bytes(desc);
    }
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        answer_descriptor(desc, name, elements);
    }
    return CUDNN_STATUS_SUCCESS;
}
