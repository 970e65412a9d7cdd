/* When the cache releases memory: a flush (retry or empty_cache), the search for oversize blocks
 * under max_split_size, and garbage collection. */
#include "pytorch_pools.h"

#include "check.h"
#include "grow.h"

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
    uint32_t free_list;

    policy->scratch_count = 0;
    for (free_list = 0; free_list < pool->free_list_count; free_list++) {
        const struct mt_free_set *set = &pool->free_lists[free_list].free;
        struct mt_free_cursor at = mt_free_set_find(set, 0, 0);
        for (; at.entry; at = mt_free_set_next(set, at)) {
            collect(policy, at.entry->block);
        }
    }
}

/* Segments first, then the chunks of expandable ones, each in set order. */
static void release_pool(struct mt_pytorch *policy, uint32_t pool)
{
    size_t i;

    collect_pool(policy, &policy->pools[pool]);
    for (i = 0; i < policy->scratch_count; i++) {
        const struct mt_block *block = &policy->store.blocks[policy->scratch[i]];
        if (!block->expandable && !mt_block_is_split(block))
            release_segment(policy, policy->scratch[i]);
        else if (!block->expandable)
            policy->scratch[i] = MT_NO_BLOCK;
    }
    for (i = 0; i < policy->scratch_count; i++) {
        uint32_t id = policy->scratch[i];
        if (id != MT_NO_BLOCK && policy->store.blocks[id].state == MT_BLOCK_FREE &&
            policy->store.blocks[id].expandable)
            mt_pytorch_unmap(policy, id);
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

/* A private pool releases memory only after the program has deleted it, and a trace shows this only
 * by the releases. Deleting a MemPool flushes only that pool, so the pools, and their order, are
 * those of the recorded group. */
static void release_as_recorded(struct mt_pytorch *policy)
{
    const struct mt_device_model *device = policy->device;
    const struct mt_device_base *last = NULL;
    size_t i;

    for (i = 0; i < device->base_count; i++) {
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
    size_t i;

    for (i = 0; i < device->base_count; i++)
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
    size_t i;

    policy->scratch_count = 0;
    for (; total < wanted && at.entry && at.entry->size_bytes >= policy->config.max_split_bytes;
         at = mt_free_set_previous(&free_list->free, at)) {
        if (!is_whole_segment(policy, at.entry->block))
            continue;
        total += at.entry->size_bytes;
        collect(policy, at.entry->block);
    }
    for (i = 0; i < policy->scratch_count; i++)
        release_segment(policy, policy->scratch[i]);
    *released = total >= wanted;
}

void mt_pytorch_release_available(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                                  bool *released)
{
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(policy, search->pool, search->stream);
    uint64_t wanted = policy->config.max_split_bytes;
    struct mt_free_cursor at;

    *released = false;
    if (policy->config.max_split_bytes == MT_PYTORCH_UNLIMITED)
        return;
    if (search->size_bytes > wanted)
        wanted = search->size_bytes;
    at = mt_free_set_find(&free_list->free, wanted, 0);
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
    size_t i;

    for (i = 0; i < policy->scratch_count; i++) {
        uint32_t id = policy->scratch[i];
        const struct mt_block *block;
        if (id == MT_NO_BLOCK)
            continue;
        block = &policy->store.blocks[id];
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
    uint64_t reclaimed = 0, total_age = 0, count = 0, before;
    size_t i;

    if (total <= threshold || !policy->pool_count)
        return;
    collect_pool(policy, &policy->pools[0]);
    for (i = 0; i < policy->scratch_count; i++) {
        const struct mt_block *block = &policy->store.blocks[policy->scratch[i]];
        if (mt_block_is_split(block)) {
            policy->scratch[i] = MT_NO_BLOCK;
            continue;
        }
        total_age += age_of(policy, block);
        count++;
    }
    while (reclaimed < total - threshold && count > 0) {
        before = count;
        collect_old(policy, (double)total_age / (double)count, &reclaimed, &total_age, &count);
        if (count == before)
            break;
    }
}
