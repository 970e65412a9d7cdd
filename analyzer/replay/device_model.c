#include "device_model.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

/* Synthetic addresses start here and go down. Recorded ones lie above
 * (0x7f0000000000 on Linux), so the two never overlap. */
static const uint64_t SYNTHETIC_TOP = UINT64_C(1) << 46;

void mt_device_init(struct mt_device_model *device, uint64_t limit_bytes,
                    uint64_t total_memory_bytes, bool use_bases)
{
    memset(device, 0, sizeof *device);
    device->limit_bytes = limit_bytes;
    device->total_memory_bytes = total_memory_bytes;
    device->next_synthetic = SYNTHETIC_TOP;
    device->use_bases = use_bases;
}

void mt_device_release(struct mt_device_model *device)
{
    free(device->ops);
    free(device->bases);
    memset(device, 0, sizeof *device);
}

void mt_device_clear(struct mt_device_model *device)
{
    device->op_count = 0;
    device->base_count = 0;
}

/* Addresses never run out in practice: 2^46 bytes of requests would have to be
 * reserved. If they do, the supply starts again from the top. */
static uint64_t synthetic_base(struct mt_device_model *device, uint64_t size_bytes)
{
    uint64_t size = size_bytes > SYNTHETIC_TOP / 2 ? SYNTHETIC_TOP / 2
                                                   : mt_round_up(size_bytes, 2 * MT_MIB);

    if (device->next_synthetic < size + 2 * MT_MIB)
        device->next_synthetic = SYNTHETIC_TOP;
    device->next_synthetic -= size;
    return device->next_synthetic;
}

uint64_t mt_device_base(struct mt_device_model *device, uint8_t kind, uint64_t size_bytes,
                        uint64_t va_bytes, uint32_t stream)
{
    size_t i;

    for (i = 0; device->use_bases && i < device->base_count; i++) {
        struct mt_device_base *base = &device->bases[i];
        if (base->used || base->kind != kind || base->stream != stream)
            continue;
        if (kind == MT_EVENT_SEGMENT_ALLOC && base->size_bytes != size_bytes)
            continue;
        base->used = true;
        return base->addr;
    }
    device->bases_missing++;
    return synthetic_base(device, kind == MT_EVENT_SEGMENT_MAP ? va_bytes : size_bytes);
}

enum mt_status mt_device_log(struct mt_device_model *device, uint8_t kind, uint64_t addr,
                             uint64_t size_bytes, uint32_t stream, const struct mt_counters *after)
{
    if (device->op_count == device->op_capacity) {
        size_t capacity = device->op_capacity ? device->op_capacity * 2 : 16;
        struct mt_device_op *ops = realloc(device->ops, capacity * sizeof *ops);
        if (!ops)
            return MT_ERR_MEMORY;
        device->ops = ops;
        device->op_capacity = capacity;
    }
    device->ops[device->op_count++] =
        (struct mt_device_op){kind, stream, addr, size_bytes, *after};
    return MT_OK;
}

enum mt_status mt_device_offer_base(struct mt_device_model *device, const struct mt_event *event)
{
    if (device->base_count == device->base_capacity) {
        size_t capacity = device->base_capacity ? device->base_capacity * 2 : 16;
        struct mt_device_base *bases = realloc(device->bases, capacity * sizeof *bases);
        if (!bases)
            return MT_ERR_MEMORY;
        device->bases = bases;
        device->base_capacity = capacity;
    }
    device->bases[device->base_count++] = (struct mt_device_base){
        event->kind, false, event->stream, event->addr, event->size_bytes};
    return MT_OK;
}
