/* Queries about contexts, pointers and handles. */
#include "simulated_driver.h"

/* Returns true if a context exists on the device: a retained context takes memory of the device. */
SD_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult result = sd_initialized();
    if (result || !sd_is_device(dev))
        return result ? result : CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    sd_lock();
    *active = sd_memory_used(dev) > 0;
    sd_unlock();
    return CUDA_SUCCESS;
}

static struct sd_block *block_of(CUdeviceptr ptr)
{
    struct sd_block *block = sd_find_around(ptr);
    if (!block)
        block = sd_find(ptr, SD_HOST);
    return block ? block : sd_find(ptr, SD_REGISTERED);
}

static CUresult answer(void *data, CUpointer_attribute attribute, const struct sd_block *block)
{
    bool host = block->kind == SD_HOST || block->kind == SD_REGISTERED;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = block->context; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(uint64_t *)data = block->addr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(uint64_t *)data = block->addr;
        return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned char *)data = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = block->device; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = block->bytes; return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

SD_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult result = sd_initialized();
    if (result)
        return result;
    sd_lock();
    const struct sd_block *block = block_of(ptr);
    result = block ? answer(data, attribute, block) : CUDA_ERROR_INVALID_VALUE;
    sd_unlock();
    return result;
}
