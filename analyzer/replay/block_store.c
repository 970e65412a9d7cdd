#include "block_store.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

void mt_block_store_init(struct mt_block_store *store)
{
    memset(store, 0, sizeof *store);
}

void mt_block_store_release(struct mt_block_store *store)
{
    free(store->blocks);
    memset(store, 0, sizeof *store);
}

enum mt_status mt_block_new(struct mt_block_store *store, const struct mt_block *like,
                            uint32_t *block)
{
    struct mt_block copy = *like; /* `like` may lie in the array that moves */
    uint32_t id;

    if (store->has_unused) {
        id = store->unused;
        store->unused = store->blocks[id].next;
        store->has_unused = store->unused != MT_NO_BLOCK;
    } else {
        if (store->count >= MT_NO_BLOCK / 2 ||
            mt_grow(&store->blocks, &store->capacity, store->count + 1u, sizeof *store->blocks))
            return MT_ERR_MEMORY;
        id = store->count++;
    }
    copy.previous = copy.next = MT_NO_BLOCK;
    store->blocks[id] = copy;
    store->live++;
    *block = id;
    return MT_OK;
}

void mt_block_drop(struct mt_block_store *store, uint32_t id)
{
    struct mt_block *block = &store->blocks[id];

    if (block->previous != MT_NO_BLOCK)
        store->blocks[block->previous].next = block->next;
    if (block->next != MT_NO_BLOCK)
        store->blocks[block->next].previous = block->previous;
    block->state = MT_BLOCK_UNUSED;
    block->next = store->has_unused ? store->unused : MT_NO_BLOCK;
    store->unused = id;
    store->has_unused = true;
    store->live--;
}

enum mt_status mt_block_split(struct mt_block_store *store, uint32_t id, uint64_t low_bytes,
                              uint32_t *high)
{
    enum mt_status status = mt_block_new(store, &store->blocks[id], high);
    struct mt_block *low, *rest;

    if (status != MT_OK)
        return status;
    low = &store->blocks[id];
    rest = &store->blocks[*high];
    rest->addr += low_bytes;
    rest->size_bytes -= low_bytes;
    low->size_bytes = low_bytes;
    rest->previous = id;
    rest->next = low->next;
    if (low->next != MT_NO_BLOCK)
        store->blocks[low->next].previous = *high;
    low->next = *high;
    return MT_OK;
}

void mt_block_merge(struct mt_block_store *store, uint32_t id, uint32_t other)
{
    struct mt_block *block = &store->blocks[id];
    const struct mt_block *swallowed = &store->blocks[other];

    if (swallowed->addr < block->addr)
        block->addr = swallowed->addr;
    block->size_bytes += swallowed->size_bytes;
    mt_block_drop(store, other);
}

void mt_count_alloc(struct mt_counters *counters, const struct mt_block *block,
                    uint64_t remaining_bytes, bool was_split)
{
    if (!block->expandable) {
        if (was_split)
            mt_level_sub(&counters->inactive_split, block->size_bytes);
        else if (remaining_bytes)
            mt_level_add(&counters->inactive_split, remaining_bytes);
    }
    counters->allocations++;
    mt_level_add(&counters->allocated, block->size_bytes);
    mt_level_add(&counters->active, block->size_bytes);
    mt_level_add(&counters->requested, block->requested_bytes);
}

void mt_count_free_requested(struct mt_counters *counters, const struct mt_block *block)
{
    counters->frees++;
    mt_level_sub(&counters->allocated, block->size_bytes);
}

void mt_count_free_completed(struct mt_counters *counters, uint64_t size_bytes,
                             uint64_t requested_bytes, uint64_t merged_bytes,
                             const struct mt_block *result)
{
    if (!result->expandable) {
        uint64_t inactive = mt_block_is_split(result) ? result->size_bytes : 0;
        if (inactive > merged_bytes)
            mt_level_add(&counters->inactive_split, inactive - merged_bytes);
        else
            mt_level_sub(&counters->inactive_split, merged_bytes - inactive);
    }
    mt_level_sub(&counters->active, size_bytes);
    mt_level_sub(&counters->requested, requested_bytes);
}

static bool is_reusable(const struct mt_block *block)
{
    return block->state == MT_BLOCK_FREE || block->state == MT_BLOCK_UNMAPPED;
}

bool mt_block_store_is_valid(const struct mt_block_store *store)
{
    uint32_t id, seen = 0;

    for (id = 0; id < store->count; id++) {
        const struct mt_block *block = &store->blocks[id], *next;
        if (block->state == MT_BLOCK_UNUSED)
            continue;
        seen++;
        if (!block->size_bytes)
            return false;
        if (block->next == MT_NO_BLOCK)
            continue;
        next = &store->blocks[block->next];
        if (next->previous != id || block->addr + block->size_bytes != next->addr)
            return false;
        if (is_reusable(block) && next->state == block->state)
            return false;
    }
    return seen == store->live;
}
