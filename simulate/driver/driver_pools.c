/* Stream-ordered memory and its pools. Nothing is cached: freed memory returns to the device
 * immediately. */
#define _GNU_SOURCE
#include "simulated_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct CUmemPoolHandle_st default_pools[SD_DEVICES_MAX];
static CUmemoryPool current_pools[SD_DEVICES_MAX];

void sd_pools_init(int devices)
{
    for (int i = 0; i < devices; i++) {
        default_pools[i].device = i;
        current_pools[i] = &default_pools[i];
    }
}

static CUresult capture_alloc(CUstream stream, CUdeviceptr *addr, uint64_t bytes)
{
    uint64_t placed = 0;
    CUgraphNode node;
    CUresult result =
        sd_add_memory_node(stream->capture, CU_GRAPH_NODE_TYPE_MEM_ALLOC, bytes, &placed, &node);
    if (!result)
        *addr = placed;
    return result;
}

/* `pool` NULL: the current pool of the stream's device. */
static CUresult allocate(CUdeviceptr *addr, uint64_t bytes, CUmemoryPool pool, CUstream stream)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !addr)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if ((uintptr_t)stream > 2 && stream->capture)
        return capture_alloc(stream, addr, bytes);
    if (!pool)
        pool = current_pools[context->device];
    struct sd_block block = {.bytes = bytes,
                             .kind = SD_POOLED,
                             .device = pool->device,
                             .paged = true,
                             .context = context,
                             .owner = pool};
    uint64_t placed = 0;
    sd_lock();
    result = sd_place(&block, &placed);
    if (!result)
        pool->used += bytes;
    sd_unlock();
    if (!result)
        *addr = placed;
    return result;
}

