#include "device_model.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
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
    free(device->regions);
    memset(device, 0, sizeof *device);
}

void mt_device_clear(struct mt_device_model *device)
{
    device->op_count = 0;
    device->base_count = 0;
}

/* Virtual address space of a multiple of 32 MiB. Segments fill it from below;
 * what is left above `used_end` serves later, smaller ones. */
struct mt_address_region {
    uint64_t used_end, end;
};

static const uint64_t REGION_BYTES = 32 * MT_MIB;
static const uint64_t MAX_SEGMENT = (uint64_t)1 << 45;

static uint64_t room_in(const struct mt_address_region *region)
{
    return region->end - region->used_end;
}

/* The smallest tail that has room, the newest of equal ones; 0 if none has. */
static uint64_t base_in_tail(struct mt_device_model *device, uint64_t size_bytes)
{
    struct mt_address_region *best = NULL;
    uint64_t base;
    size_t i;

    for (i = device->region_count; i-- > 0;) {
        struct mt_address_region *region = &device->regions[i];
        if (room_in(region) >= size_bytes && (!best || room_in(region) < room_in(best)))
            best = region;
    }
    if (!best)
        return 0;
    base = best->used_end;
    best->used_end += size_bytes;
    MT_ASSERT(best->used_end <= best->end && base % (2 * MT_MIB) == 0);
    if (room_in(best) < 2 * MT_MIB) { /* full: forget it */
        size_t at = (size_t)(best - device->regions);
        device->region_count--;
        memmove(best, best + 1, (device->region_count - at) * sizeof *best);
    }
    return base;
}

/* Remembers the tail of a new region; without memory for it the tail is lost,
 * which only changes addresses. */
static void remember_tail(struct mt_device_model *device, uint64_t used_end, uint64_t end)
{
    if (mt_grow(&device->regions, &device->region_capacity, device->region_count + 1,
                sizeof *device->regions) == MT_OK)
        device->regions[device->region_count++] = (struct mt_address_region){used_end, end};
}

static uint64_t synthetic_base(struct mt_device_model *device, uint64_t size_bytes)
{
    uint64_t size = mt_round_up(mt_min_u64(size_bytes, MAX_SEGMENT), 2 * MT_MIB);
    uint64_t region = mt_round_up(size, REGION_BYTES), base;

    MT_ASSERT(size <= region && region - size < REGION_BYTES);
    if (size < REGION_BYTES && (base = base_in_tail(device, size)) != 0)
        return base;
    if (device->next_synthetic < region + REGION_BYTES) {
        device->next_synthetic = SYNTHETIC_TOP; /* 2^46 bytes were handed out */
        device->region_count = 0;
    }
    device->next_synthetic -= region;
    base = device->next_synthetic;
    MT_ASSERT(base >= REGION_BYTES && base + region <= SYNTHETIC_TOP);
    if (region - size >= 2 * MT_MIB)
        remember_tail(device, base + size, base + region);
    return base;
}

uint64_t mt_device_base(struct mt_device_model *device, uint8_t kind, uint64_t size_bytes,
                        uint64_t va_bytes, uint32_t stream)
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
        return base->addr;
    }
    if (device->use_bases && !device->bases_missing)
        device->certain_ties = device->address_ties;
    device->bases_missing++;
    return synthetic_base(device, kind == MT_EVENT_SEGMENT_MAP ? va_bytes : size_bytes);
}

uint64_t mt_device_open_ties(const struct mt_device_model *device)
{
    MT_ASSERT(device->certain_ties <= device->address_ties);
    if (device->use_bases && !device->bases_missing)
        return 0;
    return device->address_ties - device->certain_ties;
}

enum mt_status mt_device_log(struct mt_device_model *device, uint8_t kind, uint64_t addr,
                             uint64_t size_bytes, uint32_t stream, const struct mt_counters *after)
{
    enum mt_status status =
        mt_grow(&device->ops, &device->op_capacity, device->op_count + 1, sizeof *device->ops);

    MT_ASSERT(kind >= MT_EVENT_SEGMENT_ALLOC && kind <= MT_EVENT_SEGMENT_UNMAP && size_bytes > 0);
    MT_ASSERT(after->reserved.now <= after->reserved.peak);
    if (status == MT_OK)
        device->ops[device->op_count++] =
            (struct mt_device_op){kind, stream, addr, size_bytes, *after};
    return status;
}

enum mt_status mt_device_offer_base(struct mt_device_model *device, const struct mt_event *event,
                                    uint16_t pool)
{
    enum mt_status status = mt_grow(&device->bases, &device->base_capacity, device->base_count + 1,
                                    sizeof *device->bases);

    if (status == MT_OK)
        device->bases[device->base_count++] = (struct mt_device_base){
            event->kind, false, pool, event->stream, event->addr, event->size_bytes};
    return status;
}

static bool regions_are_sound(const struct mt_device_model *device, const char **why)
{
    size_t i;

    for (i = 0; i < device->region_count; i++) {
        const struct mt_address_region *region = &device->regions[i];
        MT_SOUND(why, region->used_end < region->end);
        MT_SOUND(why, room_in(region) >= 2 * MT_MIB && room_in(region) < REGION_BYTES);
        MT_SOUND(why, region->used_end % (2 * MT_MIB) == 0);
        MT_SOUND(why, region->used_end > device->next_synthetic);
    }
    return true;
}

bool mt_device_is_sound(const struct mt_device_model *device, const char **why)
{
    size_t i;

    if (!regions_are_sound(device, why))
        return false;
    MT_SOUND(why, device->next_synthetic <= SYNTHETIC_TOP);
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
