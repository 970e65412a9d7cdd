#include "device_model.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "util.h"

void mt_device_init(struct mt_device_model *device, uint64_t limit_bytes,
                    uint64_t total_memory_bytes, bool use_bases)
{
    memset(device, 0, sizeof *device);
    device->limit_bytes = limit_bytes;
    device->total_memory_bytes = total_memory_bytes;
    device->use_bases = use_bases;
    device->least_refused_bytes = UINT64_MAX;
    mt_address_space_init(&device->space, (struct mt_base_order){MT_ADDRESSES_DRIVER, 0});
}

void mt_device_order_addresses(struct mt_device_model *device, struct mt_base_order order)
{
    MT_ASSERT(device->space.count == 0);
    mt_address_space_init(&device->space, order);
}

void mt_device_release(struct mt_device_model *device)
{
    free(device->ops);
    free(device->bases);
    mt_address_space_release(&device->space);
    memset(device, 0, sizeof *device);
}

void mt_device_clear(struct mt_device_model *device)
{
    device->op_count = 0;
    device->base_count = 0;
}

void mt_device_base(struct mt_device_model *device, uint8_t kind, uint64_t size_bytes,
                    uint64_t va_bytes, uint32_t stream, uint64_t *addr)
{
    size_t i;

    MT_ASSERT(kind == MT_EVENT_SEGMENT_ALLOC || kind == MT_EVENT_SEGMENT_MAP);
    MT_ASSERT(kind == MT_EVENT_SEGMENT_ALLOC ? size_bytes > 0 : va_bytes >= size_bytes);
    for (i = 0; device->use_bases && i < device->base_count; i++) {
        struct mt_device_base *base = &device->bases[i];
        if (base->used || base->kind != kind || base->stream != stream)
            continue;
        if (kind == MT_EVENT_SEGMENT_ALLOC && base->size_bytes != size_bytes)
            continue;
        base->used = true;
        *addr = base->addr;
        return;
    }
    if (device->use_bases && !device->bases_missing)
        device->certain_ties = device->address_ties;
    device->bases_missing++;
    mt_address_space_take(&device->space, kind == MT_EVENT_SEGMENT_MAP ? va_bytes : size_bytes,
                          addr);
}

uint64_t mt_device_open_ties(const struct mt_device_model *device)
{
    MT_ASSERT(device->certain_ties <= device->address_ties);
    if (device->use_bases && !device->bases_missing)
        return 0;
    return device->address_ties - device->certain_ties;
}

void mt_device_log(struct mt_device_model *device, uint8_t kind, uint64_t addr, uint64_t size_bytes,
                   uint32_t stream, const struct mt_counters *after)
{
    mt_grow_to(&device->ops, &device->op_capacity, device->op_count + 1, sizeof *device->ops);
    MT_ASSERT(kind >= MT_EVENT_SEGMENT_ALLOC && kind <= MT_EVENT_SEGMENT_UNMAP && size_bytes > 0);
    MT_ASSERT(after->reserved.now <= after->reserved.peak);
    if (kind == MT_EVENT_SEGMENT_FREE)
        mt_address_space_give(&device->space, addr);
    device->ops[device->op_count++] = (struct mt_device_op){kind, stream, addr, size_bytes, *after};
}

void mt_device_offer_base(struct mt_device_model *device, const struct mt_event *event,
                          uint16_t pool)
{
    mt_grow_to(&device->bases, &device->base_capacity, device->base_count + 1,
               sizeof *device->bases);
    device->bases[device->base_count++] = (struct mt_device_base){
        event->kind, false, pool, event->stream, event->addr, event->size_bytes};
}

bool mt_device_is_sound(const struct mt_device_model *device, const char **why)
{
    size_t i;

    if (!mt_address_space_is_sound(&device->space, why))
        return false;
    MT_SOUND(why, device->certain_ties <= device->address_ties);
    for (i = 0; i < device->op_count; i++) {
        const struct mt_device_op *op = &device->ops[i];
        MT_SOUND(why, op->kind >= MT_EVENT_SEGMENT_ALLOC && op->kind <= MT_EVENT_SEGMENT_UNMAP);
        MT_SOUND(why, op->size_bytes > 0);
        MT_SOUND(why, !i || op[-1].after.device_allocs + op[-1].after.device_frees <
                                op->after.device_allocs + op->after.device_frees);
    }
    return true;
}
