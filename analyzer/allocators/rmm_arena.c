/* The policy `rmm-arena`: RMM's arena_memory_resource. All memory is taken at construction and cut
 * into superblocks of at least 1 MiB. Those of the global arena serve requests above 1 MiB, and
 * each stream owns some for smaller ones. Everything is first fit by address. A superblock is a
 * free list of the heap. */
#include "check.h"
#include "grow.h"
#include "heap.h"
#include "policy_options.h"
#include "sorted.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, GLOBAL = 0 };

#define MIN_SUPERBLOCK MT_MIB
#define MAX_ARENA      ((uint64_t)1 << 40)

struct superblock {
    uint64_t addr, size_bytes, free_bytes;
    uint64_t owner; /* GLOBAL, or 1 + stream */
};

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t arena_bytes;
    bool started;
    struct superblock *superblocks; /* by free list */
    size_t superblock_capacity;
    uint32_t *order; /* free lists in use, ascending by address */
    size_t order_count, order_capacity;
    uint32_t *spare; /* free lists not in use */
    size_t spare_count, spare_capacity;
};

static struct mt_heap_key by_address(const struct mt_block *block)
{
    struct mt_heap_key key = {block->addr, block->size_bytes};

    return key;
}

static void destroy(struct mt_policy *self)
{
    free(self->superblocks);
    free(self->order);
    free(self->spare);
    mt_heap_op_destroy(self);
}

static const struct mt_policy_option options[] = {
    {"arena_size", MT_POLICY_BYTES, 0, MIN_SUPERBLOCK, MAX_ARENA, NULL}};

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    if (!values[0])
        values[0] = mt_min_u64(mt_device_memory(self->heap.device) / 2, MAX_ARENA);
    self->arena_bytes = values[0] = mt_round_down(values[0], ALIGNMENT);
    if (self->arena_bytes >= MIN_SUPERBLOCK)
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "the arena takes half of the device's memory, which is unknown or too small: "
                   "give arena_size or a limit");
}

/* Index in `order` of the first superblock at or above an address. */
static size_t place_of(const struct mt_policy *self, uint64_t addr)
{
    size_t low = 0;

    MT_BISECT(low, self->order_count, middle, self->superblocks[self->order[middle]].addr < addr);
    return low;
}

/* Adds a superblock, in order, without free blocks. */
static void add_superblock(struct mt_policy *self, const struct superblock *superblock,
                           uint32_t *free_list)
{
    size_t at = place_of(self, superblock->addr);

    if (self->spare_count > 0)
        *free_list = self->spare[--self->spare_count];
    else
        mt_heap_free_list(&self->heap, self->heap.free_list_count, free_list);
    mt_grow_to(&self->superblocks, &self->superblock_capacity, *free_list + 1u,
               sizeof *self->superblocks);
    mt_grow_to(&self->order, &self->order_capacity, self->order_count + 1, sizeof *self->order);
    self->superblocks[*free_list] = *superblock;
    memmove(&self->order[at + 1], &self->order[at], (self->order_count - at) * sizeof *self->order);
    self->order[at] = *free_list;
    self->order_count++;
}

static bool is_empty(const struct superblock *superblock)
{
    return superblock->free_bytes == superblock->size_bytes;
}

static void put(struct mt_policy *self, uint32_t id)
{
    const struct mt_block *block = &self->heap.store.blocks[id];

    self->superblocks[block->reservation].free_bytes += block->size_bytes;
    MT_ASSERT(self->superblocks[block->reservation].free_bytes <=
              self->superblocks[block->reservation].size_bytes);
    mt_heap_put(&self->heap, id);
}

/* First free block of a superblock with room, MT_NO_BLOCK if none. */
static uint32_t first_fit_in(const struct mt_policy *self, uint32_t free_list, uint64_t size)
{
    const struct mt_free_set *set = &self->heap.free_lists[free_list].free;

    if (self->superblocks[free_list].free_bytes < size)
        return MT_NO_BLOCK;
    struct mt_free_cursor at = mt_free_set_find(set, 0, 0);
    while (at.entry && at.entry->addr < size) /* keys are (address, size) */
        at = mt_free_set_next(set, at);
    return at.entry ? at.entry->block : MT_NO_BLOCK;
}

