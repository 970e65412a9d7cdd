/* The memory of the policy `pytorch`: pools, expandable segments, and when the cache releases
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "block_store.h"
#include "check.h"
#include "device_model.h"
#include "grow.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "pytorch_pools.h"
#include "sorted.h"
#include "util.h"

static void add_pools(struct mt_pytorch *policy, uint32_t pool)
{
    uint32_t count = pool / 2 * 2 + 2;

    if (count <= policy->pool_count)
        return;
    policy->device->any_order &= count == 2; /* restores depend on addresses */
    struct mt_pytorch_pool *pools = mt_memory_resize(policy->pools, count * sizeof *pools);
    policy->pools = pools;
    for (uint32_t i = policy->pool_count; i < count; i++) {
        memset(&pools[i], 0, sizeof pools[i]);
        pools[i].is_small = i % 2 == 1;
        pools[i].owner = (uint16_t)(i / 2);
    }
    policy->pool_count = count;
}

/* Index of a stream among the free lists, or where it would be inserted. */
static uint32_t place_of_stream(const struct mt_pytorch_pool *pool, uint64_t handle,
                                uint32_t stream)
{
    uint32_t low = 0;

    MT_BISECT(low, pool->free_list_count, middle,
              pool->free_lists[middle].stream_handle < handle ||
                  (pool->free_lists[middle].stream_handle == handle &&
                   pool->free_lists[middle].stream < stream));
    return low;
}

struct mt_pytorch_free_list *mt_pytorch_find_free_list(struct mt_pytorch *policy, uint32_t pool_id,
                                                       uint32_t stream)
{
    if (pool_id >= policy->pool_count)
        add_pools(policy, pool_id);
    struct mt_pytorch_pool *pool = &policy->pools[pool_id];
    uint64_t handle =
        stream < policy->symbols->stream_count ? policy->symbols->streams[stream].handle : stream;
    uint32_t i = place_of_stream(pool, handle, stream);
    if (i < pool->free_list_count && pool->free_lists[i].stream == stream)
        return &pool->free_lists[i];
    mt_grow_to(&pool->free_lists, &pool->free_list_capacity, (size_t)pool->free_list_count + 1,
               sizeof *pool->free_lists);
    memmove(&pool->free_lists[i + 1], &pool->free_lists[i],
            (pool->free_list_count - i) * sizeof *pool->free_lists);
    memset(&pool->free_lists[i], 0, sizeof pool->free_lists[i]);
    pool->free_lists[i].stream = stream;
    pool->free_lists[i].stream_handle = handle;
    pool->free_list_count++;
    return &pool->free_lists[i];
}

/* Saturates: blocks after four billion count as equally old. */
static uint32_t next_age(struct mt_pytorch *policy)
{
    policy->age_count += policy->age_count < UINT32_MAX;
    return policy->age_count;
}

uint32_t mt_pytorch_segment_age(struct mt_pytorch *policy)
{
    return policy->order == MT_FREE_LOWEST ? 0 : next_age(policy);
}

void mt_pytorch_note_split(struct mt_pytorch *policy, uint32_t block)
{
    if (policy->order == MT_FREE_OLDEST_BLOCK)
        policy->store.blocks[block].age = next_age(policy);
}

static struct mt_free_entry unmapped_entry(const struct mt_block *block, uint32_t id)
{
    return (struct mt_free_entry){.addr = block->addr, .block = id};
}

void mt_pytorch_insert(struct mt_pytorch *policy, uint32_t id)
{
    struct mt_block *block = &policy->store.blocks[id];
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(policy, block->pool, block->stream);

    MT_ASSERT(block->state == MT_BLOCK_FREE || block->state == MT_BLOCK_UNMAPPED);
    MT_ASSERT(free_list->stream == block->stream);
    if (block->state == MT_BLOCK_UNMAPPED) {
        mt_free_set_insert(&free_list->unmapped, unmapped_entry(block, id));
        return;
    }
    block->gc_base = policy->pools[block->pool].gc_clock;
    mt_free_set_insert(&free_list->free, mt_pytorch_free_entry(policy, id));
}

