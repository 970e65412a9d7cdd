/* Streams, events, and their work, which takes no time: copies, launches, modules. An access to an
 * address without memory makes the context unusable, as on a device. */
#include "simulated_driver.h"

#include <stdlib.h>

static CUresult create_stream(CUstream *stream)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->context = context;
    sd_tell(SD_STREAM_CREATED, context, *stream, NULL);
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    struct {
        CUstream *phStream;
        unsigned int Flags;
    } params = {phStream, Flags};
    SD_CALL(cuStreamCreate, params, create_stream(phStream));
}

SD_EXPORT CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct {
        CUstream *phStream;
        unsigned int flags;
        int priority;
    } params = {phStream, flags, priority};
    SD_CALL(cuStreamCreateWithPriority, params, create_stream(phStream));
}

static CUresult destroy_stream(CUstream stream)
{
    CUresult result = sd_initialized();
    if (result || !stream)
        return result ? result : CUDA_ERROR_INVALID_HANDLE;
    sd_tell(SD_STREAM_DESTROY_STARTING, stream->context, stream, NULL);
    free(stream);
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream)
{
    struct {
        CUstream hStream;
    } params = {hStream};
    SD_CALL(cuStreamDestroy_v2, params, destroy_stream(hStream));
}

SD_EXPORT CUresult cuStreamSynchronize(CUstream hStream)
{
    CUcontext context;
    (void)hStream;
    return sd_current(&context);
}

SD_EXPORT CUresult cuStreamQuery(CUstream hStream)
{
    return cuStreamSynchronize(hStream);
}

struct CUevent_st {
    int unused;
};

SD_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    (void)Flags;
    *phEvent = calloc(1, sizeof **phEvent);
    return *phEvent ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SD_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent)
{
    free(hEvent);
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    (void)hEvent;
    return cuStreamSynchronize(hStream);
}

SD_EXPORT CUresult cuEventSynchronize(CUevent hEvent)
{
    (void)hEvent;
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuEventQuery(CUevent hEvent)
{
    return cuEventSynchronize(hEvent);
}

SD_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    (void)hEvent;
    (void)Flags;
    return cuStreamSynchronize(hStream);
}

static CUresult set_bytes(CUdeviceptr addr)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    sd_lock();
    if (!sd_find_around(addr))
        context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    sd_unlock();
    return context->sticky;
}

SD_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    struct {
        CUdeviceptr dstDevice;
        unsigned char uc;
        size_t N;
    } params = {dstDevice, uc, N};
    SD_CALL(cuMemsetD8_v2, params, set_bytes(dstDevice));
}

struct CUmod_st {
    int unused;
};

static CUresult load_module(CUmodule *module)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    *module = calloc(1, sizeof **module);
    if (!*module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct {
        uint32_t id;
        size_t bytes;
        const char *code;
    } descriptor = {1, 4096, "stand-in"};
    sd_tell(SD_MODULE_LOADED, context, NULL, &descriptor);
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct {
        CUmodule *module;
        const void *image;
    } params = {module, image};
    SD_CALL(cuModuleLoadData, params, load_module(module));
}

SD_EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
    free(hmod);
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    (void)name;
    *hfunc = (CUfunction)(void *)hmod;
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                  unsigned int gridDimZ, unsigned int blockDimX,
                                  unsigned int blockDimY, unsigned int blockDimZ,
                                  unsigned int sharedMemBytes, CUstream hStream,
                                  void **kernelParams, void **extra)
{
    struct {
        CUfunction f;
        unsigned int grid[3], block[3], shared_bytes;
        CUstream hStream;
        void **kernelParams, **extra;
    } params = {f,
                {gridDimX, gridDimY, gridDimZ},
                {blockDimX, blockDimY, blockDimZ},
                sharedMemBytes,
                hStream,
                kernelParams,
                extra};
    SD_CALL(cuLaunchKernel, params, cuStreamSynchronize(hStream));
}
