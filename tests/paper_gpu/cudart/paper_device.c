/* Devices: the current one of each thread, its primary context, and what an H200
 * answers about itself. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "paper_runtime.h"

enum { MAX_DEVICES = 64 };

static _Thread_local int current_device;
static _Thread_local int bound_device = -1; /* whose context is current in this thread */
static _Thread_local cudaError_t last_error;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[MAX_DEVICES];

cudaError_t paper_result(int error)
{
    if (error != 0) {
        last_error = (cudaError_t)error;
    }
    return (cudaError_t)error;
}

int paper_device(void)
{
    return current_device;
}

static CUresult retain_primary(const struct paper_driver *driver, int device, CUcontext *context)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (primary[device] == NULL) {
        CUdevice handle = device;
        if (driver->cuDeviceGet != NULL) {
            result = driver->cuDeviceGet(&handle, device);
        }
        if (result == CUDA_SUCCESS) {
            result = driver->cuDevicePrimaryCtxRetain(&primary[device], handle);
        }
    }
    *context = primary[device];
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult bind(const struct paper_driver *driver)
{
    if (bound_device == current_device) {
        return CUDA_SUCCESS;
    }
    CUcontext context;
    CUresult result = retain_primary(driver, current_device, &context);
    if (result == CUDA_SUCCESS) {
        result = driver->cuCtxSetCurrent(context);
    }
    if (result == CUDA_SUCCESS) {
        bound_device = current_device;
    }
    return result;
}

const struct paper_driver *paper_enter(void)
{
    const struct paper_driver *driver = paper_driver();
    CUresult result = driver != NULL ? bind(driver) : CUDA_ERROR_NO_DEVICE;
    if (result != CUDA_SUCCESS) {
        paper_result((int)result);
        return NULL;
    }
    return driver;
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
    const struct paper_driver *driver = paper_driver();
    *count = 0;
    if (driver == NULL) {
        return paper_result(cudaErrorNoDevice);
    }
    return paper_result((int)driver->cuDeviceGetCount(count));
}

static bool exists(int device)
{
    int count = 0;
    const struct paper_driver *driver = paper_driver();
    return driver != NULL && driver->cuDeviceGetCount(&count) == CUDA_SUCCESS && device >= 0 &&
           device < count && device < MAX_DEVICES;
}

cudaError_t cudaSetDevice(int device)
{
    if (!exists(device)) {
        return paper_result(cudaErrorInvalidDevice);
    }
    current_device = device;
    return paper_enter() != NULL ? cudaSuccess : last_error;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    const struct paper_driver *driver = paper_driver();
    *version = CUDA_VERSION;
    if (driver != NULL && driver->cuDriverGetVersion != NULL) {
        driver->cuDriverGetVersion(version);
    }
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static void limits(struct cudaDeviceProp *prop)
{
    prop->sharedMemPerBlock = 49152;
    prop->sharedMemPerBlockOptin = 232448;
    prop->sharedMemPerMultiprocessor = 233472;
    prop->reservedSharedMemPerBlock = 1024;
    prop->regsPerBlock = 65536;
    prop->regsPerMultiprocessor = 65536;
    prop->warpSize = 32;
    prop->memPitch = 2147483647;
    prop->maxThreadsPerBlock = 1024;
    prop->maxThreadsPerMultiProcessor = 2048;
    prop->maxBlocksPerMultiProcessor = 32;
    prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
    prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = 2147483647;
    prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    prop->totalConstMem = 65536;
    prop->textureAlignment = 512;
    prop->texturePitchAlignment = 32;
    prop->l2CacheSize = 62914560;
    prop->persistingL2CacheMaxSize = 39321600;
    prop->accessPolicyMaxWindowSize = 134217728;
    prop->memoryBusWidth = 6144;
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
        return paper_result(cudaErrorInvalidDevice);
    }
    const struct paper_driver *driver = paper_driver();
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "NVIDIA H200 (paper)");
    if (driver->cuDeviceGetName != NULL) {
        driver->cuDeviceGetName(prop->name, (int)sizeof prop->name, device);
    }
    driver->cuDeviceTotalMem(&prop->totalGlobalMem, device);
    snprintf(prop->uuid.bytes, sizeof prop->uuid.bytes, "paper-gpu-%d", device);
    prop->major = 9;
    prop->minor = 0;
    prop->multiProcessorCount = 132;
    prop->pciBusID = 1 + device;
    limits(prop);
    abilities(prop);
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
    case cudaDevAttrClockRate: return 1980000;
    case cudaDevAttrMemoryClockRate: return 3201000;
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
        return paper_result(cudaErrorInvalidDevice);
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
    return exists(peer) ? cudaSuccess : paper_result(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize(void)
{
    const struct paper_driver *driver = paper_enter();
    if (driver == NULL) {
        return last_error;
    }
    paper_complete_all();
    return driver->cuCtxSynchronize != NULL ? paper_result((int)driver->cuCtxSynchronize())
                                            : cudaSuccess;
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
    default: return "cudaErrorOnPaper";
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
    default: return "error of the runtime on paper";
    }
}
