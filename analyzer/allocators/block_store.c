#include "block_store.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "process_memory.h"

void mt_block_store_init(struct mt_block_store *store)
{
    memset(store, 0, sizeof *store);
}

void mt_block_store_release(struct mt_block_store *store)
{
    free(store->blocks);
    memset(store, 0, sizeof *store);
}

void mt_block_new(struct mt_block_store *store, const struct mt_block *like, uint32_t *block)
{
    struct mt_block copy = *like; /* `like` may be in the array that moves */
    uint32_t id;

    MT_ASSERT(like->size_bytes > 0 && like->state != MT_BLOCK_UNUSED);
    if (store->has_unused) {
        id = store->unused;
        MT_ASSERT(id < store->count && store->blocks[id].state == MT_BLOCK_UNUSED);
        store->unused = store->blocks[id].next;
        store->has_unused = store->unused != MT_NO_BLOCK;
    } else {
        if (store->count >= MT_NO_BLOCK / 2)
            mt_memory_end();
        mt_grow_to(&store->blocks, &store->capacity, (size_t)store->count + 1,
                   sizeof *store->blocks);
        id = store->count++;
    }
    copy.previous = copy.next = MT_NO_BLOCK;
    store->blocks[id] = copy;
    store->live++;
    MT_ASSERT(store->live <= store->count);
    *block = id;
}

void mt_block_drop(struct mt_block_store *store, uint32_t id)
{
    struct mt_block *block = &store->blocks[id];

    MT_ASSERT(id < store->count && store->live > 0);
    MT_ASSERT(block->state != MT_BLOCK_UNUSED);
    MT_ASSERT(block->previous == MT_NO_BLOCK || store->blocks[block->previous].next == id);
    MT_ASSERT(block->next == MT_NO_BLOCK || store->blocks[block->next].previous == id);
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

void mt_block_split(struct mt_block_store *store, uint32_t id, uint64_t low_bytes, uint32_t *high)
{
    struct mt_block *low, *rest;

    mt_block_new(store, &store->blocks[id], high);
    MT_ASSERT(low_bytes > 0 && low_bytes < store->blocks[id].size_bytes);
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
    MT_ASSERT(low->addr + low->size_bytes == rest->addr);
    MT_ASSERT(rest->next == MT_NO_BLOCK ||
              rest->addr + rest->size_bytes == store->blocks[rest->next].addr);
}

void mt_block_merge(struct mt_block_store *store, uint32_t id, uint32_t other)
{
    struct mt_block *block = &store->blocks[id];
    const struct mt_block *swallowed = &store->blocks[other];

    MT_ASSERT(other == block->next || other == block->previous);
    MT_ASSERT(other == block->next ? block->addr + block->size_bytes == swallowed->addr
                                   : swallowed->addr + swallowed->size_bytes == block->addr);
    MT_ASSERT(swallowed->state != MT_BLOCK_ALLOCATED && swallowed->state != MT_BLOCK_PENDING);
    if (swallowed->addr < block->addr)
        block->addr = swallowed->addr;
    block->size_bytes += swallowed->size_bytes;
    mt_block_drop(store, other);
}

void mt_block_store_count_alloc(struct mt_counters *counters, const struct mt_block *block,
                                uint64_t remaining_bytes, bool was_split)
{
    MT_ASSERT(block->state == MT_BLOCK_ALLOCATED);
    MT_ASSERT(!remaining_bytes || mt_block_is_split(block));
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

void mt_block_store_count_free_requested(struct mt_counters *counters, const struct mt_block *block)
{
    MT_ASSERT(block->state == MT_BLOCK_PENDING);
    counters->frees++;
    mt_level_sub(&counters->allocated, block->size_bytes);
}

void mt_block_store_count_free_completed(struct mt_counters *counters, uint64_t size_bytes,
                                         uint64_t requested_bytes, uint64_t merged_bytes,
                                         const struct mt_block *result)
{
    MT_ASSERT(result->state == MT_BLOCK_FREE);
    MT_ASSERT(result->size_bytes == size_bytes + merged_bytes);
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

static bool has_sound_neighbours(const struct mt_block_store *store, uint32_t id, bool may_touch,
                                 const char **why)
{
    const struct mt_block *block = &store->blocks[id], *next;

    MT_SOUND(why, block->previous == MT_NO_BLOCK || block->previous < store->count);
    MT_SOUND(why, block->previous == MT_NO_BLOCK || store->blocks[block->previous].next == id);
    if (block->next == MT_NO_BLOCK)
        return true;
    MT_SOUND(why, block->next < store->count);
    next = &store->blocks[block->next];
    MT_SOUND(why, next->state != MT_BLOCK_UNUSED);
    MT_SOUND(why, next->previous == id);
    MT_SOUND(why, block->addr + block->size_bytes == next->addr);
    MT_SOUND(why, next->expandable == block->expandable);
    MT_SOUND(why, may_touch || !is_reusable(block) || next->state != block->state ||
                      next->reservation != block->reservation);
    return true;
}

/* Checks that the list of unused slots is finite and has only unused slots. */
static bool has_sound_rest(const struct mt_block_store *store, const char **why)
{
    uint32_t id = store->has_unused ? store->unused : MT_NO_BLOCK, unused = 0;

    for (; id != MT_NO_BLOCK; id = store->blocks[id].next, unused++) {
        MT_SOUND(why, id < store->count && unused < store->count);
        MT_SOUND(why, store->blocks[id].state == MT_BLOCK_UNUSED);
    }
    MT_SOUND(why, unused + store->live == store->count);
    return true;
}

bool mt_block_store_is_sound(const struct mt_block_store *store, bool may_touch, const char **why)
{
    uint32_t id, seen = 0;

    for (id = 0; id < store->count; id++) {
        const struct mt_block *block = &store->blocks[id];
        if (block->state == MT_BLOCK_UNUSED)
            continue;
        seen++;
        MT_SOUND(why, block->state <= MT_BLOCK_UNMAPPED);
        MT_SOUND(why, block->size_bytes > 0);
        if (!has_sound_neighbours(store, id, may_touch, why))
            return false;
    }
    MT_SOUND(why, seen == store->live);
    return has_sound_rest(store, why);
}
