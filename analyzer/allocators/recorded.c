/* The policy `recorded`: no simulation. Segments and blocks are at their recorded places. Only
 * missing facts are derived: the size of a block, by PyTorch's split rule applied to the free block
 * at its address. For traces whose allocator is unknown, or does something that no policy can
 * explain. */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>

#include "block_store.h"
#include "check.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "util.h"

/* A block outside of all segments of the trace is a segment of its own. */
enum { RESERVATION_OWN = 1 };

struct mt_policy {
    struct mt_pytorch_config config;
    const struct mt_device_model *device;
    struct mt_block_store store;
    struct mt_free_set by_addr; /* every block: key (address, 0) */
    struct mt_counters counters;
    bool flushed;        /* segments were released after the last request */
    bool explicit_flush; /* ... because the program emptied the cache */
};

static void destroy(struct mt_policy *self)
{
    mt_block_store_release(&self->store);
    mt_free_set_release(&self->by_addr);
    free(self);
}

static enum mt_status create(const struct mt_policy_setup *setup, struct mt_policy **policy,
                             struct mt_error *error)
{
    struct mt_policy *self;

    if (setup->options && *setup->options)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "policy 'recorded' has no options");
    self = mt_memory_zeroed(1, sizeof *self);
    self->device = setup->device;
    /* with unreadable options, only the sizes of blocks are less exact */
    if (mt_pytorch_config_recorded(setup->header, &self->config, NULL) != MT_OK)
        mt_pytorch_config_defaults(&self->config);
    snprintf(setup->spelling, setup->spelling_size, "recorded");
    *policy = self;
    return MT_OK;
}

static struct mt_free_entry entry_of(const struct mt_policy *self, uint32_t id)
{
    return (struct mt_free_entry){.size_bytes = self->store.blocks[id].addr, .block = id};
}

static void file(struct mt_policy *self, uint32_t id)
{
    mt_free_set_insert(&self->by_addr, entry_of(self, id));
}

static void unfile(struct mt_policy *self, uint32_t id)
{
    bool was_filed = mt_free_set_remove(&self->by_addr, entry_of(self, id));

    (void)was_filed;
    MT_ASSERT(was_filed);
}

/* Returns the block that contains addr, or MT_NO_BLOCK. */
static uint32_t block_at(const struct mt_policy *self, uint64_t addr)
{
    struct mt_free_cursor at = mt_free_set_find(&self->by_addr, addr, 1);

    at = mt_free_set_previous(&self->by_addr, at);
    if (!at.entry)
        return MT_NO_BLOCK;
    const struct mt_block *block = &self->store.blocks[at.entry->block];
    return addr - block->addr < block->size_bytes ? at.entry->block : MT_NO_BLOCK;
}

static void merge_free(struct mt_policy *self, uint32_t id, uint32_t other, uint64_t *merged)
{
    if (other == MT_NO_BLOCK || self->store.blocks[other].state != MT_BLOCK_FREE)
        return;
    MT_ASSERT(self->store.blocks[id].state == MT_BLOCK_FREE);
    *merged += self->store.blocks[other].size_bytes;
    unfile(self, other);
    mt_block_merge(&self->store, id, other);
}

/* Cuts block `id` at `addr`; *high is the part at and above addr. */
static void cut(struct mt_policy *self, uint32_t id, uint64_t addr, uint32_t *high)
{
    mt_block_split(&self->store, id, addr - self->store.blocks[id].addr, high);
    file(self, *high);
}

/* Makes two adjacent expandable blocks neighbors. */
static void join(struct mt_policy *self, uint32_t low, uint32_t high)
{
    struct mt_block *below = &self->store.blocks[low], *above = &self->store.blocks[high];

    /* segments of a damaged trace may overlap: these are not adjacent */
    if (below->expandable && above->expandable && below->stream == above->stream &&
        below->addr + below->size_bytes == above->addr && below->next == MT_NO_BLOCK &&
        above->previous == MT_NO_BLOCK) {
        below->next = high;
        above->previous = low;
    }
}

