/* Every event has the totals of its device after it. They give the bytes that were in use before
 * the first event, the order of events of equal times, and show where events are missing. */
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "kineto_read.h"
#include "sorted.h"
#include "util.h"

enum {
    EQUAL_TIMES = 64,    /* events of one time that may change places */
    GAPS_BACK = 64,      /* where the allocation of a block may be missing */
    FIRST_UNKNOWN = 512, /* address of the blocks whose place is unknown, if no block is there */
};

MT_DEFINE_ORDER(by_time, struct mt_kineto_instant,
                MT_ASCENDING(t_ns) || MT_ASCENDING(index) || MT_ASCENDING(order))
MT_DEFINE_ORDER(by_gap, struct mt_kineto_lost, MT_ASCENDING(at) || MT_ASCENDING(instant))

void mt_kineto_sort(struct mt_kineto *profile, int (*order)(const void *, const void *))
{
    const struct mt_kineto_instant *instants = profile->instants;
    size_t i = 1;

    while (i < profile->instant_count && order(&instants[i - 1], &instants[i]) <= 0)
        i++;
    if (i < profile->instant_count)
        qsort(profile->instants, profile->instant_count, sizeof *instants, order);
}

/* The total before the event, by the total after it. Both are of the file. */
static int64_t total_before(const struct mt_kineto_instant *instant)
{
    return (int64_t)instant->allocated_bytes - instant->bytes;
}

/* Whether the total after the event follows from the total before it. */
static bool follows(const struct mt_kineto_device *device, const struct mt_kineto_instant *instant)
{
    if (instant->allocated_bytes == MT_NOT_COUNTED)
        return true;
    return device->is_seen
               ? !device->has_totals || total_before(instant) == (int64_t)device->allocated_bytes
               : total_before(instant) >= 0;
}

/* Threads report events of the same time in any order. Moves the one that follows to place `at`. */
static void order_equal_times(struct mt_kineto *profile, const struct mt_kineto_totals *totals,
                              size_t at)
{
    struct mt_kineto_instant *instants = profile->instants;
    const struct mt_kineto_device *device = &totals->devices[instants[at].device];
    const size_t end = mt_min_u64(profile->instant_count, at + EQUAL_TIMES);
    size_t i = at;

    while (i < end && instants[i].t_ns == instants[at].t_ns &&
           (instants[i].device != instants[at].device || !follows(device, &instants[i])))
        i++;
    if (i == at || i == end || instants[i].t_ns != instants[at].t_ns)
        return;
    struct mt_kineto_instant found = instants[i];
    memmove(&instants[at + 1], &instants[at], (i - at) * sizeof *instants);
    instants[at] = found;
}

static void follow_reserved(struct mt_kineto_device *device, uint64_t reserved_bytes)
{
    if (reserved_bytes == MT_NOT_COUNTED)
        return;
    if (!device->is_seen)
        device->start_reserved_bytes = reserved_bytes;
    else
        device->reserved_changes += reserved_bytes != device->reserved_bytes;
    device->reserved_bytes = reserved_bytes;
    device->most_reserved_bytes = mt_max_u64(device->most_reserved_bytes, reserved_bytes);
}

/* Blocks of `room_bytes` were allocated in the gap, and their events are missing. */
static enum mt_status add_gap(struct mt_kineto_totals *totals, struct mt_kineto_device *device,
                              uint32_t at, uint64_t room_bytes)
{
    if (mt_grow(&totals->gaps, &totals->gap_capacity, totals->gap_count + 1, sizeof *totals->gaps))
        return MT_ERR_MEMORY;
    totals->gaps[totals->gap_count] = (struct mt_kineto_gap){room_bytes, device->last_gap, at};
    device->last_gap = (uint32_t)++totals->gap_count;
    return MT_OK;
}

static enum mt_status follow_totals(const struct mt_kineto *profile,
                                    struct mt_kineto_totals *totals, uint32_t i)
{
    struct mt_kineto_instant *instant = &profile->instants[i];
    const uint64_t reserved_bytes = profile->reserved_bytes[instant->reserved];
    struct mt_kineto_device *device = &totals->devices[instant->device];
    const bool has_totals = instant->allocated_bytes != MT_NOT_COUNTED;
    enum mt_status status = MT_OK;

    instant->is_odd = !follows(device, instant);
    follow_reserved(device, reserved_bytes);
    if (!device->is_seen && has_totals) {
        device->has_start = true;
        device->start_bytes = (uint64_t)(total_before(instant) > 0 ? total_before(instant) : 0);
    } else if (instant->is_odd && total_before(instant) > (int64_t)device->allocated_bytes) {
        status =
            add_gap(totals, device, i, (uint64_t)total_before(instant) - device->allocated_bytes);
    }
    device->is_seen = true;
    device->has_totals = has_totals;
    device->allocated_bytes = instant->allocated_bytes;
    if (has_totals)
        device->most_allocated_bytes =
            mt_max_u64(device->most_allocated_bytes, instant->allocated_bytes);
    return status;
}

static uint64_t key_of(uint64_t addr, uint16_t device)
{
    return addr ^ mt_hash_u64(device);
}

/* The last gap where the block may have been allocated, after the free of another one at its
 * address (MT_MAP_NONE = none). */
