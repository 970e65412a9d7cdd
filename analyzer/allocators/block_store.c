/* Blocks of a caching allocator: their neighbors, and the ordered sets of free ones. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "block_store.h"
#include "check.h"
#include "counters.h"
#include "grow.h"
#include "process_memory.h"
#include "sorted.h"

void *mt_array_copy(const void *array, size_t count, size_t entry_bytes)
{
    if (!count)
        return NULL;
    void *copy = mt_memory_new(count * entry_bytes);
    memcpy(copy, array, count * entry_bytes);
    return copy;
}

void mt_block_store_release(struct mt_block_store *store)
{
    free(store->blocks);
    memset(store, 0, sizeof *store);
}

void mt_block_store_copy(struct mt_block_store *copy, const struct mt_block_store *store)
{
    *copy = *store;
    copy->blocks = mt_array_copy(store->blocks, store->count, sizeof *store->blocks);
    copy->capacity = store->count;
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
    mt_block_new(store, &store->blocks[id], high);
    MT_ASSERT(low_bytes > 0 && low_bytes < store->blocks[id].size_bytes);
    struct mt_block *low = &store->blocks[id];
    struct mt_block *rest = &store->blocks[*high];
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

static bool has_sound_neighbours(const struct mt_block_store *store, uint32_t id, bool may_touch,
                                 const char **why)
{
    const struct mt_block *block = &store->blocks[id];

    MT_SOUND(why, block->previous == MT_NO_BLOCK || block->previous < store->count);
    MT_SOUND(why, block->previous == MT_NO_BLOCK || store->blocks[block->previous].next == id);
    if (block->next == MT_NO_BLOCK)
        return true;
    MT_SOUND(why, block->next < store->count);
    const struct mt_block *next = &store->blocks[block->next];
    MT_SOUND(why, next->state != MT_BLOCK_UNUSED);
    MT_SOUND(why, next->previous == id);
    MT_SOUND(why, block->addr + block->size_bytes == next->addr);
    MT_SOUND(why, next->expandable == block->expandable);
    MT_SOUND(why, may_touch || !mt_block_is_reusable(block) || next->state != block->state ||
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
    uint32_t seen = 0;

    for (uint32_t id = 0; id < store->count; id++) {
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

enum { STEP = 4 }; /* of find_in_leaf */

/* The number of the block is the last part of the key. It distinguishes blocks of segments that a
 * damaged trace has at one address. */
static bool is_before(const struct mt_free_entry *entry, const struct mt_free_entry *key)
{
    if (entry->size_bytes != key->size_bytes)
        return entry->size_bytes < key->size_bytes;
    if (entry->age != key->age)
        return entry->age < key->age;
    return entry->addr != key->addr ? entry->addr < key->addr : entry->block < key->block;
}

/* Whether the entry at a position is above the previous one and below the next. */
static bool is_in_order(const struct mt_free_leaf *leaf, uint32_t place)
{
    const struct mt_free_entry *entry = &leaf->entries[place];

    if (place && !is_before(entry - 1, entry))
        return false;
    return place + 1 >= leaf->count || is_before(entry, entry + 1);
}

static const struct mt_free_entry *last_of(const struct mt_free_leaf *leaf)
{
    return &leaf->entries[leaf->count - 1];
}

/* First leaf whose last entry is not before the key; leaf_count if none. */
static uint32_t find_leaf(const struct mt_free_set *set, const struct mt_free_entry *key)
{
    uint32_t low = 0;

    MT_BISECT(low, set->leaf_count, middle, is_before(last_of(set->leaves[middle]), key));
    return low;
}

/* Counts smaller sizes without branches, which would be mispredicted. Equal ones are rare. */
static uint32_t find_in_leaf(const struct mt_free_leaf *leaf, const struct mt_free_entry *key)
{
    const struct mt_free_entry *entries = leaf->entries;
    const uint64_t size = key->size_bytes;
    uint32_t steps = 0;

    for (uint32_t i = STEP - 1; i < MT_FREE_LEAF - 1; i += STEP)
        steps += entries[i].size_bytes < size;
    uint32_t place = steps * STEP;
    entries += place;
    for (uint32_t i = 0; i < STEP; i++)
        place += entries[i].size_bytes < size;
    while (place < leaf->count && is_before(&leaf->entries[place], key))
        place++;
    return place;
}