static void add_segment(struct mt_policy *self, const struct mt_event *event)
{
    struct mt_block fresh = {0};
    uint32_t id, below = event->addr ? block_at(self, event->addr - 1) : MT_NO_BLOCK;
    uint64_t merged = 0;

    fresh.addr = event->addr;
    fresh.size_bytes = event->size_bytes;
    fresh.state = MT_BLOCK_FREE;
    fresh.stream = event->stream;
    fresh.expandable = event->kind == MT_EVENT_SEGMENT_MAP;
    if (!fresh.size_bytes || fresh.addr + fresh.size_bytes < fresh.addr ||
        fresh.size_bytes > MT_MAX_TOTAL_BYTES - self->counters.reserved.now ||
        block_at(self, fresh.addr) != MT_NO_BLOCK)
        return; /* impossible; the engine counts inexact events */
    mt_block_new(&self->store, &fresh, &id);
    mt_level_add(&self->counters.reserved, fresh.size_bytes);
    self->counters.device_allocs++;
    if (!fresh.expandable) {
        mt_level_add(&self->counters.segments, 1);
        file(self, id);
        return;
    }
    if (below != MT_NO_BLOCK)
        join(self, below, id);
    uint32_t above = block_at(self, fresh.addr + fresh.size_bytes);
    if (above != MT_NO_BLOCK)
        join(self, id, above);
    merge_free(self, id, self->store.blocks[id].previous, &merged);
    merge_free(self, id, self->store.blocks[id].next, &merged);
    file(self, id);
}

static uint64_t inactive_bytes(const struct mt_policy *self, uint32_t id)
{
    const struct mt_block *block = &self->store.blocks[id];

    return id != MT_NO_BLOCK && block->state == MT_BLOCK_FREE && !block->expandable &&
                   mt_block_is_split(block)
               ? block->size_bytes
               : 0;
}

/* Removes a block from its segment; the parts around it become separate segments. */
static void take_out(struct mt_policy *self, uint32_t id)
{
    struct mt_block *block = &self->store.blocks[id];
    uint32_t below = block->previous, above = block->next;
    uint64_t parts = (below != MT_NO_BLOCK ? 1u : 0u) + (above != MT_NO_BLOCK ? 1u : 0u);

    if (below != MT_NO_BLOCK)
        self->store.blocks[below].next = MT_NO_BLOCK;
    if (above != MT_NO_BLOCK)
        self->store.blocks[above].previous = MT_NO_BLOCK;
    block->previous = block->next = MT_NO_BLOCK;
    if (!block->expandable) {
        mt_level_add(&self->counters.segments, parts);
        mt_level_sub(&self->counters.segments, 1);
    }
    mt_level_sub(&self->counters.reserved, block->size_bytes);
    self->counters.device_frees++;
    mt_block_drop(&self->store, id);
    if (below != MT_NO_BLOCK)
        mt_level_add(&self->counters.inactive_split, inactive_bytes(self, below));
    if (above != MT_NO_BLOCK)
        mt_level_add(&self->counters.inactive_split, inactive_bytes(self, above));
}

/* Removes [addr, addr + size), which must be free. */
static void remove_segment(struct mt_policy *self, const struct mt_event *event)
{
    uint32_t id = block_at(self, event->addr), high;

    if (!event->size_bytes || id == MT_NO_BLOCK || self->store.blocks[id].state != MT_BLOCK_FREE)
        return;
    mt_level_sub(&self->counters.inactive_split, inactive_bytes(self, id));
    if (event->addr > self->store.blocks[id].addr) {
        cut(self, id, event->addr, &high);
        id = high;
    }
    if (event->size_bytes < self->store.blocks[id].size_bytes)
        cut(self, id, event->addr + event->size_bytes, &high);
    unfile(self, id);
    take_out(self, id);
    self->flushed = !self->explicit_flush;
}

static void follow_segment(struct mt_policy *self, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_MAP) {
        add_segment(self, event);
        return;
    }
    remove_segment(self, event);
}

static void add_own_segment(struct mt_policy *self, uint64_t addr, uint64_t size, uint32_t *id)
{
    struct mt_block fresh = {0};

    fresh.addr = addr;
    fresh.size_bytes = size;
    fresh.state = MT_BLOCK_FREE;
    fresh.reservation = RESERVATION_OWN;
    mt_block_new(&self->store, &fresh, id);
    mt_level_add(&self->counters.reserved, size);
    file(self, *id);
}

