/* The declarations of cuda_runtime_api.h that the simulated runtime needs, with the vendor's names.
 * If CUDA 12 and CUDA 13 have different layouts of a structure, both are here. */
#ifndef MT_RUNTIME_API_H
#define MT_RUNTIME_API_H

#include "cuda_api.h"

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorMissingConfiguration = 52,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorCapturedEvent = 907
} cudaError_t;

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUmemoryPool cudaMemPool_t;
typedef struct CUkern_st *cudaKernel_t;
typedef void (*cudaHostFn_t)(void *user);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *user);

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2
};

enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal = 0 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1 };

enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess = 0,
    cudaDriverEntryPointSymbolNotFound = 1
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum { cudaInvalidDeviceId = -2 };

enum cudaDeviceAttr { cudaDevAttrMaxThreadsPerBlock = 1 }; /* and more: device_attributes.def */

typedef struct dim3 {
    unsigned x, y, z;
} dim3;

typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    void *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

/* In CUDA 12 the structure ends before `reserved`. */
struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
    long reserved[8];
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
    int reserved[16];
};

typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;
typedef struct cudaIpcEventHandle_st {
    char reserved[64];
} cudaIpcEventHandle_t;
typedef struct cudaMemAccessDesc cudaMemAccessDesc;

#define MT_MEMBER(type, name, dimension) type name dimension;
#define MT_NO_MEMBER(type, name, dimension)

struct cudaDeviceProp { /* of CUDA 13 */
#define BOTH MT_MEMBER
#define OLD  MT_NO_MEMBER
#define NEW  MT_MEMBER
#include "device_properties.def"
#undef BOTH
#undef OLD
#undef NEW
};

struct cudaDeviceProp_v2 { /* of CUDA 12 */
#define BOTH MT_MEMBER
#define OLD  MT_MEMBER
#define NEW  MT_NO_MEMBER
#include "device_properties.def"
#undef BOTH
#undef OLD
#undef NEW
};

_Static_assert(sizeof(struct cudaDeviceProp) == 1008, "as driver_types.h of CUDA 13 has it");
_Static_assert(sizeof(struct cudaDeviceProp_v2) == 1032, "as driver_types.h of CUDA 12 has it");
_Static_assert(sizeof(struct cudaFuncAttributes) == 144, "as driver_types.h has it");

#endif
