#include "free_set.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "process_memory.h"

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

/* First leaf whose last entry is not before the key; leaf_count if none. */
static size_t find_leaf(const struct mt_free_set *set, const struct mt_free_entry *key)
{
    size_t low = 0, high = set->leaf_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct mt_free_leaf *leaf = set->leaves[middle];
        if (is_before(&leaf->entries[leaf->count - 1], key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t find_in_leaf(const struct mt_free_leaf *leaf, const struct mt_free_entry *key)
{
    uint32_t low = 0, high = leaf->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (is_before(&leaf->entries[middle], key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Inserts a new, empty leaf at index `at`; the caller fills it. */
static struct mt_free_leaf *add_leaf(struct mt_free_set *set, size_t at)
{
    struct mt_free_leaf *leaf;

    mt_grow_to(&set->leaves, &set->leaf_capacity, set->leaf_count + 1, sizeof *set->leaves);
    leaf = mt_memory_new(sizeof *leaf);
    leaf->count = 0;
    memmove(set->leaves + at + 1, set->leaves + at, (set->leaf_count - at) * sizeof *set->leaves);
    set->leaves[at] = leaf;
    set->leaf_count++;
    return leaf;
}

void mt_free_set_insert(struct mt_free_set *set, struct mt_free_entry entry)
{
    const struct mt_free_entry *key = &entry;
    size_t at = find_leaf(set, key);
    struct mt_free_leaf *leaf;
    uint32_t place;

    if (at == set->leaf_count && at > 0)
        at--; /* largest entry: goes to the end of the last leaf */
    if (!set->leaf_count)
        add_leaf(set, 0);
    leaf = set->leaves[at];
    if (leaf->count == MT_FREE_LEAF) {
        struct mt_free_leaf *upper = add_leaf(set, at + 1);
        upper->count = MT_FREE_LEAF / 2;
        leaf->count -= upper->count;
        memcpy(upper->entries, leaf->entries + leaf->count, upper->count * sizeof *upper->entries);
        if (is_before(&leaf->entries[leaf->count - 1], key))
            leaf = upper;
    }
    place = find_in_leaf(leaf, key);
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
static bool belongs_to_leaf(const struct mt_free_set *set, size_t leaf,
                            const struct mt_free_entry *key)
{
    const struct mt_free_leaf *below = leaf > 0 ? set->leaves[leaf - 1] : NULL;
    const struct mt_free_leaf *above = leaf + 1 < set->leaf_count ? set->leaves[leaf + 1] : NULL;

    return (!below || is_before(&below->entries[below->count - 1], key)) &&
           (!above || !is_before(&above->entries[0], key));
}

void mt_free_set_move(struct mt_free_set *set, struct mt_free_cursor at, struct mt_free_entry entry)
{
    struct mt_free_entry *entries = set->leaves[at.leaf]->entries;
    uint32_t to;

    MT_ASSERT(at.leaf < set->leaf_count && at.index < set->leaves[at.leaf]->count);
    if (!belongs_to_leaf(set, at.leaf, &entry)) {
        mt_free_set_erase(set, at);
        mt_free_set_insert(set, entry);
        return;
    }
    to = find_in_leaf(set->leaves[at.leaf], &entry);
    if (to > at.index) {
        to--; /* the entry itself precedes its new position */
        memmove(entries + at.index, entries + at.index + 1, (to - at.index) * sizeof *entries);
    } else {
        memmove(entries + to + 1, entries + to, (at.index - to) * sizeof *entries);
    }
    entries[to] = entry;
    MT_ASSERT(to < set->leaves[at.leaf]->count && is_in_order(set->leaves[at.leaf], to));
}

static struct mt_free_cursor cursor(const struct mt_free_set *set, size_t leaf, uint32_t index)
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
    size_t leaf = find_leaf(set, key);

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
    size_t i, count = 0;
    uint32_t place;

    for (i = 0; i < set->leaf_count; i++) {
        const struct mt_free_leaf *leaf = set->leaves[i];
        MT_SOUND(why, leaf->count > 0 && leaf->count <= MT_FREE_LEAF);
        for (place = 0; place < leaf->count; place++) {
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
    size_t i;

    for (i = 0; i < set->leaf_count; i++)
        free(set->leaves[i]);
    free(set->leaves);
    memset(set, 0, sizeof *set);
}