void mt_pytorch_remove(struct mt_pytorch *policy, uint32_t id)
{
    const struct mt_block *block = &policy->store.blocks[id];
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(policy, block->pool, block->stream);
    bool was_filed;

    if (block->state == MT_BLOCK_UNMAPPED)
        was_filed = mt_free_set_remove(&free_list->unmapped, unmapped_entry(block, id));
    else
        was_filed = mt_free_set_remove(&free_list->free, mt_pytorch_free_entry(policy, id));
    (void)was_filed;
    MT_ASSERT(was_filed);
}

/* `block` absorbs neighbor `other` if that one is reusable and of the same kind (mapped or not);
 * returns the absorbed bytes. */
static uint64_t pytorch_try_merge(struct mt_pytorch *policy, uint32_t id, uint32_t other)
{
    if (other == MT_NO_BLOCK || policy->store.blocks[other].state != policy->store.blocks[id].state)
        return 0;
    uint64_t bytes = policy->store.blocks[other].size_bytes;
    MT_ASSERT(policy->store.blocks[other].pool == policy->store.blocks[id].pool);
    MT_ASSERT(policy->store.blocks[other].stream == policy->store.blocks[id].stream);
    mt_pytorch_remove(policy, other);
    mt_block_merge(&policy->store, id, other);
    return bytes;
}

static bool is_free(const struct mt_pytorch *policy, uint32_t id)
{
    return id != MT_NO_BLOCK && policy->store.blocks[id].state == MT_BLOCK_FREE;
}

/* One neighbor's entry becomes the entry of the whole. */
void mt_pytorch_file_freed(struct mt_pytorch *policy, uint32_t id, uint64_t *merged_bytes)
{
    struct mt_block *blocks = policy->store.blocks, *block = &blocks[id];
    uint32_t kept = is_free(policy, block->previous) ? block->previous : block->next;

    *merged_bytes = 0;
    MT_ASSERT(block->state == MT_BLOCK_FREE);
    if (!is_free(policy, kept)) {
        mt_pytorch_insert(policy, id);
        return;
    }
    if (kept == block->previous)
        *merged_bytes = pytorch_try_merge(policy, id, block->next);
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(policy, block->pool, block->stream);
    struct mt_free_cursor at =
        mt_free_set_find_entry(&free_list->free, mt_pytorch_free_entry(policy, kept));
    MT_ASSERT(at.entry && blocks[kept].pool == block->pool);
    *merged_bytes += blocks[kept].size_bytes;
    mt_block_merge(&policy->store, id, kept);
    block->gc_base = policy->pools[block->pool].gc_clock;
    mt_free_set_move(&free_list->free, at, mt_pytorch_free_entry(policy, id));
}

/* Expandable segments: one reservation of address space per pool and stream, larger than the GPU,
 * into which memory is mapped in chunks from the low end:
 *
 *     [ allocated | free | unmapped .................................. ]
 *
 * A request may use a free block at the growing end and map only the rest. */

/* Size of a reservation if the GPU's size is not recorded: more than any GPU has. */
static const uint64_t ASSUMED_TOTAL_MEMORY = 512 * MT_GIB;

static uint64_t chunk_bytes(const struct mt_pytorch *policy, uint32_t pool)
{
    return policy->pools[pool].is_small ? MT_PYTORCH_SMALL_SEGMENT
                                        : policy->config.large_segment_bytes;
}

/* Whether size_bytes of contiguous free or unmapped space begin here. */
static bool has_room(const struct mt_pytorch *policy, uint32_t id, uint64_t size_bytes)
{
    uint64_t found = 0;

    while (found < size_bytes && id != MT_NO_BLOCK &&
           mt_block_is_reusable(&policy->store.blocks[id])) {
        found += policy->store.blocks[id].size_bytes;
        id = policy->store.blocks[id].next;
    }
    return found >= size_bytes;
}

