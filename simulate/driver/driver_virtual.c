/* Memory that mappings share: address ranges, physical memory, and memory of other processes and
 * interfaces.
 *
 * Address ranges, physical memory, and mappings between them. Physical memory returns to the device
 * when no handle and no mapping refers to it. */
#define _GNU_SOURCE

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simulated_driver.h"

struct physical {
    int device;
    uint64_t bytes;
    unsigned references, mappings;
    bool imported; /* another process's memory */
};

static struct physical *physical_of(CUmemGenericAllocationHandle handle)
{
    return (struct physical *)(uintptr_t)handle;
}

static void drop_if_unused(struct physical *physical)
{
    if (physical->references || physical->mappings)
        return;
    if (!physical->imported)
        sd_give(physical->device, physical->bytes);
    free(physical);
}

static CUresult reserve(CUdeviceptr *addr, uint64_t bytes)
{
    CUresult result = sd_initialized();
    if (result || bytes % SD_PAGE)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    struct sd_block block = {.bytes = bytes, .kind = SD_RESERVED};
    uint64_t placed = 0;
    sd_lock();
    result = sd_place(&block, &placed);
    sd_unlock();
    if (!result)
        *addr = placed;
    return result;
}

SD_ENTRY5(cuMemAddressReserve, CUdeviceptr *, ptr, size_t, size, size_t, alignment, CUdeviceptr,
          addr, unsigned long long, flags, reserve(ptr, size))

static CUresult free_address(CUdeviceptr addr, uint64_t bytes)
{
    sd_lock();
    struct sd_block *block = sd_find(addr, SD_RESERVED);
    if (block && block->bytes != bytes)
        block = NULL;
    if (block)
        sd_drop(block);
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_ENTRY2(cuMemAddressFree, CUdeviceptr, ptr, size_t, size, free_address(ptr, size))

SD_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity,
                                                 const CUmemAllocationProp *prop,
                                                 CUmemAllocationGranularity_flags option)
{
    (void)prop;
    (void)option;
    *granularity = SD_PAGE;
    return sd_initialized();
}

