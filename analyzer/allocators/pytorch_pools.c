#include "pytorch_pools.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "process_memory.h"

static void add_pools(struct mt_pytorch *policy, uint32_t pool)
{
    struct mt_pytorch_pool *pools;
    uint32_t count = pool / 2 * 2 + 2, i;

    if (count <= policy->pool_count)
        return;
    pools = mt_memory_resize(policy->pools, count * sizeof *pools);
    policy->pools = pools;
    for (i = policy->pool_count; i < count; i++) {
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
    uint32_t low = 0, high = pool->free_list_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct mt_pytorch_free_list *free_list = &pool->free_lists[middle];
        if (free_list->stream_handle < handle ||
            (free_list->stream_handle == handle && free_list->stream < stream))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct mt_pytorch_free_list *mt_pytorch_find_free_list(struct mt_pytorch *policy, uint32_t pool_id,
                                                       uint32_t stream)
{
    struct mt_pytorch_pool *pool;
    uint64_t handle;
    uint32_t i;

    if (pool_id >= policy->pool_count)
        add_pools(policy, pool_id);
    pool = &policy->pools[pool_id];
    handle =
        stream < policy->symbols->stream_count ? policy->symbols->streams[stream].handle : stream;
    i = place_of_stream(pool, handle, stream);
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

    if (!free_list)
        return; /* the free list exists: the block was inserted into it */
    if (block->state == MT_BLOCK_UNMAPPED)
        was_filed = mt_free_set_remove(&free_list->unmapped, unmapped_entry(block, id));
    else
        was_filed = mt_free_set_remove(&free_list->free, mt_pytorch_free_entry(policy, id));
    (void)was_filed;
    MT_ASSERT(was_filed);
}

uint64_t mt_pytorch_try_merge(struct mt_pytorch *policy, uint32_t id, uint32_t other)
{
    uint64_t bytes;

    if (other == MT_NO_BLOCK || policy->store.blocks[other].state != policy->store.blocks[id].state)
        return 0;
    bytes = policy->store.blocks[other].size_bytes;
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
    struct mt_pytorch_free_list *free_list;
    struct mt_free_cursor at;

    *merged_bytes = 0;
    MT_ASSERT(block->state == MT_BLOCK_FREE);
    if (!is_free(policy, kept)) {
        mt_pytorch_insert(policy, id);
        return;
    }
    if (kept == block->previous)
        *merged_bytes = mt_pytorch_try_merge(policy, id, block->next);
    free_list = mt_pytorch_free_list(policy, block->pool, block->stream);
    at = mt_free_set_find_entry(&free_list->free, mt_pytorch_free_entry(policy, kept));
    MT_ASSERT(at.entry && blocks[kept].pool == block->pool);
    *merged_bytes += blocks[kept].size_bytes;
    mt_block_merge(&policy->store, id, kept);
    block->gc_base = policy->pools[block->pool].gc_clock;
    mt_free_set_move(&free_list->free, at, mt_pytorch_free_entry(policy, id));
}