static void reserve(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                    uint32_t *block)
{
    uint64_t total = policy->device->total_memory_bytes ? policy->device->total_memory_bytes
                                                        : ASSUMED_TOTAL_MEMORY;
    uint64_t chunk = chunk_bytes(policy, search->pool);
    uint64_t va = mt_round_up(mt_max_u64(total + total / 8, search->size_bytes), chunk);
    struct mt_block fresh = {0};

    mt_device_base(policy->device, MT_EVENT_SEGMENT_MAP, search->size_bytes, va, search->stream,
                   &fresh.addr);
    fresh.size_bytes = va;
    fresh.stream = search->stream;
    fresh.pool = (uint16_t)search->pool;
    fresh.reservation = policy->reservation_count++;
    fresh.age = mt_pytorch_segment_age(policy);
    fresh.state = MT_BLOCK_UNMAPPED;
    fresh.expandable = true;
    MT_ASSERT(va % chunk == 0 && va >= search->size_bytes);
    mt_block_new(&policy->store, &fresh, block);
    mt_pytorch_insert(policy, *block);
}

/* First position, in address order of the unmapped blocks, where the request fits; includes a free
 * block right below an unmapped one. */
static void find_space(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                       uint32_t *block)
{
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(policy, search->pool, search->stream);

    for (struct mt_free_cursor at = mt_free_set_find(&free_list->unmapped, 0, 0); at.entry;
         at = mt_free_set_next(&free_list->unmapped, at)) {
        uint32_t id = at.entry->block, below = policy->store.blocks[id].previous;
        if (below != MT_NO_BLOCK && mt_block_is_reusable(&policy->store.blocks[below]))
            id = below;
        if (has_room(policy, id, search->size_bytes)) {
            *block = id;
            return;
        }
    }
    policy->device->any_order &= !free_list->reservations++;
    reserve(policy, search, block);
}

/* Maps the first size_bytes of an unmapped block, in whole chunks. The block becomes free and
 * absorbs free neighbors; *id still refers to it afterwards. */
static void map(struct mt_pytorch *policy, uint32_t id, uint64_t size_bytes)
{
    uint64_t bytes = mt_round_up(size_bytes, chunk_bytes(policy, policy->store.blocks[id].pool));
    uint64_t addr = policy->store.blocks[id].addr;

    MT_ASSERT(policy->store.blocks[id].state == MT_BLOCK_UNMAPPED && size_bytes > 0);
    MT_ASSERT(size_bytes <= policy->store.blocks[id].size_bytes);
    mt_pytorch_remove(policy, id);
    if (bytes < policy->store.blocks[id].size_bytes) {
        uint32_t rest;
        mt_block_split(&policy->store, id, bytes, &rest);
        mt_pytorch_note_split(policy, rest);
        mt_pytorch_insert(policy, rest);
    }
    struct mt_block *block = &policy->store.blocks[id];
    block->state = MT_BLOCK_FREE;
    bytes = block->size_bytes;
    pytorch_try_merge(policy, id, block->previous);
    pytorch_try_merge(policy, id, block->next);
    mt_pytorch_insert(policy, id);
    mt_level_add(&policy->counters.reserved, bytes);
    policy->counters.device_allocs++;
    mt_device_log(policy->device, MT_EVENT_SEGMENT_MAP, addr, bytes, block->stream,
                  &policy->counters);
}

enum mt_status mt_pytorch_expand(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                                 uint32_t *block)
{
    find_space(policy, search, block);
    uint64_t size = policy->store.blocks[*block].size_bytes;
    if (policy->store.blocks[*block].state == MT_BLOCK_UNMAPPED)
        map(policy, *block, mt_min_u64(size, search->size_bytes));
    while (policy->store.blocks[*block].size_bytes < search->size_bytes) {
        uint32_t next = policy->store.blocks[*block].next;
        uint64_t missing = search->size_bytes - policy->store.blocks[*block].size_bytes;
        if (next == MT_NO_BLOCK || policy->store.blocks[next].state != MT_BLOCK_UNMAPPED)
            return MT_ERR_DEVICE_OOM;
        map(policy, next, mt_min_u64(missing, policy->store.blocks[next].size_bytes));
        *block = next; /* it absorbed the previous block */
    }
    MT_ASSERT(policy->store.blocks[*block].state == MT_BLOCK_FREE);
    MT_ASSERT(policy->store.blocks[*block].size_bytes >= search->size_bytes);
    mt_pytorch_remove(policy, *block);
    return MT_OK;
}

