/* Linear, pitched, managed and host memory, and arrays. */
#include "simulated_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver_entries.h"

static CUresult allocate(CUdeviceptr *addr, uint64_t bytes)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !addr)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    struct sd_block block = {.bytes = bytes,
                             .kind = SD_LINEAR,
                             .device = context->device,
                             .paged = true,
                             .context = context};
    uint64_t placed = 0;
    sd_lock();
    result = sd_place(&block, &placed);
    sd_unlock();
    if (!result)
        *addr = placed;
    return result;
}

SD_ENTRY2(cuMemAlloc_v2, CUdeviceptr *, dptr, size_t, bytesize, allocate(dptr, bytesize))

static CUresult allocate_pitch(CUdeviceptr *addr, size_t *pitch, size_t width, size_t height)
{
    size_t bytes = (width + 511) / 512 * 512;
    if (bytes < width || (height && bytes > SIZE_MAX / height))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate(addr, bytes * height);
    if (!result)
        *pitch = bytes;
    return result;
}

SD_ENTRY5(cuMemAllocPitch_v2, CUdeviceptr *, dptr, size_t *, pPitch, size_t, WidthInBytes, size_t,
          Height, unsigned int, ElementSizeBytes,
          allocate_pitch(dptr, pPitch, WidthInBytes, Height))

/* The host may access managed memory, so its pages become accessible, including pages that it
 * shares with other blocks. The kernel provides memory at the first access. */
static CUresult allocate_managed(CUdeviceptr *addr, uint64_t bytes)
{
    uint64_t host_page = (uint64_t)sysconf(_SC_PAGESIZE);
    CUresult result = allocate(addr, bytes);
    if (!result) {
        uint64_t first = *addr / host_page * host_page;
        (void)mprotect((void *)(uintptr_t)first, *addr + bytes - first, PROT_READ | PROT_WRITE);
    }
    return result;
}

SD_ENTRY3(cuMemAllocManaged, CUdeviceptr *, dptr, size_t, bytesize, unsigned int, flags,
          allocate_managed(dptr, bytesize))

static CUresult release(CUdeviceptr addr)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !addr)
        return result;
    sd_lock();
    struct sd_block *block = sd_find(addr, SD_LINEAR);
    if (!block)
        block = sd_find(addr, SD_POOLED);
    if (!block)
        block = sd_find(addr, SD_GRAPHED);
    if (block && block->owner && block->kind == SD_POOLED)
        ((CUmemoryPool)block->owner)->used -= block->bytes;
    if (block)
        sd_drop(block);
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_ENTRY1(cuMemFree_v2, CUdeviceptr, dptr, release(dptr))

SD_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    sd_lock();
    struct sd_block *block = sd_find_around(dptr);
    if (block && pbase)
        *pbase = block->addr;
    if (block && psize)
        *psize = block->bytes;
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Pinned memory is address space: the machine has to hold only the pages that the program uses. */
static CUresult allocate_host(void **memory, size_t bytes)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !memory || !bytes)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = mapped;
    struct sd_block block = {.addr = (uint64_t)(uintptr_t)mapped,
                             .bytes = bytes,
                             .kind = SD_HOST,
                             .device = context->device,
                             .context = context};
    sd_lock();
    bool noted = sd_note(&block);
    sd_unlock();
    return noted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SD_ENTRY2(cuMemAllocHost_v2, void **, pp, size_t, bytesize, allocate_host(pp, bytesize))

SD_ENTRY3(cuMemHostAlloc, void **, pp, size_t, bytesize, unsigned int, Flags,
          allocate_host(pp, bytesize))

static CUresult forget_host(void *memory, enum sd_kind kind, CUresult unknown)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !memory)
        return result;
    sd_lock();
    struct sd_block *block = sd_find((uint64_t)(uintptr_t)memory, kind);
    size_t bytes = block ? block->bytes : 0;
    if (block)
        sd_drop(block);
    sd_unlock();
    if (block && kind == SD_HOST)
        (void)munmap(memory, bytes);
    return block ? CUDA_SUCCESS : unknown;
}

/* Returns whether the driver allocated this part of the host's memory. */
static bool is_own_host_memory(uint64_t addr, size_t bytes)
{
    sd_lock();
    const struct sd_block *block = sd_find_host_around(addr);
    bool is_own = block && block->kind == SD_HOST && bytes <= block->addr + block->bytes - addr;
    sd_unlock();
    return is_own;
}

