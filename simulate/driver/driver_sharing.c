/* Memory of other processes (IPC handles) and of other interfaces (external memory). */
#include "simulated_driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ipc_handle {
    uint64_t magic, addr, bytes;
    int process, device;
};

#define IPC_MAGIC UINT64_C(0x5d495043)

static CUresult get_handle(CUipcMemHandle *handle, CUdeviceptr addr)
{
    sd_lock();
    struct sd_block *block = sd_find_around(addr);
    struct ipc_handle filled = {.magic = IPC_MAGIC, .process = getpid()};
    bool known = block && block->kind == SD_LINEAR;
    if (known) {
        filled.addr = block->addr;
        filled.bytes = block->bytes;
        filled.device = block->device;
        memset(handle, 0, sizeof *handle);
        memcpy(handle, &filled, sizeof filled);
    }
    sd_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct {
        CUipcMemHandle *pHandle;
        CUdeviceptr dptr;
    } params = {pHandle, dptr};
    SD_CALL(cuIpcGetMemHandle, params, get_handle(pHandle, dptr));
}

static CUresult place(struct sd_block *block, CUdeviceptr *addr)
{
    uint64_t placed = 0;
    sd_lock();
    CUresult result = sd_place(block, &placed);
    sd_unlock();
    if (!result)
        *addr = placed;
    return result;
}

static CUresult open_handle(CUdeviceptr *addr, const CUipcMemHandle *handle)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    struct ipc_handle theirs;
    memcpy(&theirs, handle, sizeof theirs);
    if (theirs.magic != IPC_MAGIC || !sd_is_device(theirs.device))
        return CUDA_ERROR_INVALID_VALUE;
    if (theirs.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    struct sd_block block = {
        .bytes = theirs.bytes, .kind = SD_OPENED, .device = theirs.device, .context = context};
    return place(&block, addr);
}

SD_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                         unsigned int Flags)
{
    struct {
        CUdeviceptr *pdptr;
        CUipcMemHandle handle;
        unsigned int Flags;
    } params = {pdptr, handle, Flags};
    SD_CALL(cuIpcOpenMemHandle_v2, params, open_handle(pdptr, &handle));
}

static CUresult drop(uint64_t addr, enum sd_kind kind)
{
    sd_lock();
    struct sd_block *block = sd_find(addr, kind);
    if (block)
        sd_drop(block);
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct {
        CUdeviceptr dptr;
    } params = {dptr};
    SD_CALL(cuIpcCloseMemHandle, params, drop(dptr, SD_OPENED));
}

struct CUextMemory_st {
    uint64_t bytes;
};

/* The driver takes ownership of the file descriptor. */
static CUresult import_memory(CUexternalMemory *memory,
                              const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *wanted)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    if (wanted->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD || close(wanted->handle.fd) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *memory = malloc(sizeof **memory);
    if (!*memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*memory)->bytes = wanted->size;
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuImportExternalMemory(CUexternalMemory *extMem_out,
                                          const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    struct {
        CUexternalMemory *extMem_out;
        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc;
    } params = {extMem_out, memHandleDesc};
    SD_CALL(cuImportExternalMemory, params, import_memory(extMem_out, memHandleDesc));
}

static CUresult map_buffer(CUdeviceptr *addr, CUexternalMemory memory,
                           const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *wanted)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    if (wanted->offset > memory->bytes || wanted->size > memory->bytes - wanted->offset)
        return CUDA_ERROR_INVALID_VALUE;
    struct sd_block block = {
        .bytes = wanted->size, .kind = SD_LINEAR, .device = context->device, .context = context};
    return place(&block, addr);
}

SD_EXPORT CUresult
cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    struct {
        CUdeviceptr *devPtr;
        CUexternalMemory extMem;
        const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc;
    } params = {devPtr, extMem, bufferDesc};
    SD_CALL(cuExternalMemoryGetMappedBuffer, params, map_buffer(devPtr, extMem, bufferDesc));
}

static CUresult destroy_memory(CUexternalMemory memory)
{
    free(memory);
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SD_EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory extMem)
{
    struct {
        CUexternalMemory extMem;
    } params = {extMem};
    SD_CALL(cuDestroyExternalMemory, params, destroy_memory(extMem));
}
