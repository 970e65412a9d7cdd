/* Segments and blocks at recorded places. For a trace that starts in the middle, all remaining
 * space is free. */
#include "pytorch_pools.h"

#include "check.h"
#include "util.h"

static bool is_small_segment(const struct mt_pytorch *self, const struct mt_event *segment)
{
    /* the recorder gives the largest size that the pool serves */
    if (segment->aux_bytes)
        return segment->aux_bytes <= MT_PYTORCH_SMALL_LIMIT;
    if (segment->kind == MT_EVENT_SEGMENT_ALLOC)
        return segment->size_bytes == MT_PYTORCH_SMALL_SEGMENT;
    return segment->size_bytes % self->config.large_segment_bytes != 0;
}

/* Links a new block after the last one of the same reservation, with unmapped space in between if
 * there is a gap. */
static void append(struct mt_pytorch *self, uint32_t last, uint32_t id)
{
    struct mt_block *below = &self->store.blocks[last], *block = &self->store.blocks[id];
    uint64_t end = below->addr + below->size_bytes;
    struct mt_block gap = *block;
    uint32_t between;

    MT_ASSERT(below->next == MT_NO_BLOCK && block->addr >= end && block->expandable);
    block->reservation = below->reservation;
    if (block->addr > end) {
        gap.addr = end;
        gap.size_bytes = block->addr - end;
        gap.state = MT_BLOCK_UNMAPPED;
        gap.reservation = below->reservation;
        mt_block_new(&self->store, &gap, &between);
        self->store.blocks[between].previous = last;
        self->store.blocks[last].next = between;
        last = between;
    }
    self->store.blocks[id].previous = last;
    self->store.blocks[last].next = id;
}

static uint64_t reservation_bytes(const struct mt_pytorch *self)
{
    uint64_t total =
        self->device->total_memory_bytes ? self->device->total_memory_bytes : 512 * MT_GIB;
    return total + total / 8;
}

/* The topmost block of the reservation that a mapped range belongs to. */
static uint32_t last_of_reservation(const struct mt_pytorch *self, const struct mt_block *range)
{
    /* ranges come in address order: the newest block is the likely one */
    for (uint32_t id = self->store.count; id-- > 0;) {
        const struct mt_block *block = &self->store.blocks[id];
        if (block->expandable && block->stream == range->stream && block->pool == range->pool &&
            block->next == MT_NO_BLOCK && block->state != MT_BLOCK_UNUSED &&
            block->addr < range->addr && block->size_bytes <= range->addr - block->addr &&
            range->addr - block->addr < reservation_bytes(self))
            return id;
    }
    return MT_NO_BLOCK;
}

void mt_pytorch_restore_segment(struct mt_pytorch *self, const struct mt_event *event)
{
    struct mt_block fresh = {0};
    uint32_t id;

    fresh.addr = event->addr;
    fresh.size_bytes = event->size_bytes;
    fresh.stream = event->stream;
    fresh.pool = (uint16_t)(2u * event->pool + is_small_segment(self, event));
    fresh.expandable = event->kind == MT_EVENT_SEGMENT_MAP;
    fresh.state = MT_BLOCK_FREE;
    if (!fresh.size_bytes || fresh.addr + fresh.size_bytes < fresh.addr ||
        fresh.size_bytes > MT_MAX_TOTAL_BYTES - self->counters.reserved.now)
        return; /* no block can lie in it */
    /* creates its pool */
    (void)mt_pytorch_free_list(self, fresh.pool, fresh.stream);
    self->restoring = true;
    uint32_t below = fresh.expandable ? last_of_reservation(self, &fresh) : MT_NO_BLOCK;
    if (below == MT_NO_BLOCK)
        fresh.reservation = self->reservation_count++;
    mt_block_new(&self->store, &fresh, &id);
    if (below != MT_NO_BLOCK)
        append(self, below, id);
    self->counters.segments.now += !fresh.expandable;
    self->counters.reserved.now += fresh.size_bytes;
}

/* The free block that holds [addr, addr + size). */
static uint32_t free_block_at(const struct mt_pytorch *self, uint64_t addr, uint64_t size_bytes)
{
    for (uint32_t id = self->store.count; id-- > 0;) {
        const struct mt_block *block = &self->store.blocks[id];
        if (block->state == MT_BLOCK_FREE && block->addr <= addr &&
            addr - block->addr < block->size_bytes &&
            size_bytes <= block->size_bytes - (addr - block->addr))
            return id;
    }
    return MT_NO_BLOCK;
}

