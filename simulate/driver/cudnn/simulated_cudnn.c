/* The parts of cuDNN whose results PyTorch uses: versions, recurrent networks (cuDNN determines the
 * layout of their weights), dropout states, and one plan for every convolution. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "batch_norm_workspace.h"
#include "cudnn_api.h"
#include "rnn_workspace.h"
#include "wheel_versions.h"

struct cudnnRNNStruct {
    struct rnn_shape shape; /* without steps and batch */
    int bias_sets;
    cudnnDataType_t type;
};

struct cudnnRNNDataStruct {
    size_t steps, batch;
};

struct cudnnTensorStruct {
    cudnnDataType_t type;
    int dimensions, sizes[8], strides[8];
};

size_t cudnnGetVersion(void)
{
    return (size_t)sim_cudnn_version();
}

size_t cudnnGetCudartVersion(void)
{
    return (size_t)sim_cuda_version();
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value)
{
    int version = sim_cudnn_version();
    *value = type == MAJOR_VERSION   ? version / 10000
             : type == MINOR_VERSION ? version / 100 % 100
                                     : version % 100;
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    (void)status;
    return "simulated cuDNN";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    if (size > 0)
        message[0] = '\0';
}

static cudnnStatus_t create(void **made, size_t size)
{
    *made = calloc(1, size);
    return *made != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

/* ---- tensors */

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *desc)
{
    return create((void **)desc, sizeof **desc);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc)
{
    free(desc);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type,
                                         int dimensions, const int sizes[], const int strides[])
{
    if (dimensions > 8)
        return CUDNN_STATUS_NOT_SUPPORTED;
    desc->type = type;
    desc->dimensions = dimensions;
    memcpy(desc->sizes, sizes, (size_t)dimensions * sizeof sizes[0]);
    memcpy(desc->strides, strides, (size_t)dimensions * sizeof strides[0]);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t desc, int room,
                                         cudnnDataType_t *type, int *dimensions, int sizes[],
                                         int strides[])
{
    int count = desc->dimensions < room ? desc->dimensions : room;
    *type = desc->type;
    *dimensions = desc->dimensions;
    memcpy(sizes, desc->sizes, (size_t)count * sizeof sizes[0]);
    memcpy(strides, desc->strides, (size_t)count * sizeof strides[0]);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- recurrent networks: all matrices, layer by layer, then all biases */

static size_t element_bytes(cudnnDataType_t type)
{
    return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

static int gates_of(cudnnRNNMode_t mode)
{
    return mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1;
}

static int bias_sets_of(cudnnRNNBiasMode_t mode)
{
    return mode == CUDNN_RNN_NO_BIAS ? 0 : mode == CUDNN_RNN_DOUBLE_BIAS ? 2 : 1;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *desc)
{
    return create((void **)desc, sizeof **desc);
}

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t desc)
{
    free(desc);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t desc, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t math, int32_t input_size,
                                       int32_t hidden_size, int32_t projected, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    (void)input, (void)precision, (void)math, (void)dropout, (void)flags;
    if (input_size < 1 || hidden_size < 1 || layers < 1 || projected < 0 || projected > hidden_size)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *desc = (struct cudnnRNNStruct){
        .shape = {.gates = gates_of(cell),
                  .layers = layers,
                  .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                  .input_size = input_size,
                  .hidden_size = hidden_size,
                  .projected_size = projected == 0 ? hidden_size : projected,
                  .element_bytes = element_bytes(type),
                  .is_persistent = algo != CUDNN_RNN_ALGO_STANDARD && type != CUDNN_DATA_BFLOAT16},
        .bias_sets = bias_sets_of(bias),
        .type = type};
    return CUDNN_STATUS_SUCCESS;
}

static size_t columns(const struct rnn_shape *rnn, int pseudo_layer, bool recurrent)
{
    if (recurrent)
        return (size_t)rnn->projected_size;
    if (pseudo_layer < rnn->directions)
        return (size_t)rnn->input_size;
    return (size_t)rnn->projected_size * (size_t)rnn->directions;
}

/* Layers are in order. Each has the matrices of its input and of its state, and a projection. */
static size_t matrices_before(const struct rnn_shape *rnn, int pseudo_layer)
{
    struct rnn_shape before = *rnn;
    before.layers = pseudo_layer / rnn->directions;
    size_t sum = before.layers > 0 ? sim_rnn_matrix_elements(&before) : 0;
    if (pseudo_layer % rnn->directions != 0) { /* the other direction in the same layer */
        before.layers++;
        sum += (sim_rnn_matrix_elements(&before) - sum) / 2;
    }
    return sum;
}

static size_t gate_biases(const struct cudnnRNNStruct *rnn)
{
    return (size_t)(rnn->bias_sets * rnn->shape.gates) * (size_t)rnn->shape.hidden_size;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t *bytes)
{
    (void)handle;
    size_t pseudo_layers = (size_t)rnn->shape.layers * (size_t)rnn->shape.directions;
    *bytes = rnn->shape.element_bytes *
             (sim_rnn_matrix_elements(&rnn->shape) + pseudo_layers * gate_biases(rnn));
    return CUDNN_STATUS_SUCCESS;
}

static void describe(cudnnTensorDescriptor_t desc, const struct cudnnRNNStruct *rnn, int rows,
                     size_t width)
{
    if (desc == NULL)
        return;
    int sizes[3] = {1, rows, (int)width};
    int strides[3] = {rows * (int)width, (int)width, 1};
    cudnnSetTensorNdDescriptor(desc, rnn->type, 3, sizes, strides);
}

static void *place(const void *space, size_t elements, const struct cudnnRNNStruct *rnn)
{
    return (char *)(uintptr_t)space + elements * rnn->shape.element_bytes;
}

/* The matrix after those of all gates, from the hidden state to the output; it has no bias. */
static void describe_projection(const struct cudnnRNNStruct *rnn, int pseudo_layer,
                                const void *space, cudnnTensorDescriptor_t matrix, void **matrix_at)
{
    size_t elements = (size_t)rnn->shape.hidden_size * (size_t)rnn->shape.projected_size;
    describe(matrix, rnn, rnn->shape.projected_size, (size_t)rnn->shape.hidden_size);
    if (matrix_at != NULL)
        *matrix_at = place(space, matrices_before(&rnn->shape, pseudo_layer + 1) - elements, rnn);
}

static void describe_gate(const struct cudnnRNNStruct *rnn, int pseudo_layer, const void *space,
                          int id, cudnnTensorDescriptor_t matrix, void **matrix_at)
{
    const struct rnn_shape *shape = &rnn->shape;
    bool recurrent = id >= shape->gates;
    size_t gate = (size_t)(id % shape->gates), hidden = (size_t)shape->hidden_size;
    size_t width = columns(shape, pseudo_layer, recurrent);
    size_t offset = matrices_before(shape, pseudo_layer) + gate * hidden * width;
    if (recurrent)
        offset += (size_t)shape->gates * hidden * columns(shape, pseudo_layer, false);
    describe(matrix, rnn, shape->hidden_size, width);
    if (matrix_at != NULL)
        *matrix_at = place(space, offset, rnn);
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      int32_t pseudo_layer, size_t space_bytes, const void *space,
                                      int32_t id, cudnnTensorDescriptor_t matrix, void **matrix_at,
                                      cudnnTensorDescriptor_t bias, void **bias_at)
{
    (void)handle, (void)space_bytes;
    if (id >= 2 * rnn->shape.gates) {
        describe_projection(rnn, pseudo_layer, space, matrix, matrix_at);
        if (bias_at != NULL)
            *bias_at = NULL;
        return CUDNN_STATUS_SUCCESS;
    }
    describe_gate(rnn, pseudo_layer, space, id, matrix, matrix_at);
    describe(bias, rnn, rnn->shape.hidden_size, 1);
    if (bias_at != NULL) {
        size_t offset = sim_rnn_matrix_elements(&rnn->shape) +
                        (size_t)pseudo_layer * gate_biases(rnn) +
                        (size_t)id * (size_t)rnn->shape.hidden_size;
        *bias_at = place(space, offset, rnn);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *desc)
{
    return create((void **)desc, sizeof **desc);
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t desc)
{
    free(desc);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t desc, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int width, const int lengths[], void *fill)
{
    (void)type, (void)layout, (void)width, (void)lengths, (void)fill;
    desc->steps = (size_t)steps;
    desc->batch = (size_t)batch;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t data,
                                        size_t *work_bytes, size_t *reserve_bytes)
{
    (void)handle;
    bool is_training = mode == CUDNN_FWD_MODE_TRAINING;
    struct rnn_shape shape = rnn->shape;
    shape.steps = data->steps;
    shape.batch = data->batch;
    *work_bytes = sim_rnn_workspace_bytes(&shape, is_training);
    if (reserve_bytes != NULL)
        *reserve_bytes = is_training ? sim_rnn_reserve_bytes(&shape) : 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes)
{
    (void)handle;
    *bytes = 1 << 20;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- batch normalization: no workspace unless the channels are last, as on an H200 */

static bool is_channels_last(const struct cudnnTensorStruct *x)
{
    return x != NULL && x->dimensions > 2 && x->strides[1] == 1;
}

static struct batch_norm norm_of(const struct cudnnTensorStruct *x)
{
    size_t rows = (size_t)x->sizes[0];
    for (int i = 2; i < x->dimensions; i++)
        rows *= (size_t)x->sizes[i];
    return (struct batch_norm){rows, (size_t)x->sizes[1], x->type == CUDNN_DATA_FLOAT};
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)z, (void)y, (void)scale, (void)activation;
    *bytes = 0;
    if (is_channels_last(x)) {
        struct batch_norm norm = norm_of(x);
        *bytes = sim_batch_norm_forward_bytes(&norm);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)y, (void)dy, (void)dz, (void)dx;
    (void)scale, (void)activation;
    *bytes = 0;
    if (is_channels_last(x)) {
        struct batch_norm norm = norm_of(x);
        *bytes = sim_batch_norm_backward_bytes(&norm);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)activation, (void)x;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}
