/* What the simulated cuDNN needs of cudnn.h (version 9), with the vendor's names. */
#ifndef MT_CUDNN_API_H
#define MT_CUDNN_API_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    CUDNN_STATUS_SUCCESS = 0,
    CUDNN_STATUS_NOT_SUPPORTED = 3000,
    CUDNN_STATUS_ALLOC_FAILED = 4003
} cudnnStatus_t;

typedef enum { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_DOUBLE = 1 } cudnnDataType_t;
typedef enum { CUDNN_LSTM = 2, CUDNN_GRU = 3 } cudnnRNNMode_t;
typedef enum { CUDNN_RNN_NO_BIAS = 0, CUDNN_RNN_DOUBLE_BIAS = 2 } cudnnRNNBiasMode_t;
typedef enum { CUDNN_UNIDIRECTIONAL = 0, CUDNN_BIDIRECTIONAL = 1 } cudnnDirectionMode_t;
typedef enum { CUDNN_FWD_MODE_INFERENCE = 0, CUDNN_FWD_MODE_TRAINING = 1 } cudnnForwardMode_t;
typedef enum { MAJOR_VERSION = 0, MINOR_VERSION = 1, PATCH_LEVEL = 2 } libraryPropertyType;
typedef enum {
    CUDNN_TYPE_INT64 = 3,
    CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
    CUDNN_TYPE_INT32 = 23
} cudnnBackendAttributeType_t;
typedef enum { CUDNN_ATTR_ENGINEHEUR_RESULTS = 202 } cudnnBackendAttributeName_t;

/* Their values do not matter here. */
typedef int cudnnRNNAlgo_t, cudnnRNNInputMode_t, cudnnMathType_t, cudnnRNNDataLayout_t;
typedef int cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnBackendDescriptorType_t;

typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t;
typedef struct cudnnDropoutStruct *cudnnDropoutDescriptor_t;
typedef struct cudnnRNNStruct *cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct *cudnnRNNDataDescriptor_t;
typedef void *cudnnBackendDescriptor_t;

#endif