/* The first superblock of an owner with room for a request, and the block. */
static uint32_t first_fit(const struct mt_policy *self, uint64_t owner, uint64_t size)
{
    uint32_t id = MT_NO_BLOCK;

    for (size_t i = 0; id == MT_NO_BLOCK && i < self->order_count; i++)
        if (self->superblocks[self->order[i]].owner == owner)
            id = first_fit_in(self, self->order[i], size);
    return id;
}

/* An empty superblock keeps this many bytes; the rest becomes another one. */
static void cut_superblock(struct mt_policy *self, uint32_t id, uint64_t keep)
{
    uint32_t free_list = self->heap.store.blocks[id].reservation, tail, rest;
    struct superblock other = self->superblocks[free_list];

    MT_ASSERT(is_empty(&other) && keep < other.size_bytes);
    mt_heap_take(&self->heap, id);
    other.addr += keep;
    other.size_bytes -= keep;
    other.free_bytes = 0;
    self->superblocks[free_list].size_bytes = keep;
    self->superblocks[free_list].free_bytes = 0;
    add_superblock(self, &other, &tail);
    mt_block_split(&self->heap.store, id, keep, &rest);
    self->heap.store.blocks[rest].reservation = tail;
    put(self, rest);
    put(self, id);
}

/* Finds a free block of the global arena; cuts its superblock to the size if it is empty. */
static void find_global(struct mt_policy *self, uint64_t size, uint32_t *block)
{
    uint64_t keep = mt_max_u64(MIN_SUPERBLOCK, size);

    *block = first_fit(self, GLOBAL, size);
    if (*block == MT_NO_BLOCK)
        return;
    const struct superblock *superblock =
        &self->superblocks[self->heap.store.blocks[*block].reservation];
    if (is_empty(superblock) && superblock->size_bytes >= keep + MIN_SUPERBLOCK) {
        cut_superblock(self, *block, keep);
        return;
    }
}

/* Joins two superblocks if both are empty, adjacent, and in the global arena. */
static void join(struct mt_policy *self, size_t at, bool *joined)
{
    *joined = false;
    if (at + 1 >= self->order_count)
        return;
    uint32_t low = self->order[at];
    uint32_t high = self->order[at + 1];
    if (self->superblocks[low].owner != GLOBAL || self->superblocks[high].owner != GLOBAL ||
        !is_empty(&self->superblocks[low]) || !is_empty(&self->superblocks[high]))
        return;
    mt_grow_to(&self->spare, &self->spare_capacity, self->spare_count + 1, sizeof *self->spare);
    uint32_t id = mt_heap_take_first(&self->heap, low, 0);
    uint32_t other = mt_heap_take_first(&self->heap, high, 0);
    MT_ASSERT(id != MT_NO_BLOCK && other != MT_NO_BLOCK);
    MT_ASSERT(self->superblocks[low].addr + self->superblocks[low].size_bytes ==
              self->superblocks[high].addr);
    mt_block_merge(&self->heap.store, id, other);
    self->superblocks[low].size_bytes += self->superblocks[high].size_bytes;
    self->superblocks[low].free_bytes = 0;
    self->spare[self->spare_count++] = high;
    self->order_count--;
    memmove(&self->order[at + 1], &self->order[at + 2],
            (self->order_count - at - 1) * sizeof *self->order);
    *joined = true;
    put(self, id);
}

/* Merges a superblock of the global arena with its neighbors. */
static void coalesce(struct mt_policy *self, uint32_t free_list)
{
    size_t at = place_of(self, self->superblocks[free_list].addr);
    bool joined;

    join(self, at, &joined);
    if (at > 0)
        join(self, at - 1, &joined);
}

/* After a failure: every stream returns all its superblocks. */
static void defragment(struct mt_policy *self)
{
    bool joined;

    self->heap.counters.retries++;
    for (size_t i = 0; i < self->order_count; i++)
        self->superblocks[self->order[i]].owner = GLOBAL;
    for (size_t i = 0; i < self->order_count;) {
        join(self, i, &joined);
        i += !joined;
    }
}

/* Takes the memory of the constructor. */
static enum mt_status start(struct mt_policy *self)
{
    struct superblock all = {0, self->arena_bytes, 0, GLOBAL};
    uint32_t free_list, id;

    if (self->started)
        return MT_OK;
    enum mt_status status = mt_heap_grow(&self->heap, self->arena_bytes, 0, 0, &id);
    if (status != MT_OK)
        return status;
    self->started = true;
    all.addr = self->heap.store.blocks[id].addr;
    add_superblock(self, &all, &free_list);
    self->heap.store.blocks[id].reservation = free_list;
    put(self, id);
    return MT_OK;
}

