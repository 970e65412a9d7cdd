/* cuDNN as far as PyTorch looks at its answers: versions, recurrent networks
 * (whose weights it lays out by what cuDNN says), dropout states, and one plan
 * for every convolution. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_api.h"
#include "wheel_versions.h"

struct cudnnRNNStruct {
    int gates, layers, directions, bias_sets;
    int input_size, hidden_size;
    size_t element_bytes;
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
    if (size > 0) {
        message[0] = '\0';
    }
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
    if (dimensions > 8) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
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
    (void)algo, (void)input, (void)precision, (void)math, (void)dropout, (void)flags;
    if (projected != 0 && projected != hidden_size) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    *desc = (struct cudnnRNNStruct){.gates = gates_of(cell),
                                    .layers = layers,
                                    .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                                    .bias_sets = bias_sets_of(bias),
                                    .input_size = input_size,
                                    .hidden_size = hidden_size,
                                    .element_bytes = element_bytes(type),
                                    .type = type};
    return CUDNN_STATUS_SUCCESS;
}

static size_t columns(const struct cudnnRNNStruct *rnn, int pseudo_layer, bool recurrent)
{
    if (recurrent) {
        return (size_t)rnn->hidden_size;
    }
    return (size_t)(pseudo_layer < rnn->directions ? rnn->input_size
                                                   : rnn->hidden_size * rnn->directions);
}

static size_t layer_elements(const struct cudnnRNNStruct *rnn, int pseudo_layer)
{
    size_t rows = (size_t)rnn->gates * (size_t)rnn->hidden_size;
    return rows * (columns(rnn, pseudo_layer, false) + columns(rnn, pseudo_layer, true));
}

static size_t matrices_before(const struct cudnnRNNStruct *rnn, int pseudo_layer)
{
    size_t sum = 0;
    for (int i = 0; i < pseudo_layer; i++) {
        sum += layer_elements(rnn, i);
    }
    return sum;
}

static size_t bias_elements(const struct cudnnRNNStruct *rnn)
{
    return (size_t)(rnn->layers * rnn->directions * rnn->bias_sets * rnn->gates) *
           (size_t)rnn->hidden_size;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t *bytes)
{
    (void)handle;
    *bytes = rnn->element_bytes *
             (matrices_before(rnn, rnn->layers * rnn->directions) + bias_elements(rnn));
    return CUDNN_STATUS_SUCCESS;
}

static void describe(cudnnTensorDescriptor_t desc, const struct cudnnRNNStruct *rnn, size_t width)
{
    if (desc == NULL) {
        return;
    }
    int sizes[3] = {1, rnn->hidden_size, (int)width};
    int strides[3] = {rnn->hidden_size * (int)width, (int)width, 1};
    cudnnSetTensorNdDescriptor(desc, rnn->type, 3, sizes, strides);
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      int32_t pseudo_layer, size_t space_bytes, const void *space,
                                      int32_t id, cudnnTensorDescriptor_t matrix, void **matrix_at,
                                      cudnnTensorDescriptor_t bias, void **bias_at)
{
    (void)handle, (void)space_bytes;
    bool recurrent = id >= rnn->gates;
    size_t gate = (size_t)(id % rnn->gates), hidden = (size_t)rnn->hidden_size;
    size_t width = columns(rnn, pseudo_layer, recurrent);
    size_t offset = matrices_before(rnn, pseudo_layer) + gate * hidden * width;
    if (recurrent) {
        offset += (size_t)rnn->gates * hidden * columns(rnn, pseudo_layer, false);
    }
    describe(matrix, rnn, width);
    if (matrix_at != NULL) {
        *matrix_at = (char *)(uintptr_t)space + offset * rnn->element_bytes;
    }
    describe(bias, rnn, 1);
    if (bias_at != NULL) {
        size_t per_layer = (size_t)(rnn->bias_sets * rnn->gates) * hidden;
        offset = matrices_before(rnn, rnn->layers * rnn->directions) +
                 (size_t)pseudo_layer * per_layer + (size_t)id * hidden;
        *bias_at = (char *)(uintptr_t)space + offset * rnn->element_bytes;
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

/* Values of one step that backward needs beside the gates: the state of a cell, or the input of the
 * hidden part of a gate. As an H200 has it (cuDNN 9.19), to the byte, for the five shapes of each
 * kind of network that were tried. */
static size_t values_kept(const struct cudnnRNNStruct *rnn)
{
    return rnn->gates == 4 ? 5 : rnn->gates == 3 ? 6 : 1;
}

/* What is kept was measured. The workspace is a guess: 8 MiB for each layer and direction, a copy
 * of the weights, and the gates of all steps. For the fifteen networks that were tried, an H200
 * asked in training for between 5 % less and 31 % more. */
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t data,
                                        size_t *work_bytes, size_t *reserve_bytes)
{
    enum { ALIGNMENT_BYTES = 256, PARTITION_BYTES = 8 << 20 };
    size_t layers = (size_t)rnn->layers, directions = (size_t)rnn->directions;
    size_t outputs =
        data->steps * data->batch * (size_t)rnn->hidden_size * directions * rnn->element_bytes;
    size_t weights_bytes = 0;
    cudnnGetRNNWeightSpaceSize(handle, rnn, &weights_bytes);
    *work_bytes = layers * directions * PARTITION_BYTES + weights_bytes +
                  (size_t)rnn->gates * outputs + 2 * outputs;
    if (reserve_bytes != NULL) {
        *reserve_bytes = mode == CUDNN_FWD_MODE_TRAINING
                             ? (layers * values_kept(rnn) + layers - 1) * outputs + ALIGNMENT_BYTES
                             : 0;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes)
{
    (void)handle;
    *bytes = 1 << 20;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- batch normalization: nothing, as on an H200, unless the channels come last */

/* By channel, as an H200 asked for 64 channels (cuDNN 9.19); for other numbers a guess. */
enum { FORWARD_BYTES_OF_CHANNEL = 6338, BACKWARD_BYTES_OF_CHANNEL = 4201 };

static size_t batch_norm_bytes(const struct cudnnTensorStruct *x, size_t bytes_of_channel)
{
    bool channels_last = x != NULL && x->dimensions > 2 && x->strides[1] == 1;
    return channels_last ? (size_t)x->sizes[1] * bytes_of_channel : 0;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)z, (void)y, (void)scale, (void)activation;
    *bytes = batch_norm_bytes(x, FORWARD_BYTES_OF_CHANNEL);
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
    *bytes = batch_norm_bytes(x, BACKWARD_BYTES_OF_CHANNEL);
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