static CUresult release(CUdeviceptr addr, CUstream stream)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    if ((uintptr_t)stream > 2 && stream->capture) {
        CUgraphNode node;
        uint64_t freed = addr;
        return sd_add_memory_node(stream->capture, CU_GRAPH_NODE_TYPE_MEM_FREE, 0, &freed, &node);
    }
    sd_lock();
    struct sd_block *block = sd_find(addr, SD_POOLED);
    if (block)
        ((CUmemoryPool)block->owner)->used -= block->bytes;
    else
        block = sd_find(addr, SD_GRAPHED);
    if (block)
        sd_drop(block);
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define ASYNC_ENTRY_POINTS(suffix)                                                                 \
    SD_ENTRY3(cuMemAllocAsync##suffix, CUdeviceptr *, dptr, size_t, bytesize, CUstream, hStream,   \
              allocate(dptr, bytesize, NULL, hStream))                                             \
    SD_ENTRY4(cuMemAllocFromPoolAsync##suffix, CUdeviceptr *, dptr, size_t, bytesize,              \
              CUmemoryPool, pool, CUstream, hStream, allocate(dptr, bytesize, pool, hStream))      \
    SD_ENTRY2(cuMemFreeAsync##suffix, CUdeviceptr, dptr, CUstream, hStream, release(dptr, hStream))

ASYNC_ENTRY_POINTS()
ASYNC_ENTRY_POINTS(_ptsz)

static CUresult create_pool(CUmemoryPool *pool, int device)
{
    CUresult result = sd_initialized();
    if (result || !sd_is_device(device))
        return result ? result : CUDA_ERROR_INVALID_DEVICE;
    *pool = calloc(1, sizeof **pool);
    if (!*pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*pool)->device = device;
    return CUDA_SUCCESS;
}

SD_ENTRY2(cuMemPoolCreate, CUmemoryPool *, pool, const CUmemPoolProps *, poolProps,
          poolProps ? create_pool(pool, poolProps->location.id) : CUDA_ERROR_INVALID_VALUE)

/* The driver keeps a pool until its last allocation is freed. This one keeps it forever. */
SD_ENTRY1(cuMemPoolDestroy, CUmemoryPool, pool, pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

SD_ENTRY2(cuMemPoolTrimTo, CUmemoryPool, pool, size_t, minBytesToKeep,
          pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        memcpy(&pool->threshold, value, sizeof pool->threshold);
    return CUDA_SUCCESS;
}

SD_ENTRY3(cuMemPoolSetAttribute, CUmemoryPool, pool, CUmemPool_attribute, attr, void *, value,
          set_attribute(pool, attr, value))

SD_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t answer = attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? pool->threshold : pool->used;
    memcpy(value, &answer, sizeof answer);
    return CUDA_SUCCESS;
}

static CUresult get_pool(CUmemoryPool *pool, CUmemoryPool const *of, CUdevice device)
{
    CUresult result = sd_initialized();
    if (result || !sd_is_device(device))
        return result ? result : CUDA_ERROR_INVALID_DEVICE;
    *pool = of ? of[device] : &default_pools[device];
    return CUDA_SUCCESS;
}

SD_ENTRY2(cuDeviceGetDefaultMemPool, CUmemoryPool *, pool_out, CUdevice, dev,
          get_pool(pool_out, NULL, dev))

SD_ENTRY2(cuDeviceGetMemPool, CUmemoryPool *, pool, CUdevice, dev,
          get_pool(pool, current_pools, dev))

static CUresult set_pool(CUdevice device, CUmemoryPool pool)
{
    if (!sd_is_device(device) || !pool)
        return CUDA_ERROR_INVALID_VALUE;
    current_pools[device] = pool;
    return CUDA_SUCCESS;
}

SD_ENTRY2(cuDeviceSetMemPool, CUdevice, dev, CUmemoryPool, pool, set_pool(dev, pool))

static CUresult export_pool(int *fd, CUmemoryPool pool)
{
    *fd = memfd_create("standin-pool", MFD_CLOEXEC);
    bool written =
        *fd >= 0 && write(*fd, &pool->device, sizeof pool->device) == (ssize_t)sizeof pool->device;
    return written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

SD_ENTRY4(cuMemPoolExportToShareableHandle, void *, handle_out, CUmemoryPool, pool,
          CUmemAllocationHandleType, handleType, unsigned long long, flags,
          export_pool(handle_out, pool))

static CUresult import_pool(CUmemoryPool *pool, int fd)
{
    int device = 0;
    if (pread(fd, &device, sizeof device, 0) != (ssize_t)sizeof device)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = create_pool(pool, device);
    if (!result)
        (*pool)->imported = true;
    return result;
}

SD_ENTRY4(cuMemPoolImportFromShareableHandle, CUmemoryPool *, pool_out, void *, handle,
          CUmemAllocationHandleType, handleType, unsigned long long, flags,
          import_pool(pool_out, (int)(intptr_t)handle))

static CUresult export_pointer(CUmemPoolPtrExportData *data, CUdeviceptr addr)
{
    sd_lock();
    struct sd_block *block = sd_find(addr, SD_POOLED);
    memset(data, 0, sizeof *data);
    if (block)
        memcpy(data->reserved, &block->bytes, sizeof block->bytes);
    sd_unlock();
    return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SD_ENTRY2(cuMemPoolExportPointer, CUmemPoolPtrExportData *, shareData_out, CUdeviceptr, ptr,
          export_pointer(shareData_out, ptr))

static CUresult import_pointer(CUdeviceptr *addr, CUmemoryPool pool,
                               const CUmemPoolPtrExportData *data)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result || !pool->imported)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    struct sd_block block = {
        .kind = SD_POOLED, .device = pool->device, .context = context, .owner = pool};
    memcpy(&block.bytes, data->reserved, sizeof block.bytes);
    uint64_t placed = 0;
    sd_lock();
    result = sd_place(&block, &placed);
    if (!result)
        pool->used += block.bytes;
    sd_unlock();
    *addr = placed;
    return result;
}

SD_ENTRY3(cuMemPoolImportPointer, CUdeviceptr *, ptr_out, CUmemoryPool, pool,
          CUmemPoolPtrExportData *, shareData, import_pointer(ptr_out, pool, shareData))
