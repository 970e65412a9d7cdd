/* cuDNN's graphs: the plans of convolution_plans.h for a convolution, and one engine and one plan
 * for every other graph. The workspace of a plan depends on what its graph computes, so this
 * information is passed from tensors to operations, graph, engine, configuration and plan.
 * Descriptors copy their inputs, because a program may destroy the inputs before it uses the
 * descriptor. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "convolution_plans.h"
#include "cudnn_api.h"
#include "workspace_notes.h"

/* Attention with more than one query needs this workspace in addition to that of its parts. If
 * several heads of queries share one of keys, the backward pass first computes the gradients of
 * keys and values for each head of queries (H200, cuDNN 9.19: five shapes). */
enum {
    ATTENTION_BYTES = 256,
    HEADS = 1,
    QUERIES = 2,
    WIDTH = 3,
    KEYS = 3,
    ATTENTION_DIMENSIONS = 4
};
enum { FORWARD_PRODUCTS = 2 }; /* the backward pass has more products of matrices */

enum work { WORK_OTHER, WORK_CONVOLUTION, WORK_ATTENTION };

struct backend {
    cudnnBackendDescriptorType_t type;
    struct convolution_tensor tensor; /* of a tensor */
    struct convolution convolution;   /* of a convolution, and of a descriptor that contains one */
    enum work work;
    int64_t operations, products;    /* of a graph, and products of matrices among them */
    struct convolution_plans *plans; /* of heuristics; NULL: not queried yet */
    struct convolution_plan plan;    /* of a configuration, its engine and its plan */
    bool has_plan;
    bool falls_back; /* heuristics that return only engines that always work */
};

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *desc)
{
    struct backend *made = calloc(1, sizeof *made);
    *desc = made;
    if (made == NULL)
        return CUDNN_STATUS_ALLOC_FAILED;
    made->type = type;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
    struct backend *d = desc;
    if (d != NULL)
        free(d->plans);
    free(d);
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

/* Copies as many of COUNT numbers as there is room for. */
static int take_numbers(int64_t *to, int64_t count, const void *elements)
{
    int64_t taken = count < MAX_CONVOLUTION_DIMENSIONS ? count : MAX_CONVOLUTION_DIMENSIONS;
    if (taken <= 0)
        return 0;
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
    memcpy(to->post_padding, from->post_padding, sizeof to->post_padding);
    memcpy(to->dilation, from->dilation, sizeof to->dilation);
    to->compute_type = from->compute_type;
    to->mode = from->mode;
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

/* The first operation with a known kind determines the result. */
static void take_operations(struct backend *graph, int64_t count, const void *elements)
{
    const struct backend *const *operations = elements;
    graph->operations = count;
    graph->products = 0;
    for (int64_t i = 0; i < count; i++)
        graph->products += operations[i]->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
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
    to->operations = from->operations;
    to->products = from->products;
    to->plan = from->plan;
    to->has_plan = from->has_plan;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements)
{
    struct backend *d = desc;
    struct convolution *c = &d->convolution;
    (void)type;
    if (elements == NULL || count <= 0)
        return CUDNN_STATUS_SUCCESS;
    switch (name) {
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
        d->tensor.alignment_bytes = *(const int64_t *)elements;
        break;
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
        d->tensor.data_type = *(const int *)elements;
        d->tensor.element_bytes = element_bytes(d->tensor.data_type);
        break;
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
        d->tensor.dimensions = take_numbers(d->tensor.sizes, count, elements);
        break;
    case CUDNN_ATTR_TENSOR_STRIDES: take_numbers(d->tensor.strides, count, elements); break;
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE: c->compute_type = *(const int *)elements; break;
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE: c->mode = *(const int *)elements; break;
    case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS:
        take_numbers(c->post_padding, count, elements);
        break;
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
    case CUDNN_ATTR_OPERATION_MATMUL_BDESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW: c->w = other(elements)->tensor; break;
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY: c->y = other(elements)->tensor; break;
    case CUDNN_ATTR_OPERATIONGRAPH_OPS: take_operations(d, count, elements); break;
    case CUDNN_ATTR_ENGINEHEUR_MODE:
        d->falls_back = *(const int *)elements == CUDNN_HEUR_MODE_FALLBACK;
        break;
    case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINE_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: take_work(d, other(elements)); break;
    default: break;
    }
    return CUDNN_STATUS_SUCCESS;
}

static int64_t attention_bytes(const struct backend *plan)
{
    const struct convolution_tensor *queries = &plan->convolution.x, *keys = &plan->convolution.w;
    if (queries->dimensions <= QUERIES || queries->sizes[QUERIES] <= 1)
        return 0;
    if (plan->products <= FORWARD_PRODUCTS || queries->dimensions != ATTENTION_DIMENSIONS ||
        keys->dimensions != ATTENTION_DIMENSIONS || keys->sizes[HEADS] >= queries->sizes[HEADS])
        return ATTENTION_BYTES;
    return ATTENTION_BYTES + 2 * queries->sizes[0] * queries->sizes[HEADS] * queries->sizes[WIDTH] *
                                 keys->sizes[KEYS] * queries->element_bytes;
}

/* Without a plan, the graph has more than a convolution, or the program selected the engine by its
 * number. */
static struct convolution_workspace workspace_of(const struct backend *desc)
{
    return desc->has_plan ? desc->plan.workspace : sim_workspace_unasked(&desc->convolution);
}

static int64_t convolution_bytes(const struct backend *plan)
{
    struct convolution_workspace workspace = workspace_of(plan);
    sim_note_workspace(workspace, sim_convolution_operand_bytes(&plan->convolution));
    return workspace.bytes;
}

static int64_t workspace_bytes(const struct backend *plan)
{
    return plan->work == WORK_CONVOLUTION ? convolution_bytes(plan)
           : plan->work == WORK_ATTENTION ? attention_bytes(plan)
                                          : 0;
}

static bool is_one_convolution(const struct backend *desc)
{
    return desc->work == WORK_CONVOLUTION && desc->operations == 1;
}

/* NULL: one configuration without known properties. */
static const struct convolution_plans *plans_of(struct backend *heuristics)
{
    if (heuristics->plans == NULL && is_one_convolution(heuristics) && !heuristics->falls_back) {
        heuristics->plans = calloc(1, sizeof *heuristics->plans);
        if (heuristics->plans != NULL)
            sim_convolution_plans(&heuristics->convolution, heuristics->plans);
    }
    return heuristics->plans;
}

/* Returns the number of available items if the caller requests none. */
static int64_t answer_heuristics(struct backend *desc, int64_t requested, void *elements)
{
    const struct convolution_plans *plans = plans_of(desc);
    struct backend **brought = elements;
    int64_t there = plans != NULL ? plans->count : 1;
    int64_t count = requested > 0 && requested < there ? requested : there;
    for (int64_t i = 0; i < count && requested > 0 && elements != NULL; i++) {
        if (brought[i] != NULL) {
            take_work(brought[i], desc);
            brought[i]->has_plan = plans != NULL;
            brought[i]->plan = plans != NULL ? plans->plans[i] : brought[i]->plan;
        }
    }
    return count;
}

static int64_t answer_notes(const struct backend *engine, int64_t requested, void *elements)
{
    enum { MASK_BITS = 32 };
    int64_t count = 0;
    for (int note = 0; engine->has_plan && note < MASK_BITS; note++) {
        if ((engine->plan.numerical_notes >> note & 1) == 0)
            continue;
        if (elements != NULL && count < requested)
            ((int *)elements)[count] = note;
        count++;
    }
    return requested > 0 && count > requested ? requested : count;
}

static int64_t number_of(const struct backend *desc, cudnnBackendAttributeName_t name)
{
    switch (name) {
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: return workspace_bytes(desc);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
        return is_one_convolution(desc) ? workspace_of(desc).bytes : 0;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: return desc->plan.engine;
    default: return 0;
    }
}

static void answer_engine(const struct backend *desc, void *elements)
{
    struct backend *brought = *(struct backend **)elements;
    if (brought != NULL)
        take_work(brought, desc);
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t *count, void *elements)
{
    bool wide = type == CUDNN_TYPE_INT64, number = wide || type == CUDNN_TYPE_INT32;
    bool wanted = requested > 0 && elements != NULL;
    int64_t there = (number || type == CUDNN_TYPE_BACKEND_DESCRIPTOR) && requested > 0;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        there = answer_heuristics(desc, requested, elements);
    else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
        there = answer_notes(desc, requested, elements);
    else if (name == CUDNN_ATTR_ENGINECFG_ENGINE && wanted)
        answer_engine(desc, elements);
    else if (wanted && wide)
        *(int64_t *)elements = number_of(desc, name);
    else if (wanted && number)
        *(int32_t *)elements = 0;
    if (count != NULL)
        *count = there;
    return CUDNN_STATUS_SUCCESS;
}