/* Cuts a free piece off the low end of `*id` and files it; *id is then the rest. */
static void keep_low(struct mt_pytorch *policy, uint32_t *id, uint64_t bytes)
{
    uint32_t rest;

    mt_block_split(&policy->store, *id, bytes, &rest);
    mt_pytorch_note_split(policy, *id);
    mt_pytorch_insert(policy, *id);
    *id = rest;
}

/* Drops a reservation without mapped memory. */
static void drop_if_empty(struct mt_pytorch *policy, uint32_t id)
{
    if (!mt_block_is_split(&policy->store.blocks[id])) {
        mt_pytorch_free_list(policy, policy->store.blocks[id].pool, policy->store.blocks[id].stream)
            ->reservations--;
        mt_pytorch_remove(policy, id);
        mt_block_drop(&policy->store, id);
    }
}

/* Lowest address of the reservation that contains `id`. */
static uint64_t reservation_base(const struct mt_pytorch *policy, uint32_t id)
{
    while (policy->store.blocks[id].previous != MT_NO_BLOCK)
        id = policy->store.blocks[id].previous;
    return policy->store.blocks[id].addr;
}

static void pytorch_unmap(struct mt_pytorch *policy, uint32_t id)
{
    struct mt_block *block = &policy->store.blocks[id];
    uint64_t base = reservation_base(policy, id), chunk = chunk_bytes(policy, block->pool);
    uint64_t begin = base + mt_round_up(block->addr - base, chunk);
    uint64_t end = base + mt_round_down(block->addr + block->size_bytes - base, chunk);
    uint32_t stream = block->stream;

    MT_ASSERT(block->expandable && block->state == MT_BLOCK_FREE);
    if (begin >= end)
        return;
    MT_ASSERT(begin >= block->addr && end <= block->addr + block->size_bytes);
    mt_pytorch_remove(policy, id);
    if (begin > block->addr)
        keep_low(policy, &id, begin - block->addr);
    block = &policy->store.blocks[id];
    if (block->addr + block->size_bytes > end) {
        uint32_t high;
        mt_block_split(&policy->store, id, end - begin, &high);
        mt_pytorch_note_split(policy, high);
        mt_pytorch_insert(policy, high);
    }
    block = &policy->store.blocks[id];
    MT_ASSERT(block->addr == begin && block->size_bytes == end - begin);
    block->state = MT_BLOCK_UNMAPPED;
    pytorch_try_merge(policy, id, block->previous);
    pytorch_try_merge(policy, id, block->next);
    mt_pytorch_insert(policy, id);
    mt_level_sub(&policy->counters.reserved, end - begin);
    policy->counters.device_frees++;
    mt_device_log(policy->device, MT_EVENT_SEGMENT_UNMAP, begin, end - begin, stream,
                  &policy->counters);
    drop_if_empty(policy, id);
}

/* When the cache releases memory: a flush (retry or empty_cache), the search for oversize blocks
 * under max_split_size, and garbage collection. */

static void collect(struct mt_pytorch *policy, uint32_t block)
{
    mt_grow_to(&policy->scratch, &policy->scratch_capacity, policy->scratch_count + 1,
               sizeof *policy->scratch);
    policy->scratch[policy->scratch_count++] = block;
}

