#include "policy_observer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "event.h"
#include "util.h"

__attribute__((format(printf, 2, 3))) static void complain(struct policy_observer *observer,
                                                           const char *format, ...)
{
    va_list arguments;

    if (observer->trouble[0])
        return;
    va_start(arguments, format);
    vsnprintf(observer->trouble, sizeof observer->trouble, format, arguments);
    va_end(arguments);
}

static uint64_t overlap(uint64_t addr, uint64_t size, uint64_t other_addr, uint64_t other_size)
{
    uint64_t begin = mt_max_u64(addr, other_addr);
    uint64_t end = mt_min_u64(addr + size, other_addr + other_size);

    return begin < end ? end - begin : 0;
}

static uint64_t held_within(const struct policy_observer *observer, uint64_t addr, uint64_t size)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < observer->range_count; i++)
        bytes += overlap(addr, size, observer->ranges[i].addr, observer->ranges[i].size);
    return bytes;
}

static void hold(struct policy_observer *observer, uint64_t addr, uint64_t size)
{
    if (held_within(observer, addr, size) != 0)
        complain(observer, "the device's memory at %#" PRIx64 " is taken twice", addr);
    for (size_t i = 0; i < observer->range_count; i++) {
        if (observer->ranges[i].addr + observer->ranges[i].size == addr) {
            observer->ranges[i].size += size;
            return;
        }
    }
    if (observer->range_count == OBSERVER_RANGES)
        complain(observer, "more ranges than the observer has room for");
    else
        observer->ranges[observer->range_count++] = (struct observed_range){addr, size};
}

static void let_go(struct policy_observer *observer, uint64_t addr, uint64_t size)
{
    if (held_within(observer, addr, size) != size)
        complain(observer, "memory at %#" PRIx64 " goes back that is not held", addr);
    for (size_t i = 0; i < observer->count; i++) {
        const struct mt_policy_block *block = &observer->blocks[i].block;
        if (overlap(addr, size, block->addr, block->size_bytes) != 0)
            complain(observer, "the block at %#" PRIx64 " goes back while in use", block->addr);
    }
    for (size_t i = observer->range_count; i-- > 0;) {
        struct observed_range range = observer->ranges[i];
        if (overlap(addr, size, range.addr, range.size) == 0)
            continue;
        observer->ranges[i] = observer->ranges[--observer->range_count];
        if (range.addr < addr)
            hold(observer, range.addr, addr - range.addr);
        if (range.addr + range.size > addr + size)
            hold(observer, addr + size, range.addr + range.size - addr - size);
    }
}

static void follow_op(struct policy_observer *observer, const struct mt_device_op *op)
{
    struct mt_counters *counted = &observer->counted;

    switch (op->kind) {
    case MT_EVENT_SEGMENT_ALLOC: mt_level_add(&counted->segments, 1); /* fall through */
    case MT_EVENT_SEGMENT_MAP:
        mt_level_add(&counted->reserved, op->size_bytes);
        counted->device_allocs++;
        hold(observer, op->addr, op->size_bytes);
        break;
    case MT_EVENT_SEGMENT_FREE: mt_level_sub(&counted->segments, 1); /* fall through */
    case MT_EVENT_SEGMENT_UNMAP:
        mt_level_sub(&counted->reserved, op->size_bytes);
        counted->device_frees++;
        let_go(observer, op->addr, op->size_bytes);
        break;
    default: complain(observer, "the device got an unknown request");
    }
    if (op->after.reserved.now != counted->reserved.now)
        complain(observer, "reserved is %" PRIu64 " after a call, not %" PRIu64,
                 op->after.reserved.now, counted->reserved.now);
}

void observer_took(struct policy_observer *observer, uint64_t size_bytes,
                   const struct mt_policy_block *block)
{
    observer_look(observer);
    if (block->size_bytes < size_bytes)
        complain(observer, "the block is shorter than the request");
    if (block->addr % observer->alignment != 0)
        complain(observer, "the block at %#" PRIx64 " is not aligned", block->addr);
    if (!observer->unlogged &&
        held_within(observer, block->addr, block->size_bytes) != block->size_bytes)
        complain(observer, "the block at %#" PRIx64 " is not in memory that is held", block->addr);
    for (size_t i = 0; i < observer->count; i++) {
        const struct mt_policy_block *other = &observer->blocks[i].block;
        if (overlap(block->addr, block->size_bytes, other->addr, other->size_bytes) != 0)
            complain(observer, "blocks at %#" PRIx64 " and %#" PRIx64 " overlap", block->addr,
                     other->addr);
    }
    observer->counted.allocations++;
    mt_level_add(&observer->counted.allocated, block->size_bytes);
    mt_level_add(&observer->counted.active, block->size_bytes);
    mt_level_add(&observer->counted.requested, size_bytes);
    if (observer->count == OBSERVER_BLOCKS)
        complain(observer, "more blocks than the observer has room for");
    else
        observer->blocks[observer->count++] = (struct observed_block){*block, size_bytes, false};
}