static void find_for(struct mt_policy *self, uint64_t size, uint32_t stream, uint32_t *block)
{
    uint64_t owner = 1 + (uint64_t)stream;

    if (size > MIN_SUPERBLOCK) {
        find_global(self, size, block);
        return;
    }
    *block = first_fit(self, owner, size);
    if (*block != MT_NO_BLOCK)
        return;
    find_global(self, size, block);
    if (*block != MT_NO_BLOCK)
        self->superblocks[self->heap.store.blocks[*block].reservation].owner = owner;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
    enum mt_status status = start(policy);

    share->size_bytes = size;
    if (status == MT_OK)
        find_for(policy, size, request->stream, &share->block);
    if (status == MT_OK && share->block == MT_NO_BLOCK) {
        defragment(policy);
        find_for(policy, size, request->stream, &share->block);
    }
    if (status == MT_OK && share->block == MT_NO_BLOCK)
        status = MT_ERR_DEVICE_OOM;
    heap->device->refusals += status == MT_ERR_DEVICE_OOM;
    if (status != MT_OK)
        return status;
    mt_heap_take(heap, share->block);
    MT_ASSERT(policy->superblocks[heap->store.blocks[share->block].reservation].free_bytes >= size);
    policy->superblocks[heap->store.blocks[share->block].reservation].free_bytes -= size;
    return MT_OK;
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = &policy->heap;
    uint32_t free_list = heap->store.blocks[handle].reservation;
    struct superblock *superblock = &policy->superblocks[free_list];

    superblock->free_bytes += heap->store.blocks[handle].size_bytes;
    mt_heap_complete(heap, handle);
    mt_heap_merge(heap, handle);
    mt_heap_put(heap, handle);
    if (superblock->owner == GLOBAL && is_empty(superblock))
        coalesce(policy, free_list);
    return MT_OK;
}

/* Checks that the free blocks of a superblock are inside it, and that their sum is right. */
static bool superblock_is_sound(const struct mt_policy *self, uint32_t free_list, const char **why)
{
    const struct superblock *superblock = &self->superblocks[free_list];
    const struct mt_free_set *set = &self->heap.free_lists[free_list].free;
    struct mt_free_cursor at = mt_free_set_find(set, 0, 0);
    uint64_t free_bytes = 0;

    for (; at.entry; at = mt_free_set_next(set, at)) { /* keys are (address, size) */
        uint64_t end = at.entry->size_bytes + at.entry->addr;
        MT_SOUND(why, at.entry->size_bytes >= superblock->addr);
        MT_SOUND(why, end <= superblock->addr + superblock->size_bytes);
        free_bytes += at.entry->addr;
    }
    MT_SOUND(why, free_bytes == superblock->free_bytes);
    MT_SOUND(why, superblock->size_bytes >= MIN_SUPERBLOCK);
    return true;
}

/* Checks that superblocks are contiguous and cover all reserved memory. */
static bool is_sound(const struct mt_policy *self, const char **why)
{
    uint64_t held = 0;

    for (size_t i = 0; i < self->order_count; i++) {
        const struct superblock *superblock = &self->superblocks[self->order[i]];
        MT_SOUND(why, self->order[i] < self->heap.free_list_count);
        if (!superblock_is_sound(self, self->order[i], why))
            return false;
        MT_SOUND(why, superblock->addr == self->superblocks[self->order[0]].addr + held);
        held += superblock->size_bytes;
    }
    MT_SOUND(why, held == self->heap.counters.reserved.now);
    return mt_heap_op_is_sound(self, why);
}

static const struct mt_heap_rules rules = {
    MT_HEAP_RULES(options, init, find),
    .key = by_address,
};

const struct mt_policy_ops mt_policy_rmm_arena = {
    .name = "rmm-arena",
    .summary = "RMM's arena_memory_resource: one arena, allocated at once",
    .doubt = "it behaves as the tests of RMM expect, but no run was compared; threads that use "
             "the per-thread default stream have arenas of their own, which a trace does not show",
    .heap = &rules,
    .destroy = destroy,
    .alloc = mt_heap_op_alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    .counters = mt_heap_op_counters,
    .is_sound = is_sound,
};
