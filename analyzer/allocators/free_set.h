/* Ordered set of free blocks, key (size, age, address, block) ascending: best fit is the lower
 * bound of (size, 0), and ties go to the smallest age, then to the lowest address. A caller without
 * ages leaves them 0.
 *
 * A sorted array divided into leaves of at most MT_FREE_LEAF entries. Most traces keep a few
 * hundred free blocks: one to a few leaves, all in cache. Insert, remove and lower bound are O(log
 * n + MT_FREE_LEAF + n / MT_FREE_LEAF). */
#ifndef MT_ANALYZER_FREE_SET_H
#define MT_ANALYZER_FREE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum { MT_FREE_LEAF = 32 };

struct mt_free_entry {
    uint64_t size_bytes, addr;
    uint32_t block;
    uint32_t age; /* order of creation: the smallest is the oldest */
};

struct mt_free_leaf {
    uint32_t count;
    struct mt_free_entry entries[MT_FREE_LEAF];
};

/* Zeroed memory is an empty set. Leaves are never empty. */
struct mt_free_set {
    struct mt_free_leaf **leaves;
    size_t leaf_count, leaf_capacity;
    size_t count;
};

/* A position in a set; valid until the set changes. entry NULL = past the end. */
struct mt_free_cursor {
    size_t leaf;
    uint32_t index;
    const struct mt_free_entry *entry;
};

void mt_free_set_insert(struct mt_free_set *set, struct mt_free_entry entry);

/* Returns false if there is no such entry. */
bool mt_free_set_remove(struct mt_free_set *set, struct mt_free_entry entry);

/* Removes the entry at a position; cheaper than by key. */
void mt_free_set_erase(struct mt_free_set *set, struct mt_free_cursor at);

/* Replaces the entry at a position by another, like erasing it and inserting the other, but mostly
 * within its leaf. The other must not be in the set. */
void mt_free_set_move(struct mt_free_set *set, struct mt_free_cursor at,
                      struct mt_free_entry entry);

/* First entry with (size, age, addr) >= (size_bytes, 0, addr). */
struct mt_free_cursor mt_free_set_find(const struct mt_free_set *set, uint64_t size_bytes,
                                       uint64_t addr);
/* Position of an entry; past the end if there is none. */
struct mt_free_cursor mt_free_set_find_entry(const struct mt_free_set *set,
                                             struct mt_free_entry entry);
/* The last entry with the size and age of one that is in the set. O(log n). */
struct mt_free_cursor mt_free_set_last_like(const struct mt_free_set *set,
                                            struct mt_free_entry entry);
struct mt_free_cursor mt_free_set_next(const struct mt_free_set *set, struct mt_free_cursor at);
/* Returns the position before `at`. Before the end is the last entry; before the first entry, the
 * result is past the end. */
struct mt_free_cursor mt_free_set_previous(const struct mt_free_set *set, struct mt_free_cursor at);

/* Leaves hold 1 to MT_FREE_LEAF entries, in strictly ascending order throughout. */
bool mt_free_set_is_sound(const struct mt_free_set *set, const char **why);

void mt_free_set_release(struct mt_free_set *set);

#endif