/* Releases a whole segment to the driver. */
static void release_segment(struct mt_pytorch *policy, uint32_t id)
{
    struct mt_block block = policy->store.blocks[id];

    MT_ASSERT(block.state == MT_BLOCK_FREE && !block.expandable);
    MT_ASSERT(!mt_block_is_split(&block) && policy->counters.segments.now > 0);
    mt_pytorch_remove(policy, id);
    mt_block_drop(&policy->store, id);
    mt_level_sub(&policy->counters.reserved, block.size_bytes);
    mt_level_sub(&policy->counters.segments, 1);
    policy->counters.device_frees++;
    mt_device_log(policy->device, MT_EVENT_SEGMENT_FREE, block.addr, block.size_bytes, block.stream,
                  &policy->counters);
}

/* Collects all free blocks of a pool, in set order, in the scratch list. */
static void collect_pool(struct mt_pytorch *policy, const struct mt_pytorch_pool *pool)
{
    policy->scratch_count = 0;
    for (uint32_t free_list = 0; free_list < pool->free_list_count; free_list++) {
        const struct mt_free_set *set = &pool->free_lists[free_list].free;
        struct mt_free_cursor at = mt_free_set_find(set, 0, 0);
        for (; at.entry; at = mt_free_set_next(set, at))
            collect(policy, at.entry->block);
    }
}

/* Segments first, then the chunks of expandable ones, each in set order. */
static void release_pool(struct mt_pytorch *policy, uint32_t pool)
{
    collect_pool(policy, &policy->pools[pool]);
    for (size_t i = 0; i < policy->scratch_count; i++) {
        const struct mt_block *block = &policy->store.blocks[policy->scratch[i]];
        if (!block->expandable && !mt_block_is_split(block))
            release_segment(policy, policy->scratch[i]);
        else if (!block->expandable)
            policy->scratch[i] = MT_NO_BLOCK;
    }
    for (size_t i = 0; i < policy->scratch_count; i++) {
        uint32_t id = policy->scratch[i];
        if (id != MT_NO_BLOCK && policy->store.blocks[id].state == MT_BLOCK_FREE &&
            policy->store.blocks[id].expandable)
            pytorch_unmap(policy, id);
    }
}

/* The default pool releases its large blocks first, a private pool its small ones. */
static void release_owner(struct mt_pytorch *policy, uint16_t owner)
{
    uint32_t large = 2u * owner, small = large + 1;

    if (small >= policy->pool_count)
        return; /* nothing was ever in it */
    release_pool(policy, owner ? small : large);
    release_pool(policy, owner ? large : small);
}

static bool is_release(const struct mt_device_base *base)
{
    return base->kind == MT_EVENT_SEGMENT_FREE || base->kind == MT_EVENT_SEGMENT_UNMAP;
}

uint64_t mt_pytorch_releasable(struct mt_pytorch *policy)
{
    uint64_t bytes = 0;

    for (uint32_t pool = 0; pool < mt_min_u64(policy->pool_count, 2); pool++) {
        collect_pool(policy, &policy->pools[pool]);
        for (size_t i = 0; i < policy->scratch_count; i++) {
            const struct mt_block *block = &policy->store.blocks[policy->scratch[i]];
            const uint64_t ends = block->expandable ? 2 * chunk_bytes(policy, pool) : 0;

            if (block->expandable || !mt_block_is_split(block))
                bytes += block->size_bytes - mt_min_u64(block->size_bytes, ends);
        }
    }
    return bytes;
}

/* A private pool releases memory only after the program has deleted it, and a trace shows this only
 * by the releases. Deleting a MemPool flushes only that pool, so the pools, and their order, are
 * those of the recorded group. */
static void release_as_recorded(struct mt_pytorch *policy)
{
    const struct mt_device_model *device = policy->device;
    const struct mt_device_base *last = NULL;

    for (size_t i = 0; i < device->base_count; i++) {
        const struct mt_device_base *base = &device->bases[i];
        if (!is_release(base))
            continue;
        if (!last || last->pool != base->pool)
            release_owner(policy, base->pool);
        last = base;
    }
}

void mt_pytorch_release_cached(struct mt_pytorch *policy)
{
    const struct mt_device_model *device = policy->device;

    for (size_t i = 0; i < device->base_count; i++)
        if (is_release(&device->bases[i]) && device->bases[i].pool) {
            release_as_recorded(policy);
            return;
        }
    release_owner(policy, 0);
}