/* Bytes of the block that takes the low end of the free block `id`. */
static uint64_t block_bytes(const struct mt_policy *self, const struct mt_policy_request *request,
                            uint32_t id)
{
    const struct mt_block *block = &self->store.blocks[id];
    uint64_t available = block->size_bytes;
    uint64_t size = request->block_bytes;

    if (!size)
        size = mt_pytorch_round_size(&self->config, request->size_bytes);
    if (size > available)
        size = mt_min_u64(available, mt_max_u64(request->size_bytes, 1));
    if (!request->block_bytes &&
        !mt_pytorch_should_split(&self->config, available, size,
                                 block->expandable && self->config.expandable_segments))
        size = available;
    return size;
}

static bool only_flushes_release(const struct mt_policy *self)
{
    return !(self->config.gc_threshold > 0) && self->config.max_split_bytes == MT_PYTORCH_UNLIMITED;
}

static enum mt_status alloc(struct mt_policy *self, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    uint32_t id = block_at(self, request->addr), rest;
    uint64_t remaining = 0, below = 0;

    /* An OOM is raised after a flush and a second attempt. Other releases before a request were
     * also a flush, unless these options release memory by themselves: then the count is a lower
     * bound. */
    self->counters.retries += !request->addr || (self->flushed && only_flushes_release(self));
    self->flushed = self->explicit_flush = false;
    if (!request->addr || request->size_bytes > (uint64_t)1 << 48) {
        self->counters.ooms++;
        return MT_ERR_DEVICE_OOM;
    }
    uint64_t own_bytes =
        request->block_bytes ? request->block_bytes : mt_max_u64(request->size_bytes, 1);
    if (id == MT_NO_BLOCK || self->store.blocks[id].state != MT_BLOCK_FREE) {
        if (own_bytes > MT_MAX_TOTAL_BYTES - self->counters.reserved.now) {
            self->counters.ooms++;
            return MT_ERR_DEVICE_OOM;
        }
        add_own_segment(self, request->addr, own_bytes, &id);
    }
    bool was_split = mt_block_is_split(&self->store.blocks[id]);
    if (request->addr > self->store.blocks[id].addr) {
        below = request->addr - self->store.blocks[id].addr;
        cut(self, id, request->addr, &rest);
        id = rest;
    }
    uint64_t available = self->store.blocks[id].size_bytes;
    uint64_t size = self->store.blocks[id].reservation == RESERVATION_OWN
                        ? available
                        : block_bytes(self, request, id);
    if (size < available) {
        cut(self, id, request->addr + size, &rest);
        remaining = available - size;
    }
    remaining += below;
    struct mt_block *block = &self->store.blocks[id];
    block->state = MT_BLOCK_ALLOCATED;
    block->requested_bytes = mt_min_u64(request->size_bytes, block->size_bytes);
    MT_ASSERT(block->addr == request->addr && block->size_bytes == size);
    mt_block_store_count_alloc(&self->counters, block, remaining, was_split);
    *out = (struct mt_policy_block){id, block->addr, block->size_bytes};
    return MT_OK;
}

static enum mt_status free_requested(struct mt_policy *self, uint32_t handle)
{
    MT_ASSERT(handle < self->store.count);
    MT_ASSERT(self->store.blocks[handle].state == MT_BLOCK_ALLOCATED);
    self->store.blocks[handle].state = MT_BLOCK_PENDING;
    mt_block_store_count_free_requested(&self->counters, &self->store.blocks[handle]);
    return MT_OK;
}

static enum mt_status free_completed(struct mt_policy *self, uint32_t id)
{
    struct mt_block *block = &self->store.blocks[id];
    uint64_t size = block->size_bytes, merged = 0;

    MT_ASSERT(id < self->store.count && block->state == MT_BLOCK_PENDING);
    block->state = MT_BLOCK_FREE;
    if (block->reservation == RESERVATION_OWN) {
        mt_block_store_count_free_completed(&self->counters, size, block->requested_bytes, 0,
                                            block);
        mt_level_sub(&self->counters.reserved, size);
        unfile(self, id);
        mt_block_drop(&self->store, id);
        return MT_OK;
    }
    unfile(self, id);
    merge_free(self, id, block->previous, &merged);
    merge_free(self, id, block->next, &merged);
    mt_block_store_count_free_completed(&self->counters, size, block->requested_bytes, merged,
                                        block);
    file(self, id);
    return MT_OK;
}

