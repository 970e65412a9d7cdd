/* Start, devices, contexts, streams and events of the stand-in driver. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simulated_device.h"
#include "simulated_driver.h"
#include "wheel_versions.h"

static int device_count;
static uint64_t context_bytes;
static struct CUctx_st contexts[SD_CONTEXTS_MAX]; /* the first ones: primary, by device */
static unsigned next_uid = 1;

static void load_injection(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*initialize)(void) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize)
        (void)initialize();
}

static void start(void)
{
    const char *text = getenv("MEMTRACE_SIMULATED_DEVICES");
    device_count = text && *text ? atoi(text) : 1;
    if (device_count < 1 || device_count > SD_DEVICES_MAX)
        device_count = 1;
    text = getenv("MEMTRACE_SIMULATED_CONTEXT");
    context_bytes = text && *text ? strtoull(text, NULL, 0) : UINT64_C(400) << 20;
    sd_memory_init(device_count);
    sd_pools_init(device_count);
    for (int i = 0; i < SD_CONTEXTS_MAX; i++)
        contexts[i].device = i < device_count ? i : -1;
}

static CUresult initialise(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    sd_lock();
    bool first = sd_begin();
    if (first)
        start();
    sd_unlock();
    if (first) {
        load_injection();
        sd_tell(SD_INIT_FINISHED, NULL, NULL, NULL);
    }
    return sd_initialized();
}

SD_ENTRY1(cuInit, unsigned int, Flags, initialise(Flags))

SD_EXPORT CUresult cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    int wheel = sim_cuda_version(); /* a driver is as new as the runtime, or newer */
    *driverVersion = wheel > CUDA_13 ? wheel : CUDA_13;
    return CUDA_SUCCESS;
}

static CUresult device_ready(CUdevice device)
{
    CUresult result = sd_initialized();
    return result ? result : sd_is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SD_EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = device_count;
    return sd_initialized();
}

SD_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return device_ready(ordinal);
}

static CUresult device_name(char *name, int length, CUdevice device)
{
    CUresult result = device_ready(device);
    const char *instance = getenv("MEMTRACE_SIMULATED_MIG");
    if (!result && length > 0)
        snprintf(name, (size_t)length, "%s%s%s", sim_card()->name, instance ? " MIG " : "",
                 instance ? instance : "");
    return result;
}

SD_ENTRY3(cuDeviceGetName, char *, name, int, len, CUdevice, dev, device_name(name, len, dev))

static CUresult device_total(size_t *bytes, CUdevice device)
{
    CUresult result = device_ready(device);
    if (!result)
        *bytes = sd_memory_total(device);
    return result;
}

SD_ENTRY2(cuDeviceTotalMem_v2, size_t *, bytes, CUdevice, dev, device_total(bytes, dev))

SD_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    unsigned char bytes[SIM_UUID_BYTES];

    sim_uuid((int)dev, bytes);
    memcpy(uuid->bytes, bytes, sizeof uuid->bytes);
    return device_ready(dev);
}

static CUresult pci_address(char *text, int length, CUdevice device)
{
    CUresult result = device_ready(device);

    if (result || !text || length <= 0)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    snprintf(text, (size_t)length, "%04x:%02x:%02x.0", sim_attribute_of(SIM_PCI_DOMAIN_ID, device),
             sim_attribute_of(SIM_PCI_BUS_ID, device), sim_attribute_of(SIM_PCI_DEVICE_ID, device));
    return CUDA_SUCCESS;
}

SD_ENTRY3(cuDeviceGetPCIBusId, char *, pciBusId, int, len, CUdevice, dev,
          pci_address(pciBusId, len, dev))

SD_EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    CUresult result = device_ready(dev);
    if (result)
        return result;
    return pi && sim_attribute((int)attrib, dev, pi) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult memory_info(size_t *free_bytes, size_t *total)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    sd_lock();
    *total = sd_memory_total(context->device);
    *free_bytes = *total - sd_memory_used(context->device);
    sd_unlock();
    return CUDA_SUCCESS;
}

SD_ENTRY2(cuMemGetInfo_v2, size_t *, free, size_t *, total, memory_info(free, total))

SD_EXPORT unsigned memtrace_simulated_context_uid(CUcontext context)
{
    for (int i = 0; i < SD_CONTEXTS_MAX; i++)
        if (&contexts[i] == context && context->alive)
            return context->uid;
    return 0;
}

/* Starts a context: takes its own memory and a number, and notifies the tool. */
static CUresult begin_context(CUcontext context, int device)
{
    sd_lock();
    bool fits = sd_take(device, context_bytes);
    if (fits)
        *context = (struct CUctx_st){device, next_uid++, 0, true, CUDA_SUCCESS};
    sd_unlock();
    if (!fits)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sd_tell(SD_CONTEXT_CREATED, context, NULL, NULL);
    return CUDA_SUCCESS;
}

static void end_context(CUcontext context)
{
    sd_tell(SD_CONTEXT_DESTROY_STARTING, context, NULL, NULL);
    sd_lock();
    sd_drop_context(context);
    sd_give(context->device, context_bytes);
    context->alive = false;
    context->references = 0;
    sd_unlock();
}

static CUresult retain_primary(CUcontext *context, CUdevice device)
{
    CUresult result = device_ready(device);
    if (result)
        return result;
    if (!contexts[device].alive)
        result = begin_context(&contexts[device], device);
    if (!result) {
        contexts[device].references++;
        *context = &contexts[device];
    }
    return result;
}

SD_ENTRY2(cuDevicePrimaryCtxRetain, CUcontext *, pctx, CUdevice, dev, retain_primary(pctx, dev))

static CUresult release_primary(CUdevice device, bool reset)
{
    CUresult result = device_ready(device);
    if (result)
        return result;
    CUcontext context = &contexts[device];
    if (!context->alive)
        return reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (reset || --context->references == 0)
        end_context(context);
    return CUDA_SUCCESS;
}

SD_ENTRY1(cuDevicePrimaryCtxRelease_v2, CUdevice, dev, release_primary(dev, false))

SD_ENTRY1(cuDevicePrimaryCtxReset_v2, CUdevice, dev, release_primary(dev, true))

static CUresult create_context(CUcontext *context, CUdevice device)
{
    CUresult result = device_ready(device);
    if (result)
        return result;
    int slot = device_count;
    while (slot < SD_CONTEXTS_MAX && contexts[slot].alive)
        slot++;
    if (slot == SD_CONTEXTS_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = begin_context(&contexts[slot], device);
    if (!result)
        *context = &contexts[slot];
    return result ? result : sd_push(*context);
}

SD_ENTRY3(cuCtxCreate_v2, CUcontext *, pctx, unsigned int, flags, CUdevice, dev,
          create_context(pctx, dev))

SD_ENTRY4(cuCtxCreate_v4, CUcontext *, pctx, CUctxCreateParams *, ctxCreateParams, unsigned int,
          flags, CUdevice, dev, create_context(pctx, dev))

static CUresult destroy_context(CUcontext context)
{
    if (!memtrace_simulated_context_uid(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    end_context(context);
    sd_forget_current(context);
    return CUDA_SUCCESS;
}

SD_ENTRY1(cuCtxDestroy_v2, CUcontext, ctx, destroy_context(ctx))

SD_EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    *pctx = sd_current_or_null();
    return sd_initialized();
}

SD_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (!result)
        *device = context->device;
    return result;
}

SD_EXPORT CUresult cuCtxSynchronize(void)
{
    CUcontext context;
    return sd_current(&context);
}

/* Queries about contexts, pointers and handles. */

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
    return block ? block : sd_find_host_around(ptr);
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