bool sd_clear_host(void *memory, size_t bytes)
{
    uint64_t addr = (uint64_t)(uintptr_t)memory, page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = (addr + page - 1) / page * page, end = (addr + bytes) / page * page;
    if (first >= end || !is_own_host_memory(addr, bytes) ||
        madvise((void *)(uintptr_t)first, end - first, MADV_DONTNEED))
        return false;
    memset(memory, 0, first - addr);
    memset((void *)(uintptr_t)end, 0, addr + bytes - end);
    return true;
}

SD_ENTRY1(cuMemFreeHost, void *, p, forget_host(p, SD_HOST, CUDA_ERROR_INVALID_VALUE))

static CUresult register_host(void *memory, size_t bytes)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !memory || !bytes)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    struct sd_block block = {.addr = (uint64_t)(uintptr_t)memory,
                             .bytes = bytes,
                             .kind = SD_REGISTERED,
                             .device = context->device,
                             .context = context};
    sd_lock();
    bool twice = sd_find(block.addr, SD_REGISTERED) != NULL;
    bool noted = !twice && sd_note(&block);
    sd_unlock();
    if (twice)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return noted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SD_ENTRY3(cuMemHostRegister_v2, void *, p, size_t, bytesize, unsigned int, Flags,
          register_host(p, bytesize))

SD_ENTRY1(cuMemHostUnregister, void *, p,
          forget_host(p, SD_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED))

SD_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    (void)Flags;
    *pdptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

static uint64_t channel_bytes(CUarray_format format)
{
    return format == CU_AD_FORMAT_UNSIGNED_INT8 ? 1 : format == CU_AD_FORMAT_HALF ? 2 : 4;
}

static uint64_t or_one(uint64_t count)
{
    return count ? count : 1;
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels)
{
    uint64_t width = wanted->Width, height = or_one(wanted->Height), depth = or_one(wanted->Depth);
    uint64_t bytes = 0;
    for (; levels; levels--) {
        bytes += width * height * depth * channel_bytes(wanted->Format) * wanted->NumChannels;
        width = or_one(width / 2);
        height = or_one(height / 2);
        depth = or_one(depth / 2);
    }
    return bytes;
}

static CUresult create_array(void **handle, const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !handle || !wanted->Width)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    struct sd_block block = {.bytes = array_bytes(wanted, levels),
                             .kind = levels == 1 ? SD_ARRAY : SD_MIPMAPPED,
                             .device = context->device,
                             .context = context};
    block.physical = (block.bytes + SD_PAGE - 1) / SD_PAGE * SD_PAGE;
    void *memory = malloc(64);
    block.addr = (uint64_t)(uintptr_t)memory;
    sd_lock();
    bool fits = memory && sd_take(block.device, block.physical) && sd_note(&block);
    sd_unlock();
    if (fits)
        *handle = memory;
    else
        free(memory);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult destroy_array(void *handle, enum sd_kind kind)
{
    CUresult result = sd_initialized();
    if (result)
        return result;
    sd_lock();
    struct sd_block *block = sd_find((uint64_t)(uintptr_t)handle, kind);
    if (block)
        sd_drop(block);
    sd_unlock();
    if (block)
        free(handle);
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult create_flat_array(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR *wanted)
{
    if (!wanted)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR deep = {wanted->Width,  wanted->Height,      0,
                                    wanted->Format, wanted->NumChannels, 0};
    return create_array((void **)handle, &deep, 1);
}

SD_ENTRY2(cuArrayCreate_v2, CUarray *, pHandle, const CUDA_ARRAY_DESCRIPTOR *, pAllocateArray,
          create_flat_array(pHandle, pAllocateArray))

SD_ENTRY2(cuArray3DCreate_v2, CUarray *, pHandle, const CUDA_ARRAY3D_DESCRIPTOR *, pAllocateArray,
          create_array((void **)pHandle, pAllocateArray, 1))

SD_ENTRY1(cuArrayDestroy, CUarray, hArray, destroy_array(hArray, SD_ARRAY))

SD_ENTRY3(cuMipmappedArrayCreate, CUmipmappedArray *, pHandle, const CUDA_ARRAY3D_DESCRIPTOR *,
          pMipmappedArrayDesc, unsigned int, numMipmapLevels,
          create_array((void **)pHandle, pMipmappedArrayDesc, numMipmapLevels))

SD_ENTRY1(cuMipmappedArrayDestroy, CUmipmappedArray, hMipmappedArray,
          destroy_array(hMipmappedArray, SD_MIPMAPPED))