enum mt_status mt_pytorch_restore_block(struct mt_pytorch *self, const struct mt_event *event,
                                        uint32_t *handle)
{
    uint64_t size = event->aux_bytes ? event->aux_bytes
                                     : mt_pytorch_round_size(&self->config, event->size_bytes);
    uint32_t id = self->restore_hint, rest;

    /* blocks come in address order: try the rest of the last split first */
    if (id >= self->store.count || self->store.blocks[id].state != MT_BLOCK_FREE ||
        event->addr < self->store.blocks[id].addr ||
        event->addr - self->store.blocks[id].addr >= self->store.blocks[id].size_bytes ||
        size > self->store.blocks[id].size_bytes - (event->addr - self->store.blocks[id].addr))
        id = free_block_at(self, event->addr, size);
    if (!size || id == MT_NO_BLOCK)
        return MT_ERR_FORMAT;
    self->restoring = true;
    if (event->addr > self->store.blocks[id].addr) {
        mt_block_split(&self->store, id, event->addr - self->store.blocks[id].addr, &rest);
        id = rest;
    }
    if (size < self->store.blocks[id].size_bytes) {
        mt_block_split(&self->store, id, size, &rest);
        self->restore_hint = rest;
    }
    MT_ASSERT(self->store.blocks[id].size_bytes == size);
    MT_ASSERT(self->store.blocks[id].addr == event->addr);
    self->store.blocks[id].state = MT_BLOCK_ALLOCATED;
    self->store.blocks[id].requested_bytes = mt_min_u64(event->size_bytes, size);
    self->counters.allocated.now += size;
    self->counters.active.now += size;
    self->counters.requested.now += mt_min_u64(event->size_bytes, size);
    MT_ASSERT(self->counters.active.now <= self->counters.reserved.now);
    *handle = id;
    return MT_OK;
}

/* Adds the remaining address space of a reservation after its last block. */
static void add_unmapped_end(struct mt_pytorch *self, uint32_t last)
{
    struct mt_block rest = self->store.blocks[last];
    uint32_t id;

    MT_ASSERT(rest.expandable && rest.next == MT_NO_BLOCK);
    rest.addr += rest.size_bytes;
    rest.size_bytes = mt_round_up(reservation_bytes(self), self->config.large_segment_bytes);
    rest.state = MT_BLOCK_UNMAPPED;
    mt_block_new(&self->store, &rest, &id);
    self->store.blocks[id].previous = last;
    self->store.blocks[last].next = id;
}

/* Adjacent ranges are mapped one by one; free space in them is one block. */
static void merge_touching(struct mt_pytorch *self)
{
    uint32_t next;

    for (uint32_t id = 0; id < self->store.count; id++) {
        const struct mt_block *block = &self->store.blocks[id];
        while ((block->state == MT_BLOCK_FREE || block->state == MT_BLOCK_UNMAPPED) &&
               (next = block->next) != MT_NO_BLOCK &&
               self->store.blocks[next].state == block->state)
            mt_block_merge(&self->store, id, next);
    }
}

void mt_pytorch_restored(struct mt_pytorch *self)
{
    uint32_t count = self->store.count;

    for (uint32_t id = 0; id < count; id++) {
        const struct mt_block *block = &self->store.blocks[id];
        if (block->expandable && block->next == MT_NO_BLOCK && block->state != MT_BLOCK_UNUSED &&
            block->state != MT_BLOCK_UNMAPPED)
            add_unmapped_end(self, id);
    }
    merge_touching(self);
    self->counters.inactive_split.now = 0;
    self->restoring = false;
    for (uint32_t id = 0; id < self->store.count; id++) {
        const struct mt_block *block = &self->store.blocks[id];
        if (block->state != MT_BLOCK_FREE && block->state != MT_BLOCK_UNMAPPED)
            continue;
        if (block->state == MT_BLOCK_FREE && !block->expandable && mt_block_is_split(block))
            self->counters.inactive_split.now += block->size_bytes;
        mt_pytorch_insert(self, id);
    }
    mt_counters_restart(&self->counters);
}

/* Blocks at a given address (policy.h, `place`). */

/* Searches by address examine at most a fixed share of the blocks. */
enum { FREE_LOOKS = 1 << 16, LOOKS_PER_ALLOC = 8 };

