/* Devices: the current one of each thread, its primary context, and what the card
 * answers about itself. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "simulated_device.h"
#include "simulated_runtime.h"

enum { MAX_DEVICES = 64 };

static _Thread_local int current_device;
static _Thread_local int bound_device = -1; /* whose context is current in this thread */
static _Thread_local cudaError_t last_error;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[MAX_DEVICES];

cudaError_t sim_result(int error)
{
    if (error != 0) {
        last_error = (cudaError_t)error;
    }
    return (cudaError_t)error;
}

int sim_device(void)
{
    return current_device;
}

static CUresult retain_primary(int device, CUcontext *context)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (primary[device] == NULL) {
        result = cuDevicePrimaryCtxRetain(&primary[device], device);
    }
    *context = primary[device];
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult bind(void)
{
    if (bound_device == current_device) {
        return CUDA_SUCCESS;
    }
    CUcontext context;
    CUresult result = retain_primary(current_device, &context);
    if (result == CUDA_SUCCESS) {
        result = cuCtxSetCurrent(context);
    }
    if (result == CUDA_SUCCESS) {
        bound_device = current_device;
    }
    return result;
}

bool sim_enter(void)
{
    CUresult result = sim_driver_is_ready() ? bind() : CUDA_ERROR_NO_DEVICE;
    if (result != CUDA_SUCCESS) {
        sim_result((int)result);
        return false;
    }
    return true;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    if (!sim_driver_is_ready()) {
        return sim_result(cudaErrorNoDevice);
    }
    return sim_result((int)cuDeviceGetCount(count));
}

static bool exists(int device)
{
    int count = 0;
    return sim_driver_is_ready() && cuDeviceGetCount(&count) == CUDA_SUCCESS && device >= 0 &&
           device < count && device < MAX_DEVICES;
}

cudaError_t cudaSetDevice(int device)
{
    if (!exists(device)) {
        return sim_result(cudaErrorInvalidDevice);
    }
    current_device = device;
    return sim_enter() ? cudaSuccess : last_error;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return sim_result((int)cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = sim_cuda_version();
    return cudaSuccess;
}

static void limits(struct cudaDeviceProp *prop)
{
    prop->sharedMemPerBlock = 49152;
    prop->reservedSharedMemPerBlock = 1024;
    prop->regsPerBlock = 65536;
    prop->regsPerMultiprocessor = 65536;
    prop->warpSize = 32;
    prop->memPitch = 2147483647;
    prop->maxThreadsPerBlock = 1024;
    prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
    prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = 2147483647;
    prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    prop->totalConstMem = 65536;
    prop->textureAlignment = 512;
    prop->texturePitchAlignment = 32;
    prop->accessPolicyMaxWindowSize = 134217728;
}

static void shape(struct cudaDeviceProp *prop)
{
    const struct sim_card *model = sim_card();
    prop->major = model->major;
    prop->minor = model->minor;
    prop->multiProcessorCount = model->multiprocessors;
    prop->maxThreadsPerMultiProcessor = model->threads_per_multiprocessor;
    prop->maxBlocksPerMultiProcessor = model->blocks_per_multiprocessor;
    prop->sharedMemPerMultiprocessor = model->shared_bytes_per_multiprocessor;
    prop->sharedMemPerBlockOptin = model->shared_bytes_per_block_optin;
    prop->l2CacheSize = model->l2_bytes;
    prop->persistingL2CacheMaxSize = model->l2_persisting_bytes;
    prop->memoryBusWidth = model->bus_bits;
}

static void abilities(struct cudaDeviceProp *prop)
{
    prop->canMapHostMemory = 1;
    prop->concurrentKernels = 1;
    prop->unifiedAddressing = 1;
    prop->asyncEngineCount = 3;
    prop->ECCEnabled = 1;
    prop->streamPrioritiesSupported = 1;
    prop->globalL1CacheSupported = 1;
    prop->localL1CacheSupported = 1;
    prop->managedMemory = 1;
    prop->concurrentManagedAccess = 1;
    prop->computePreemptionSupported = 1;
    prop->cooperativeLaunch = 1;
    prop->clusterLaunch = 1;
    prop->hostRegisterSupported = 1;
    prop->memoryPoolsSupported = 1;
    prop->memoryPoolSupportedHandleTypes = 9;
    prop->ipcEventSupported = 1;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (!exists(device)) {
        return sim_result(cudaErrorInvalidDevice);
    }
    memset(prop, 0, sizeof *prop);
    cuDeviceGetName(prop->name, (int)sizeof prop->name, device);
    cuDeviceTotalMem_v2(&prop->totalGlobalMem, device);
    cuDeviceGetUuid_v2(&prop->uuid, device);
    prop->pciBusID = 1 + device;
    limits(prop);
    shape(prop);
    abilities(prop);
    return cudaSuccess;
}

/* What CUDA 12 calls cudaGetDeviceProperties. */
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp_v2 *prop, int device)
{
    struct cudaDeviceProp now;
    cudaError_t error = cudaGetDeviceProperties(&now, device);
    if (error != cudaSuccess) {
        return error;
    }
    memset(prop, 0, sizeof *prop);
#define BOTH(type, name, dimension) memcpy(&prop->name, &now.name, sizeof prop->name);
#define OLD(type, name, dimension)
#define NEW(type, name, dimension)
#include "device_properties.def"
#undef BOTH
#undef OLD
#undef NEW
    prop->clockRate = sim_card()->clock_khz;
    prop->memoryClockRate = sim_card()->memory_clock_khz;
    prop->deviceOverlap = 1;
    return cudaSuccess;
}