/* Oversize blocks are never split, except in a trace that starts in the middle and has split
 * ones. */
static bool is_whole_segment(const struct mt_pytorch *policy, uint32_t id)
{
    const struct mt_block *block = &policy->store.blocks[id];

    return !block->expandable && !mt_block_is_split(block);
}

/* Releases oversize blocks of the free list from the largest down until `wanted` bytes are
 * released. Returns false if they are too few, but releases them anyway. */
static void release_largest(struct mt_pytorch *policy, struct mt_pytorch_free_list *free_list,
                            uint64_t wanted, bool *released)
{
    struct mt_free_cursor end = {free_list->free.leaf_count, 0, NULL};
    struct mt_free_cursor at = mt_free_set_previous(&free_list->free, end);
    uint64_t total = 0;

    policy->scratch_count = 0;
    for (; total < wanted && at.entry && at.entry->size_bytes >= policy->config.max_split_bytes;
         at = mt_free_set_previous(&free_list->free, at)) {
        if (!is_whole_segment(policy, at.entry->block))
            continue;
        total += at.entry->size_bytes;
        collect(policy, at.entry->block);
    }
    for (size_t i = 0; i < policy->scratch_count; i++)
        release_segment(policy, policy->scratch[i]);
    *released = total >= wanted;
}

void mt_pytorch_release_available(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                                  bool *released)
{
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(policy, search->pool, search->stream);
    const uint64_t wanted = mt_max_u64(policy->config.max_split_bytes, search->size_bytes);

    *released = false;
    if (policy->config.max_split_bytes == MT_PYTORCH_UNLIMITED)
        return;
    struct mt_free_cursor at = mt_free_set_find(&free_list->free, wanted, 0);
    if (!at.entry || !is_whole_segment(policy, at.entry->block)) {
        release_largest(policy, free_list, wanted, released);
        return;
    }
    *released = true;
    release_segment(policy, at.entry->block);
}

static uint64_t age_of(const struct mt_pytorch *policy, const struct mt_block *block)
{
    MT_ASSERT(block->gc_base <= policy->pools[block->pool].gc_clock);
    return policy->pools[block->pool].gc_clock - block->gc_base;
}

/* One pass: releases the blocks that are at least as old as the mean. */
static void collect_old(struct mt_pytorch *policy, double mean_age, uint64_t *reclaimed,
                        uint64_t *total_age, uint64_t *count)
{
    for (size_t i = 0; i < policy->scratch_count; i++) {
        uint32_t id = policy->scratch[i];
        if (id == MT_NO_BLOCK)
            continue;
        const struct mt_block *block = &policy->store.blocks[id];
        if (block->expandable || (double)age_of(policy, block) < mean_age)
            continue;
        *reclaimed += block->size_bytes;
        MT_ASSERT(*count > 0 && *total_age >= age_of(policy, block));
        *total_age -= age_of(policy, block);
        --*count;
        policy->scratch[i] = MT_NO_BLOCK;
        release_segment(policy, id);
    }
}

void mt_pytorch_collect_garbage(struct mt_pytorch *policy)
{
    double share = policy->config.gc_threshold * (double)policy->device->limit_bytes;
    uint64_t threshold = (uint64_t)share, total = mt_pytorch_total(policy);
    uint64_t reclaimed = 0, total_age = 0, count = 0;

    if (total <= threshold || !policy->pool_count)
        return;
    collect_pool(policy, &policy->pools[0]);
    for (size_t i = 0; i < policy->scratch_count; i++) {
        const struct mt_block *block = &policy->store.blocks[policy->scratch[i]];
        if (mt_block_is_split(block)) {
            policy->scratch[i] = MT_NO_BLOCK;
            continue;
        }
        total_age += age_of(policy, block);
        count++;
    }
    while (reclaimed < total - threshold && count > 0) {
        uint64_t before = count;
        collect_old(policy, (double)total_age / (double)count, &reclaimed, &total_age, &count);
        if (count == before)
            break;
    }
}