static bool holds(const struct mt_block *block, const struct mt_policy_request *request)
{
    uint64_t offset = request->addr - block->addr;

    return block->state == MT_BLOCK_FREE && request->addr >= block->addr &&
           offset % MT_PYTORCH_MIN_BLOCK == 0 && offset < block->size_bytes &&
           request->block_bytes <= block->size_bytes - offset;
}

static bool may_look(const struct mt_pytorch *self)
{
    return self->place_looks < FREE_LOOKS + LOOKS_PER_ALLOC * self->counters.allocations;
}

/* Returns the free block of a pool and stream that contains the request, or MT_NO_BLOCK. */
static uint32_t find_holder(struct mt_pytorch *self, const struct mt_pytorch_free_list *free_list,
                            const struct mt_policy_request *request)
{
    for (struct mt_free_cursor at = mt_free_set_find(&free_list->free, request->block_bytes, 0);
         at.entry && may_look(self); at = mt_free_set_next(&free_list->free, at)) {
        self->place_looks++;
        if (holds(&self->store.blocks[at.entry->block], request))
            return at.entry->block;
    }
    return MT_NO_BLOCK;
}

enum mt_status mt_pytorch_find_place(struct mt_pytorch *self,
                                     const struct mt_policy_request *request, uint32_t *block)
{
    *block = self->place_hint;
    if (*block < self->store.count && holds(&self->store.blocks[*block], request) &&
        self->store.blocks[*block].pool / 2 == request->pool &&
        self->store.blocks[*block].stream == request->stream)
        return MT_OK;
    for (uint32_t i = 0; i < 2; i++) {
        const struct mt_pytorch_free_list *free_list =
            mt_pytorch_free_list(self, 2u * request->pool + i, request->stream);
        *block = find_holder(self, free_list, request);
        if (*block != MT_NO_BLOCK)
            return MT_OK;
    }
    return may_look(self) ? MT_ERR_FORMAT : MT_ERR_UNSUPPORTED;
}

/* Leaves the request's part in *id, in no set; files the parts to its left and right. */
static void cut_out(struct mt_pytorch *self, const struct mt_policy_request *request, uint32_t *id)
{
    uint32_t left = *id, right = MT_NO_BLOCK;
    uint64_t below = request->addr - self->store.blocks[left].addr;

    mt_pytorch_remove(self, left);
    if (below) {
        mt_block_split(&self->store, left, below, id);
        mt_pytorch_note_split(self, left);
        mt_pytorch_insert(self, left);
    }
    if (self->store.blocks[*id].size_bytes > request->block_bytes) {
        mt_block_split(&self->store, *id, request->block_bytes, &right);
        mt_pytorch_note_split(self, *id);
        mt_pytorch_insert(self, right);
    }
    self->place_hint = right;
}

enum mt_status mt_pytorch_place(struct mt_pytorch *self, const struct mt_policy_request *request,
                                uint32_t *id)
{
    if (request->block_bytes % MT_PYTORCH_MIN_BLOCK)
        return MT_ERR_FORMAT;
    enum mt_status status = mt_pytorch_find_place(self, request, id);
    if (status != MT_OK)
        return status;
    bool was_split = mt_block_is_split(&self->store.blocks[*id]);
    uint64_t whole = self->store.blocks[*id].size_bytes;
    cut_out(self, request, id);
    struct mt_block *block = &self->store.blocks[*id];
    MT_ASSERT(block->addr == request->addr && block->size_bytes == request->block_bytes);
    block->state = MT_BLOCK_ALLOCATED;
    block->requested_bytes = mt_min_u64(request->size_bytes, block->size_bytes);
    mt_block_store_count_alloc(&self->counters, block, whole - block->size_bytes, was_split);
    return MT_OK;
}

static bool is_mapped(const struct mt_pytorch *self, uint32_t id)
{
    return id != MT_NO_BLOCK && self->store.blocks[id].state != MT_BLOCK_UNMAPPED;
}

bool mt_pytorch_is_idle_segment(struct mt_pytorch *self, const struct mt_policy_request *request)
{
    uint32_t id;

    if (!request->block_bytes || mt_pytorch_find_place(self, request, &id) != MT_OK)
        return false;
    const struct mt_block *block = &self->store.blocks[id];
    return block->addr == request->addr && block->size_bytes == request->block_bytes &&
           !is_mapped(self, block->previous) && !is_mapped(self, block->next);
}