/* The attributes that programs ask for; all others are 0. */
static int attribute(const struct cudaDeviceProp *prop, enum cudaDeviceAttr attr)
{
    switch ((int)attr) {
    case cudaDevAttrMaxThreadsPerBlock: return prop->maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return prop->maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return prop->maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return prop->maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return prop->maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return prop->maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return prop->maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return (int)prop->sharedMemPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return (int)prop->sharedMemPerBlockOptin;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return (int)prop->sharedMemPerMultiprocessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return (int)prop->reservedSharedMemPerBlock;
    case cudaDevAttrTotalConstantMemory: return (int)prop->totalConstMem;
    case cudaDevAttrWarpSize: return prop->warpSize;
    case cudaDevAttrMaxPitch: return (int)prop->memPitch;
    case cudaDevAttrMaxRegistersPerBlock: return prop->regsPerBlock;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return prop->regsPerMultiprocessor;
    case cudaDevAttrClockRate: return sim_card()->clock_khz;
    case cudaDevAttrMemoryClockRate: return sim_card()->memory_clock_khz;
    case cudaDevAttrTextureAlignment: return (int)prop->textureAlignment;
    case cudaDevAttrMultiProcessorCount: return prop->multiProcessorCount;
    case cudaDevAttrCanMapHostMemory: return 1;
    case cudaDevAttrConcurrentKernels: return 1;
    case cudaDevAttrEccEnabled: return 1;
    case cudaDevAttrPciBusId: return prop->pciBusID;
    case cudaDevAttrGlobalMemoryBusWidth: return prop->memoryBusWidth;
    case cudaDevAttrL2CacheSize: return prop->l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return prop->maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return prop->maxBlocksPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount: return prop->asyncEngineCount;
    case cudaDevAttrUnifiedAddressing: return 1;
    case cudaDevAttrComputeCapabilityMajor: return prop->major;
    case cudaDevAttrComputeCapabilityMinor: return prop->minor;
    case cudaDevAttrStreamPrioritiesSupported: return 1;
    case cudaDevAttrManagedMemory: return 1;
    case cudaDevAttrConcurrentManagedAccess: return 1;
    case cudaDevAttrCooperativeLaunch: return 1;
    case cudaDevAttrClusterLaunch: return 1;
    case cudaDevAttrMemoryPoolsSupported: return 1;
    case cudaDevAttrHostRegisterSupported: return 1;
    default: return 0;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    struct cudaDeviceProp prop;
    cudaError_t error = cudaGetDeviceProperties(&prop, device);
    *value = error == cudaSuccess ? attribute(&prop, attr) : 0;
    return error;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    if (!exists(device) || length <= 0) {
        return sim_result(cudaErrorInvalidDevice);
    }
    snprintf(text, (size_t)length, "0000:%02x:00.0", 1 + device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer && exists(device) && exists(peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)flags;
    return exists(peer) ? cudaSuccess : sim_result(cudaErrorInvalidDevice);
}

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

cudaError_t cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch ((int)error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    default: return "cudaErrorSimulated";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch ((int)error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    default: return "error of the simulated runtime";
    }
}
