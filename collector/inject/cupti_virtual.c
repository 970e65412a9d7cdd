/* Decoders of physical memory, address ranges and mappings. Physical memory is alive while a handle
 * to it or a mapping of it exists. */
#include "collect.h"
#include "cupti_abi.h"
#include "cupti_contexts.h"
#include "cupti_tell.h"

void mt_cupti_exit_reserve(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    if (call->result || !params->dptr) {
        mt_cupti_tell_failed(call, MT_RAW_RESERVED, params->bytesize);
        return;
    }
    struct mt_live_block block = {.addr = *params->dptr,
                                  .size_bytes = params->bytesize,
                                  .space = MT_LIVE_RESERVED,
                                  .heap = MT_RAW_RESERVED,
                                  .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_tell_alloc(call, &block, 0);
}

void mt_cupti_enter_address_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_RESERVED, ((const struct mt_cu_range *)call->params)->ptr, 0);
}

static bool is_on_host(const struct mt_cu_allocation_prop *prop)
{
    return prop && prop->location.type > MT_CU_LOCATION_DEVICE;
}

static uint8_t device_of(const struct mt_cu_allocation_prop *prop)
{
    bool known = prop && prop->location.type == MT_CU_LOCATION_DEVICE && prop->location.id >= 0 &&
                 prop->location.id < (int)MT_CU_UNKNOWN_DEVICE;
    return known ? (uint8_t)prop->location.id : MT_CU_UNKNOWN_DEVICE;
}

void mt_cupti_exit_create(const struct mt_cupti_call *call)
{
    const struct mt_cu_create *params = call->params;
    enum mt_raw_heap heap = is_on_host(params->prop) ? MT_RAW_HOST : MT_RAW_VIRTUAL;
    if (call->result || !params->handle) {
        mt_cupti_tell_failed(call, heap, params->size);
        return;
    }
    struct mt_live_block block = {.addr = *params->handle,
                                  .size_bytes = params->size,
                                  .references = 1,
                                  .space = MT_LIVE_PHYSICAL,
                                  .heap = (uint8_t)heap,
                                  .device = device_of(params->prop)};
    mt_cupti_tell_alloc(call, &block, 0);
}

/* Memory of another process, of which only a handle is known, or memory of this process under a
 * known handle. */
void mt_cupti_exit_import(const struct mt_cupti_call *call)
{
    const struct mt_cu_import *params = call->params;
    struct mt_live_block known;
    if (call->result || !params->out)
        return;
    if (mt_live_count(MT_LIVE_PHYSICAL, *params->out, 1, 0, &known) != MT_LIVE_UNKNOWN)
        return;
    struct mt_live_block block = {.addr = *params->out,
                                  .references = 1,
                                  .space = MT_LIVE_PHYSICAL,
                                  .heap = MT_RAW_IMPORTED,
                                  .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_tell_alloc(call, &block, 0);
}

void mt_cupti_exit_retain(const struct mt_cupti_call *call)
{
    const struct mt_cu_retain *params = call->params;
    struct mt_live_block known;
    if (call->result == 0 && params->handle)
        (void)mt_live_count(MT_LIVE_PHYSICAL, *params->handle, 1, 0, &known);
}

void mt_cupti_enter_release(const struct mt_cupti_call *call)
{
    mt_cupti_let_go(((const struct mt_cu_handle *)call->params)->value, 1, 0);
}

void mt_cupti_exit_map(const struct mt_cupti_call *call)
{
    const struct mt_cu_map *params = call->params;
    struct mt_live_block physical = {.device = MT_CU_UNKNOWN_DEVICE};
    if (call->result) {
        mt_cupti_tell_failed(call, MT_RAW_MAPPED, params->size);
        return;
    }
    (void)mt_live_count(MT_LIVE_PHYSICAL, params->handle, 0, 1, &physical);
    struct mt_live_block block = {.addr = params->ptr,
                                  .size_bytes = params->size,
                                  .handle = params->handle,
                                  .space = MT_LIVE_MAPPED,
                                  .heap = MT_RAW_MAPPED,
                                  .device = physical.device};
    mt_cupti_tell_alloc(call, &block, 0);
}

/* One call may end several adjacent mappings. */
void mt_cupti_enter_unmap(const struct mt_cupti_call *call)
{
    const struct mt_cu_range *params = call->params;
    uint64_t addr = params->ptr, left = params->size;
    struct mt_live_block mapping;
    while (left && mt_live_find(MT_LIVE_MAPPED, addr, &mapping)) {
        (void)mt_cupti_free(MT_LIVE_MAPPED, addr, 0);
        mt_cupti_let_go(mapping.handle, 0, 1);
        if (mapping.size_bytes == 0 || mapping.size_bytes >= left)
            break;
        addr += mapping.size_bytes;
        left -= mapping.size_bytes;
    }
}
