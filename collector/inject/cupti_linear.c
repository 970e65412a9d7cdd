/* Decoders of device memory, host memory and arrays. */
#include "collect.h"
#include "cupti_abi.h"
#include "cupti_array_bytes.h"
#include "cupti_contexts.h"
#include "cupti_tell.h"

/* Reports a new block of the current context, or a failed allocation. */
static void tell(const struct mt_cupti_call *call, enum mt_live_space space, enum mt_raw_heap heap,
                 const uint64_t *addr, size_t bytes)
{
    if (call->result || !addr) {
        mt_cupti_tell_failed(call, heap, bytes);
        return;
    }
    struct mt_live_block block = {.addr = *addr,
                                  .size_bytes = bytes,
                                  .context = call->context,
                                  .space = (uint8_t)space,
                                  .heap = (uint8_t)heap,
                                  .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_tell_alloc(call, &block, 0);
}

void mt_cupti_exit_alloc(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    tell(call, MT_LIVE_DEVICE, MT_RAW_DRIVER, params->dptr, params->bytesize);
}

void mt_cupti_exit_managed(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    tell(call, MT_LIVE_DEVICE, MT_RAW_MANAGED, params->dptr, params->bytesize);
}

void mt_cupti_exit_pitch(const struct mt_cupti_call *call)
{
    const struct mt_cu_pitch *params = call->params;
    bool known = call->result == 0 && params->pPitch;
    size_t row = known ? *params->pPitch : params->WidthInBytes, bytes;
    if (__builtin_mul_overflow(row, params->Height, &bytes))
        bytes = SIZE_MAX;
    tell(call, MT_LIVE_DEVICE, MT_RAW_DRIVER, params->dptr, bytes);
}

void mt_cupti_enter_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_DEVICE, ((const struct mt_cu_handle *)call->params)->value, 0);
}

void mt_cupti_exit_host_alloc(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    tell(call, MT_LIVE_HOST, MT_RAW_HOST, params->dptr, params->bytesize);
}

void mt_cupti_exit_register(const struct mt_cupti_call *call)
{
    const struct mt_cu_register *params = call->params;
    tell(call, MT_LIVE_HOST, MT_RAW_HOST, &params->p, params->bytesize);
}

void mt_cupti_enter_host_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_HOST, ((const struct mt_cu_handle *)call->params)->value, 0);
}

void mt_cupti_exit_array(const struct mt_cupti_call *call)
{
    const struct mt_cu_array_create *params = call->params;
    const struct mt_cu_array_descriptor *flat = params->pAllocateArray;
    struct mt_cu_array3d_descriptor deep = {0};
    if (flat)
        deep = (struct mt_cu_array3d_descriptor){.Width = flat->Width,
                                                 .Height = flat->Height,
                                                 .Format = flat->Format,
                                                 .NumChannels = flat->NumChannels};
    tell(call, MT_LIVE_ARRAY, MT_RAW_ARRAY, params->pHandle, mt_cupti_array_bytes(&deep, 1));
}

void mt_cupti_exit_array3d(const struct mt_cupti_call *call)
{
    const struct mt_cu_array_create *params = call->params;
    tell(call, MT_LIVE_ARRAY, MT_RAW_ARRAY, params->pHandle,
         mt_cupti_array_bytes(params->pAllocateArray, 1));
}

void mt_cupti_exit_mipmapped(const struct mt_cupti_call *call)
{
    const struct mt_cu_mipmapped_create *params = call->params;
    tell(call, MT_LIVE_MIPMAPPED, MT_RAW_ARRAY, params->pHandle,
         mt_cupti_array_bytes(params->pMipmappedArrayDesc, params->numMipmapLevels));
}

void mt_cupti_enter_array_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_ARRAY, ((const struct mt_cu_handle *)call->params)->value, 0);
}

void mt_cupti_enter_mipmapped_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_MIPMAPPED, ((const struct mt_cu_handle *)call->params)->value, 0);
}