/* Inserts a new, empty leaf at index `at`; the caller fills it. */
static struct mt_free_leaf *add_leaf(struct mt_free_set *set, size_t at)
{
    struct mt_free_leaf *leaf;

    mt_grow_to(&set->leaves, &set->leaf_capacity, (size_t)set->leaf_count + 1, sizeof *set->leaves);
    leaf = mt_memory_new(sizeof *leaf);
    memset(leaf, UINT8_MAX, sizeof *leaf);
    leaf->count = 0;
    memmove(set->leaves + at + 1, set->leaves + at, (set->leaf_count - at) * sizeof *set->leaves);
    set->leaves[at] = leaf;
    set->leaf_count++;
    return leaf;
}

void mt_free_set_insert(struct mt_free_set *set, struct mt_free_entry entry)
{
    const struct mt_free_entry *key = &entry;
    uint32_t at = find_leaf(set, key);

    if (at == set->leaf_count && at > 0)
        at--; /* largest entry: goes to the end of the last leaf */
    if (!set->leaf_count)
        add_leaf(set, 0);
    struct mt_free_leaf *leaf = set->leaves[at];
    if (leaf->count == MT_FREE_LEAF) {
        struct mt_free_leaf *upper = add_leaf(set, at + 1);
        upper->count = MT_FREE_LEAF / 2;
        leaf->count -= upper->count;
        memcpy(upper->entries, leaf->entries + leaf->count, upper->count * sizeof *upper->entries);
        memset(leaf->entries + leaf->count, UINT8_MAX, upper->count * sizeof *upper->entries);
        if (is_before(last_of(leaf), key))
            leaf = upper;
    }
    uint32_t place = find_in_leaf(leaf, key);
    MT_ASSERT(place <= leaf->count && leaf->count < MT_FREE_LEAF);
    memmove(leaf->entries + place + 1, leaf->entries + place,
            (leaf->count - place) * sizeof *leaf->entries);
    leaf->entries[place] = entry;
    leaf->count++;
    set->count++;
    MT_ASSERT(is_in_order(leaf, place));
}

void mt_free_set_erase(struct mt_free_set *set, struct mt_free_cursor at)
{
    struct mt_free_leaf *leaf = set->leaves[at.leaf];

    MT_ASSERT(at.leaf < set->leaf_count && at.index < leaf->count);
    MT_ASSERT(at.entry == &leaf->entries[at.index] && set->count >= leaf->count);
    leaf->count--;
    set->count--;
    memmove(leaf->entries + at.index, leaf->entries + at.index + 1,
            (leaf->count - at.index) * sizeof *leaf->entries);
    leaf->entries[leaf->count].size_bytes = UINT64_MAX;
    if (!leaf->count) {
        free(leaf);
        set->leaf_count--;
        memmove(set->leaves + at.leaf, set->leaves + at.leaf + 1,
                (set->leaf_count - at.leaf) * sizeof *set->leaves);
    }
}

bool mt_free_set_remove(struct mt_free_set *set, struct mt_free_entry entry)
{
    struct mt_free_cursor at = mt_free_set_find_entry(set, entry);

    if (!at.entry)
        return false;
    mt_free_set_erase(set, at);
    return true;
}

/* Whether a key lies between the last entry of the previous leaf and the first one of the next
 * leaf. */
static bool belongs_to_leaf(const struct mt_free_set *set, uint32_t leaf,
                            const struct mt_free_entry *key)
{
    const struct mt_free_leaf *below = leaf > 0 ? set->leaves[leaf - 1] : NULL;
    const struct mt_free_leaf *above = leaf + 1 < set->leaf_count ? set->leaves[leaf + 1] : NULL;

    return (!below || is_before(last_of(below), key)) &&
           (!above || !is_before(&above->entries[0], key));
}

void mt_free_set_move(struct mt_free_set *set, struct mt_free_cursor at, struct mt_free_entry entry)
{
    struct mt_free_entry *entries = set->leaves[at.leaf]->entries;

    MT_ASSERT(at.leaf < set->leaf_count && at.index < set->leaves[at.leaf]->count);
    if (!belongs_to_leaf(set, at.leaf, &entry)) {
        mt_free_set_erase(set, at);
        mt_free_set_insert(set, entry);
        return;
    }
    uint32_t to = find_in_leaf(set->leaves[at.leaf], &entry);
    if (to > at.index) {
        to--; /* the entry itself precedes its new position */
        memmove(entries + at.index, entries + at.index + 1, (to - at.index) * sizeof *entries);
    } else {
        memmove(entries + to + 1, entries + to, (at.index - to) * sizeof *entries);
    }
    entries[to] = entry;
    MT_ASSERT(to < set->leaves[at.leaf]->count && is_in_order(set->leaves[at.leaf], to));
}