static struct mt_kineto_gap *find_gap(struct mt_kineto_totals *totals,
                                      const struct mt_kineto_device *device, uint64_t bytes,
                                      uint32_t freed)
{
    uint32_t number = device->last_gap;

    for (int i = 0; i < GAPS_BACK && number; i++) {
        struct mt_kineto_gap *gap = &totals->gaps[number - 1];

        if (freed != MT_MAP_NONE && gap->at <= freed)
            return NULL;
        if (gap->room_bytes >= bytes)
            return gap;
        number = gap->before;
    }
    return NULL;
}

static enum mt_status note_change(struct mt_kineto_totals *totals, uint32_t instant, int64_t bytes)
{
    if (mt_grow(&totals->changes, &totals->change_capacity, totals->change_count + 1,
                sizeof *totals->changes))
        return MT_ERR_MEMORY;
    totals->changes[totals->change_count++] = (struct mt_kineto_change){bytes, instant};
    return MT_OK;
}

/* The allocation of a block that is freed is not in the file: the block is from before the first
 * event, or of a gap, or contradicts the totals. */
static enum mt_status find_start(struct mt_kineto_totals *totals, struct mt_kineto_instant *instant,
                                 uint32_t i)
{
    struct mt_kineto_device *device = &totals->devices[instant->device];
    const uint64_t bytes = mt_magnitude(instant->bytes);
    const uint32_t freed = mt_map_get(&totals->freed, key_of(instant->addr, instant->device));
    const bool fits = !device->has_start || bytes <= device->start_bytes - device->initial_bytes;
    struct mt_kineto_lost lost = {MT_KINETO_BEFORE, i};

    if (freed == MT_MAP_NONE && fits) {
        device->initial_bytes = mt_add_most_u64(device->initial_bytes, bytes);
    } else {
        struct mt_kineto_gap *gap = find_gap(totals, device, bytes, freed);
        if (!gap) {
            instant->is_odd = instant->is_left_out = true;
            return note_change(totals, i, 0);
        }
        gap->room_bytes -= bytes;
        lost.at = gap->at;
    }
    if (mt_grow(&totals->lost, &totals->lost_capacity, totals->lost_count + 1,
                sizeof *totals->lost))
        return MT_ERR_MEMORY;
    totals->lost[totals->lost_count++] = lost;
    return MT_OK;
}

/* Finds blocks whose allocation is missing, and events that do not fit the ones before. */
static enum mt_status follow_block(struct mt_kineto *profile, struct mt_kineto_totals *totals,
                                   uint32_t i)
{
    struct mt_kineto_instant *instants = profile->instants, *instant = &instants[i];
    const uint64_t key = key_of(instant->addr, instant->device);
    const uint32_t before = mt_map_take(&totals->alive, key);
    const int64_t before_bytes = before != MT_MAP_NONE ? instants[before].bytes : 0;
    const bool is_alloc = instant->bytes > 0;
    const int64_t change_bytes = (is_alloc ? instant->bytes : 0) - before_bytes;
    enum mt_status status = MT_OK;

    if (!is_alloc && before == MT_MAP_NONE) {
        status = find_start(totals, instant, i);
    } else if (change_bytes != instant->bytes) {
        instant->is_odd = true;
        status = note_change(totals, i, change_bytes);
    }
    return status == MT_OK ? mt_map_set(is_alloc ? &totals->alive : &totals->freed, key, i)
                           : status;
}

/* Sets the address of the blocks whose place is unknown to one that no block of the device has. */
static void choose_address(struct mt_kineto_totals *totals, uint16_t number)
{
    uint64_t addr = FIRST_UNKNOWN;

    while (mt_map_find(&totals->alive, key_of(addr, number)) != MT_MAP_NONE ||
           mt_map_find(&totals->freed, key_of(addr, number)) != MT_MAP_NONE)
        addr += FIRST_UNKNOWN;
    totals->devices[number].unknown_addr = addr;
}

enum mt_status mt_kineto_follow(struct mt_kineto *profile, struct mt_kineto_totals *totals)
{
    enum mt_status status = MT_OK;

    totals->devices = calloc(MT_KINETO_DEVICES, sizeof *totals->devices);
    if (!totals->devices)
        return MT_ERR_MEMORY;
    mt_kineto_sort(profile, by_time);
    for (uint32_t i = 0; i < profile->instant_count && status == MT_OK; i++) {
        order_equal_times(profile, totals, i);
        struct mt_kineto_instant *instant = &profile->instants[i];
        totals->devices[instant->device].is_used = true;
        if (instant->is_oom)
            continue;
        status = follow_totals(profile, totals, i);
        if (status == MT_OK)
            status = follow_block(profile, totals, i);
        totals->devices[instant->device].gaps += instant->is_odd;
    }
    for (uint16_t i = 0; i < MT_KINETO_DEVICES; i++)
        choose_address(totals, i);
    if (totals->lost_count)
        qsort(totals->lost, totals->lost_count, sizeof *totals->lost, by_gap);
    return status;
}

void mt_kineto_totals_release(struct mt_kineto_totals *totals)
{
    mt_map_release(&totals->alive);
    mt_map_release(&totals->freed);
    free(totals->devices);
    free(totals->gaps);
    free(totals->changes);
    free(totals->lost);
    *totals = (struct mt_kineto_totals){0};
}