static CUresult new_physical(CUmemGenericAllocationHandle *handle, const struct physical *wanted)
{
    struct physical *physical = malloc(sizeof *physical);
    sd_lock();
    bool fits = physical && (wanted->imported || sd_take(wanted->device, wanted->bytes));
    sd_unlock();
    if (!fits) {
        free(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *physical = *wanted;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, uint64_t bytes,
                       const CUmemAllocationProp *prop)
{
    CUresult result = sd_initialized();
    if (result || !prop || !bytes || bytes % SD_PAGE)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if (!sd_is_device(prop->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    struct physical wanted = {.device = prop->location.id, .bytes = bytes, .references = 1};
    return new_physical(handle, &wanted);
}

SD_ENTRY4(cuMemCreate, CUmemGenericAllocationHandle *, handle, size_t, size,
          const CUmemAllocationProp *, prop, unsigned long long, flags, create(handle, size, prop))

static CUresult release(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_of(handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    sd_lock();
    bool held = physical->references > 0;
    if (held) {
        physical->references--;
        drop_if_unused(physical);
    }
    sd_unlock();
    return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_ENTRY1(cuMemRelease, CUmemGenericAllocationHandle, handle, release(handle))

static CUresult retain(CUmemGenericAllocationHandle *handle, uint64_t addr)
{
    sd_lock();
    struct sd_block *block = sd_find(addr, SD_MAPPING);
    if (block) {
        ((struct physical *)block->owner)->references++;
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)block->owner;
    }
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_ENTRY2(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *, handle, void *, addr,
          retain(handle, (uint64_t)(uintptr_t)addr))

static CUresult map(CUdeviceptr addr, uint64_t bytes, uint64_t offset,
                    CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_of(handle);
    if (!physical || bytes % SD_PAGE || offset > physical->bytes ||
        bytes > physical->bytes - offset)
        return CUDA_ERROR_INVALID_VALUE;
    struct sd_block block = {.addr = addr,
                             .bytes = bytes,
                             .kind = SD_MAPPING,
                             .device = physical->device,
                             .owner = physical};
    sd_lock();
    struct sd_block *range = sd_find_around(addr);
    bool fits = range && range->kind == SD_RESERVED && addr + bytes <= range->addr + range->bytes &&
                !sd_find(addr, SD_MAPPING) && sd_note(&block);
    if (fits)
        physical->mappings++;
    sd_unlock();
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_ENTRY5(cuMemMap, CUdeviceptr, ptr, size_t, size, size_t, offset, CUmemGenericAllocationHandle,
          handle, unsigned long long, flags, map(ptr, size, offset, handle))

/* Removes the adjacent mappings in the range. */
static CUresult unmap(CUdeviceptr addr, uint64_t bytes)
{
    uint64_t end = addr + bytes;
    CUresult result = CUDA_SUCCESS;
    sd_lock();
    while (addr < end && !result) {
        struct sd_block *block = sd_find(addr, SD_MAPPING);
        if (!block) {
            result = CUDA_ERROR_INVALID_VALUE;
            break;
        }
        struct physical *physical = block->owner;
        addr += block->bytes;
        sd_drop(block);
        physical->mappings--;
        drop_if_unused(physical);
    }
    sd_unlock();
    return result;
}

SD_ENTRY2(cuMemUnmap, CUdeviceptr, ptr, size_t, size, unmap(ptr, size))

SD_ENTRY4(cuMemSetAccess, CUdeviceptr, ptr, size_t, size, const CUmemAccessDesc *, desc, size_t,
          count, sd_initialized())

static CUresult export_handle(int *fd, CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_of(handle);
    *fd = memfd_create("standin-memory", MFD_CLOEXEC);
    bool written = *fd >= 0 && write(*fd, physical, sizeof *physical) == (ssize_t)sizeof *physical;
    return written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

SD_ENTRY4(cuMemExportToShareableHandle, void *, shareableHandle, CUmemGenericAllocationHandle,
          handle, CUmemAllocationHandleType, handleType, unsigned long long, flags,
          export_handle(shareableHandle, handle))

static CUresult import_handle(CUmemGenericAllocationHandle *handle, int fd)
{
    struct physical theirs;
    if (pread(fd, &theirs, sizeof theirs, 0) != (ssize_t)sizeof theirs)
        return CUDA_ERROR_INVALID_VALUE;
    struct physical ours = {
        .device = theirs.device, .bytes = theirs.bytes, .references = 1, .imported = true};
    return new_physical(handle, &ours);
}

SD_ENTRY3(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *, handle, void *, osHandle,
          CUmemAllocationHandleType, shHandleType, import_handle(handle, (int)(intptr_t)osHandle))

/* Memory of other processes (IPC handles) and of other interfaces (external memory). */

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

SD_ENTRY2(cuIpcGetMemHandle, CUipcMemHandle *, pHandle, CUdeviceptr, dptr,
          get_handle(pHandle, dptr))

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

SD_ENTRY3(cuIpcOpenMemHandle_v2, CUdeviceptr *, pdptr, CUipcMemHandle, handle, unsigned int, Flags,
          open_handle(pdptr, &handle))

static CUresult drop(uint64_t addr, enum sd_kind kind)
{
    sd_lock();
    struct sd_block *block = sd_find(addr, kind);
    if (block)
        sd_drop(block);
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_ENTRY1(cuIpcCloseMemHandle, CUdeviceptr, dptr, drop(dptr, SD_OPENED))

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

SD_ENTRY2(cuImportExternalMemory, CUexternalMemory *, extMem_out,
          const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *, memHandleDesc,
          import_memory(extMem_out, memHandleDesc))

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

SD_ENTRY1(cuDestroyExternalMemory, CUexternalMemory, extMem, destroy_memory(extMem))
