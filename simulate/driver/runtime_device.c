/* Devices: the current one of each thread, its primary context, and the properties of the card. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simulated_device.h"
#include "simulated_runtime.h"

static bool usable;

static void start_driver(void)
{
    usable = cuInit(0) == CUDA_SUCCESS;
}

bool sim_driver_is_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_driver);
    return usable;
}

unsigned sim_option(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}

enum { MAX_DEVICES = 64 };

static _Thread_local int current_device;
static _Thread_local int bound_device = -1; /* the device whose context is current in this thread */
static _Thread_local cudaError_t last_error;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[MAX_DEVICES];

cudaError_t sim_result(int error)
{
    if (error != 0)
        last_error = (cudaError_t)error;
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
    if (primary[device] == NULL)
        result = cuDevicePrimaryCtxRetain(&primary[device], device);
    *context = primary[device];
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult bind(void)
{
    if (bound_device == current_device)
        return CUDA_SUCCESS;
    CUcontext context;
    CUresult result = retain_primary(current_device, &context);
    if (result == CUDA_SUCCESS)
        result = cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS)
        bound_device = current_device;
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
    if (!sim_driver_is_ready())
        return sim_result(cudaErrorNoDevice);
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
    if (!exists(device))
        return sim_result(cudaErrorInvalidDevice);
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

static void limits(struct cudaDeviceProp *prop, int device)
{
#define OF(name) sim_attribute_of(SIM_##name, device)
    prop->sharedMemPerBlock = (size_t)OF(SHARED_BYTES_PER_BLOCK);
    prop->reservedSharedMemPerBlock = (size_t)OF(RESERVED_SHARED_BYTES_PER_BLOCK);
    prop->regsPerBlock = OF(REGISTERS_PER_BLOCK);
    prop->regsPerMultiprocessor = OF(REGISTERS_PER_MULTIPROCESSOR);
    prop->warpSize = OF(WARP_SIZE);
    prop->memPitch = (size_t)OF(MAX_PITCH);
    prop->maxThreadsPerBlock = OF(MAX_THREADS_PER_BLOCK);
    prop->maxThreadsDim[0] = OF(MAX_BLOCK_DIM_X);
    prop->maxThreadsDim[1] = OF(MAX_BLOCK_DIM_Y);
    prop->maxThreadsDim[2] = OF(MAX_BLOCK_DIM_Z);
    prop->maxGridSize[0] = OF(MAX_GRID_DIM_X);
    prop->maxGridSize[1] = OF(MAX_GRID_DIM_Y);
    prop->maxGridSize[2] = OF(MAX_GRID_DIM_Z);
    prop->totalConstMem = (size_t)OF(CONSTANT_BYTES);
    prop->textureAlignment = (size_t)OF(TEXTURE_ALIGNMENT);
    prop->texturePitchAlignment = (size_t)OF(TEXTURE_PITCH_ALIGNMENT);
    prop->accessPolicyMaxWindowSize = OF(MAX_ACCESS_POLICY_WINDOW);
}

static void shape(struct cudaDeviceProp *prop, int device)
{
    prop->major = OF(CAPABILITY_MAJOR);
    prop->minor = OF(CAPABILITY_MINOR);
    prop->multiProcessorCount = OF(MULTIPROCESSORS);
    prop->maxThreadsPerMultiProcessor = OF(THREADS_PER_MULTIPROCESSOR);
    prop->maxBlocksPerMultiProcessor = OF(BLOCKS_PER_MULTIPROCESSOR);
    prop->sharedMemPerMultiprocessor = (size_t)OF(SHARED_BYTES_PER_MULTIPROCESSOR);
    prop->sharedMemPerBlockOptin = (size_t)OF(SHARED_BYTES_PER_BLOCK_OPTIN);
    prop->l2CacheSize = OF(L2_BYTES);
    prop->persistingL2CacheMaxSize = OF(PERSISTING_L2_BYTES);
    prop->memoryBusWidth = OF(BUS_BITS);
    prop->pciBusID = OF(PCI_BUS_ID);
}

static void abilities(struct cudaDeviceProp *prop, int device)
{
    prop->canMapHostMemory = OF(CAN_MAP_HOST_MEMORY);
    prop->concurrentKernels = OF(CONCURRENT_KERNELS);
    prop->unifiedAddressing = OF(UNIFIED_ADDRESSING);
    prop->asyncEngineCount = OF(ASYNC_ENGINES);
    prop->ECCEnabled = OF(ECC_ENABLED);
    prop->streamPrioritiesSupported = OF(STREAM_PRIORITIES);
    prop->globalL1CacheSupported = OF(GLOBAL_L1_CACHE);
    prop->localL1CacheSupported = OF(LOCAL_L1_CACHE);
    prop->managedMemory = OF(MANAGED_MEMORY);
    prop->concurrentManagedAccess = OF(CONCURRENT_MANAGED_ACCESS);
    prop->computePreemptionSupported = OF(COMPUTE_PREEMPTION);
    prop->cooperativeLaunch = OF(COOPERATIVE_LAUNCH);
    prop->clusterLaunch = OF(CLUSTER_LAUNCH);
    prop->hostRegisterSupported = OF(HOST_REGISTER);
    prop->memoryPoolsSupported = OF(MEMORY_POOLS);
    prop->memoryPoolSupportedHandleTypes = (unsigned)OF(POOL_HANDLES);
    prop->ipcEventSupported = OF(IPC_EVENTS);
#undef OF
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (!exists(device))
        return sim_result(cudaErrorInvalidDevice);
    memset(prop, 0, sizeof *prop);
    cuDeviceGetName(prop->name, (int)sizeof prop->name, device);
    cuDeviceTotalMem_v2(&prop->totalGlobalMem, device);
    cuDeviceGetUuid_v2(&prop->uuid, device);
    limits(prop, device);
    shape(prop, device);
    abilities(prop, device);
    return cudaSuccess;
}

/* The name of cudaGetDeviceProperties in CUDA 12. */
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp_v2 *prop, int device)
{
    struct cudaDeviceProp now;
    cudaError_t error = cudaGetDeviceProperties(&now, device);
    if (error != cudaSuccess)
        return error;
    memset(prop, 0, sizeof *prop);
#define BOTH(type, name, dimension) memcpy(&prop->name, &now.name, sizeof prop->name);
#define OLD(type, name, dimension)
#define NEW(type, name, dimension)
#include "device_properties.def"
#undef BOTH
#undef OLD
#undef NEW
    prop->clockRate = sim_attribute_of(SIM_CLOCK_KHZ, device);
    prop->memoryClockRate = sim_attribute_of(SIM_MEMORY_CLOCK_KHZ, device);
    prop->deviceOverlap = sim_attribute_of(SIM_GPU_OVERLAP, device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    if (!exists(device))
        return sim_result(cudaErrorInvalidDevice);
    return sim_result(value && sim_attribute((int)attr, device, value) ? cudaSuccess
                                                                       : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    if (!exists(device) || length <= 0)
        return sim_result(cudaErrorInvalidDevice);
    return sim_result((int)cuDeviceGetPCIBusId(text, length, device));
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