static struct mt_free_cursor cursor(const struct mt_free_set *set, uint32_t leaf, uint32_t index)
{
    return (struct mt_free_cursor){leaf, index, &set->leaves[leaf]->entries[index]};
}

static struct mt_free_cursor past_end(const struct mt_free_set *set)
{
    return (struct mt_free_cursor){set->leaf_count, 0, NULL};
}

static struct mt_free_cursor lower_bound(const struct mt_free_set *set,
                                         const struct mt_free_entry *key)
{
    uint32_t leaf = find_leaf(set, key);

    if (leaf == set->leaf_count)
        return past_end(set);
    return cursor(set, leaf, find_in_leaf(set->leaves[leaf], key));
}

struct mt_free_cursor mt_free_set_find(const struct mt_free_set *set, uint64_t size_bytes,
                                       uint64_t addr)
{
    const struct mt_free_entry key = {.size_bytes = size_bytes, .addr = addr};
    struct mt_free_cursor at = lower_bound(set, &key);

    MT_ASSERT(!at.entry || !is_before(at.entry, &key));
    return at;
}

struct mt_free_cursor mt_free_set_find_entry(const struct mt_free_set *set,
                                             struct mt_free_entry entry)
{
    struct mt_free_cursor at = lower_bound(set, &entry);

    return at.entry && is_before(&entry, at.entry) ? past_end(set) : at;
}

struct mt_free_cursor mt_free_set_last_like(const struct mt_free_set *set,
                                            struct mt_free_entry entry)
{
    const struct mt_free_entry behind = {entry.size_bytes, UINT64_MAX, UINT32_MAX, entry.age};

    return mt_free_set_previous(set, lower_bound(set, &behind));
}

struct mt_free_cursor mt_free_set_next(const struct mt_free_set *set, struct mt_free_cursor at)
{
    if (!at.entry)
        return at;
    if (at.index + 1 < set->leaves[at.leaf]->count)
        return cursor(set, at.leaf, at.index + 1);
    if (at.leaf + 1 < set->leaf_count)
        return cursor(set, at.leaf + 1, 0);
    return past_end(set);
}

struct mt_free_cursor mt_free_set_previous(const struct mt_free_set *set, struct mt_free_cursor at)
{
    if (at.entry && at.index > 0)
        return cursor(set, at.leaf, at.index - 1);
    if (at.leaf > 0)
        return cursor(set, at.leaf - 1, set->leaves[at.leaf - 1]->count - 1);
    return past_end(set);
}

bool mt_free_set_is_sound(const struct mt_free_set *set, const char **why)
{
    const struct mt_free_entry *below = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < set->leaf_count; i++) {
        const struct mt_free_leaf *leaf = set->leaves[i];
        MT_SOUND(why, leaf->count > 0 && leaf->count <= MT_FREE_LEAF);
        MT_SOUND(why, leaf->count == MT_FREE_LEAF ||
                          leaf->entries[leaf->count].size_bytes == UINT64_MAX);
        for (uint32_t place = 0; place < leaf->count; place++) {
            const struct mt_free_entry *entry = &leaf->entries[place];
            MT_SOUND(why, !below || is_before(below, entry));
            below = entry;
        }
        count += leaf->count;
    }
    MT_SOUND(why, count == set->count);
    return true;
}

void mt_free_set_release(struct mt_free_set *set)
{
    for (size_t i = 0; i < set->leaf_count; i++)
        free(set->leaves[i]);
    free(set->leaves);
    memset(set, 0, sizeof *set);
}

void mt_free_set_copy(struct mt_free_set *copy, const struct mt_free_set *set)
{
    *copy = *set;
    copy->leaves = mt_array_copy(set->leaves, set->leaf_count, sizeof *set->leaves);
    copy->leaf_capacity = set->leaf_count;
    for (size_t i = 0; i < set->leaf_count; i++)
        copy->leaves[i] = mt_array_copy(set->leaves[i], 1, sizeof *set->leaves[i]);
}