void observer_free_requested(struct policy_observer *observer, size_t i)
{
    observer->blocks[i].pending = true;
    observer->counted.frees++;
    mt_level_sub(&observer->counted.allocated, observer->blocks[i].block.size_bytes);
}

void observer_free_completed(struct policy_observer *observer, size_t i)
{
    struct observed_block freed = observer->blocks[i];

    observer->blocks[i] = observer->blocks[--observer->count];
    mt_level_sub(&observer->counted.active, freed.block.size_bytes);
    mt_level_sub(&observer->counted.requested, freed.requested);
}

static void compare_level(struct policy_observer *observer, const char *name,
                          struct mt_level policy, struct mt_level seen)
{
    if (policy.now != seen.now)
        complain(observer, "%s is %" PRIu64 ", not %" PRIu64, name, policy.now, seen.now);
    if (policy.peak != seen.peak)
        complain(observer, "the peak of %s is %" PRIu64 ", not %" PRIu64, name, policy.peak,
                 seen.peak);
}

static void compare_count(struct policy_observer *observer, const char *name, uint64_t policy,
                          uint64_t seen)
{
    if (policy != seen)
        complain(observer, "%s are %" PRIu64 ", not %" PRIu64, name, policy, seen);
}

/* What has no source but the policy: its level is believed, its peak is not. */
static void follow(struct mt_level *seen, struct mt_level policy)
{
    seen->now = policy.now;
    seen->peak = mt_max_u64(seen->peak, policy.now);
}

void observer_look(struct policy_observer *observer)
{
    const struct mt_device_model *device = observer->device;
    const struct mt_counters *counters = observer->ops->counters(observer->policy);
    struct mt_counters *counted = &observer->counted;

    for (; observer->seen < device->op_count; observer->seen++) {
        follow(&counted->inactive_split, device->ops[observer->seen].after.inactive_split);
        follow_op(observer, &device->ops[observer->seen]);
    }
    follow(&counted->inactive_split, counters->inactive_split);
    if (observer->unlogged) {
        follow(&counted->reserved, counters->reserved);
        follow(&counted->segments, counters->segments);
    }
    if (device->limit_bytes && counters->reserved.peak > device->limit_bytes + observer->overshoot)
        complain(observer, "reserved was %" PRIu64 ", beyond the limit", counters->reserved.peak);
    if (counters->active.now > counters->reserved.now)
        complain(observer, "more is active than reserved");
}

void observer_new_log(struct policy_observer *observer)
{
    observer->seen = 0;
}

void observer_compare(struct policy_observer *observer)
{
    const struct mt_counters *counters = observer->ops->counters(observer->policy);
    const struct mt_counters *counted = &observer->counted;

    observer_look(observer);
    compare_level(observer, "requested", counters->requested, counted->requested);
    compare_level(observer, "allocated", counters->allocated, counted->allocated);
    compare_level(observer, "active", counters->active, counted->active);
    compare_level(observer, "reserved", counters->reserved, counted->reserved);
    compare_level(observer, "inactive split", counters->inactive_split, counted->inactive_split);
    compare_level(observer, "segments", counters->segments, counted->segments);
    compare_count(observer, "allocations", counters->allocations, counted->allocations);
    compare_count(observer, "frees", counters->frees, counted->frees);
    if (observer->unlogged)
        return;
    compare_count(observer, "device allocs", counters->device_allocs, counted->device_allocs);
    compare_count(observer, "device frees", counters->device_frees, counted->device_frees);
}

void observer_look_inside(struct policy_observer *observer)
{
    const char *why = "";

    observer_compare(observer);
    if (!observer->ops->is_sound(observer->policy, &why))
        complain(observer, "the policy's structure is broken: %s", why);
}