/* Memory is released before a request only if the request exceeds the limit. */
static bool would_release(struct mt_policy *self, const struct mt_policy_request *request)
{
    uint64_t size = mt_min_u64(request->size_bytes, (uint64_t)1 << 48);

    if (self->config.gc_threshold > 0)
        return true;
    return self->device->limit_bytes &&
           self->counters.reserved.now +
                   mt_pytorch_segment_size(&self->config,
                                           mt_pytorch_round_size(&self->config, size)) >
               self->device->limit_bytes;
}

static enum mt_status empty_cache(struct mt_policy *self)
{
    self->explicit_flush = true; /* later releases are not a retry */
    return MT_OK;
}

static enum mt_status restore_block(struct mt_policy *self, const struct mt_event *event,
                                    struct mt_policy_block *out)
{
    struct mt_policy_request request = {event->size_bytes, event->stream, event->pool, event->addr,
                                        event->aux_bytes};

    return alloc(self, &request, out);
}

static enum mt_status restored(struct mt_policy *self)
{
    /* blocks were added one by one to segments that were whole before: count again */
    self->counters.inactive_split.now = 0;
    for (uint32_t id = 0; id < self->store.count; id++)
        self->counters.inactive_split.now += inactive_bytes(self, id);
    mt_counters_restart(&self->counters);
    return MT_OK;
}

static const struct mt_counters *counters_of(const struct mt_policy *self)
{
    return &self->counters;
}

/* Checks that every block is filed under its address. */
static bool places_are_sound(const struct mt_policy *self, const char **why)
{
    struct mt_free_cursor at = mt_free_set_find(&self->by_addr, 0, 0);

    if (!mt_free_set_is_sound(&self->by_addr, why))
        return false;
    MT_SOUND(why, self->by_addr.count == self->store.live);
    for (; at.entry; at = mt_free_set_next(&self->by_addr, at)) {
        MT_SOUND(why, at.entry->block < self->store.count);
        MT_SOUND(why, self->store.blocks[at.entry->block].state != MT_BLOCK_UNUSED);
        MT_SOUND(why, self->store.blocks[at.entry->block].addr == at.entry->size_bytes);
    }
    return true;
}

static bool is_sound(const struct mt_policy *self, const char **why)
{
    const struct mt_counters *counters = &self->counters;
    uint64_t bytes[MT_BLOCK_PENDING + 1] = {0}, inactive = 0, segments = 0;

    if (!mt_block_store_is_sound(&self->store, false, why) || !places_are_sound(self, why))
        return false;
    for (uint32_t id = 0; id < self->store.count; id++) {
        const struct mt_block *block = &self->store.blocks[id];
        MT_SOUND(why, block->state <= MT_BLOCK_PENDING);
        if (block->state == MT_BLOCK_UNUSED)
            continue;
        bytes[block->state] += block->size_bytes;
        inactive += inactive_bytes(self, id);
        segments += !block->expandable && block->previous == MT_NO_BLOCK &&
                    block->reservation != RESERVATION_OWN;
    }
    MT_SOUND(why, bytes[MT_BLOCK_ALLOCATED] == counters->allocated.now);
    MT_SOUND(why, bytes[MT_BLOCK_ALLOCATED] + bytes[MT_BLOCK_PENDING] == counters->active.now);
    MT_SOUND(why, counters->active.now + bytes[MT_BLOCK_FREE] == counters->reserved.now);
    MT_SOUND(why, inactive == counters->inactive_split.now);
    MT_SOUND(why, segments == counters->segments.now);
    MT_SOUND(why, mt_counters_agree(counters));
    return true;
}

const struct mt_block_store *mt_recorded_blocks(const struct mt_policy *self)
{
    return &self->store;
}

const struct mt_policy_ops mt_policy_recorded = {
    .name = "recorded",
    .summary = "what the trace recorded, without simulation",
    .follows_recording = true,
    .create = create,
    .destroy = destroy,
    .alloc = alloc,
    .free_requested = free_requested,
    .free_completed = free_completed,
    .empty_cache = empty_cache,
    .would_release = would_release,
    .restore_segment = follow_segment,
    .restore_block = restore_block,
    .restored = restored,
    .follow_segment = follow_segment,
    .counters = counters_of,
    .is_sound = is_sound,
};
