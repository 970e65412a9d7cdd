/* Blocks of a caching allocator and their neighbors in the address space:
 *
 *     segment   [ allocated | free | pending | free ............ ]
 *     blocks       0 <-----> 1 <---> 2 <-----> 3
 *
 * A block knows the blocks right below and above it in the same segment. The store splits and
 * merges; the policy decides which blocks are free and in which order they are tried. Handles are
 * indices, reused after release. */
#ifndef MT_ANALYZER_BLOCK_STORE_H
#define MT_ANALYZER_BLOCK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"

#define MT_NO_BLOCK UINT32_MAX

/* Returns a copy of an array for the caller to free; NULL if it is empty. */
void *mt_array_copy(const void *array, size_t count, size_t entry_bytes);

enum mt_block_state {
    MT_BLOCK_UNUSED, /* unused slot of the store */
    MT_BLOCK_FREE,
    MT_BLOCK_ALLOCATED,
    MT_BLOCK_PENDING, /* freed by the program, waits for other streams */
    MT_BLOCK_UNMAPPED /* address space of an expandable segment, no memory */
};

struct mt_block {
    uint64_t addr, size_bytes;
    uint64_t requested_bytes;
    uint64_t gc_base;        /* clock of the pool when it became free */
    uint32_t previous, next; /* neighbors by address, MT_NO_BLOCK */
    uint32_t stream;
    uint32_t reservation; /* expandable: number of the reservation, assigned by the policy */
    uint32_t age;         /* order of creation, assigned by the policy */
    uint16_t pool;        /* assigned by the policy */
    uint8_t state;        /* enum mt_block_state */
    bool expandable;
};

/* Zeroed memory is an empty store. */
struct mt_block_store {
    struct mt_block *blocks;
    uint32_t count;
    size_t capacity;
    uint32_t unused; /* head of the list of unused slots, linked by next */
    uint32_t live;   /* number of blocks */
    bool has_unused;
};

void mt_block_store_release(struct mt_block_store *store);

/* *copy becomes a copy with memory of its own. */
void mt_block_store_copy(struct mt_block_store *copy, const struct mt_block_store *store);

/* Creates a block without neighbors; copies everything of `like` except the links. May move
 * store->blocks. */
void mt_block_new(struct mt_block_store *store, const struct mt_block *like, uint32_t *block);

/* Removes a block; its neighbors, if any, become neighbors of each other. */
void mt_block_drop(struct mt_block_store *store, uint32_t block);

/* Cuts `block` after `low_bytes`: it keeps the low end, and *high becomes a new block with the
 * rest, otherwise identical. */
void mt_block_split(struct mt_block_store *store, uint32_t block, uint64_t low_bytes,
                    uint32_t *high);

/* `block` absorbs its neighbor `other`, which is dropped. */
void mt_block_merge(struct mt_block_store *store, uint32_t block, uint32_t other);

static inline bool mt_block_is_reusable(const struct mt_block *block)
{
    return block->state == MT_BLOCK_FREE || block->state == MT_BLOCK_UNMAPPED;
}

static inline bool mt_block_is_split(const struct mt_block *block)
{
    return block->previous != MT_NO_BLOCK || block->next != MT_NO_BLOCK;
}

/* Counts a free block that serves a request. `remaining_bytes`: left over by a split (0 = no
 * split). Counters change in the order of the original, because peaks depend on it. */
void mt_block_store_count_alloc(struct mt_counters *counters, const struct mt_block *block,
                                uint64_t remaining_bytes, bool was_split);

void mt_block_store_count_free_requested(struct mt_counters *counters,
                                         const struct mt_block *block);

/* `size_bytes` of the block before it merged with neighbors of `merged_bytes` in total; `result` is
 * the merged block. */
void mt_block_store_count_free_completed(struct mt_counters *counters, uint64_t size_bytes,
                                         uint64_t requested_bytes, uint64_t merged_bytes,
                                         const struct mt_block *result);

/* Checks that neighbors refer to each other, touch, and are never both free, and that every slot is
 * a block or in the list of unused ones. `may_touch`: free neighbors may stay separate. *why: the
 * violated rule. */
bool mt_block_store_is_sound(const struct mt_block_store *store, bool may_touch, const char **why);

/* Ordered set of free blocks, key (size, age, address, block) ascending: best fit is the lower
 * bound of (size, 0), and ties go to the smallest age, then to the lowest address. A caller without
 * ages leaves them 0.
 *
 * A sorted array divided into leaves of at most MT_FREE_LEAF entries. Most traces keep a few
 * hundred free blocks: one to a few leaves, all in cache. Insert, remove and lower bound are O(log
 * n + MT_FREE_LEAF + n / MT_FREE_LEAF). */

enum { MT_FREE_LEAF = 32 };

struct mt_free_entry {
    uint64_t size_bytes, addr;
    uint32_t block;
    uint32_t age; /* order of creation: the smallest is the oldest */
};

struct mt_free_leaf {
    uint32_t count;
    struct mt_free_entry entries[MT_FREE_LEAF]; /* unused ones have the size UINT64_MAX */
};

/* Zeroed memory is an empty set. Leaves are never empty. */
struct mt_free_set {
    struct mt_free_leaf **leaves;
    size_t leaf_capacity;
    uint32_t leaf_count, count;
};

/* A position in a set, of two words; valid until the set changes. entry NULL = past the end. */
struct mt_free_cursor {
    uint32_t leaf, index;
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

/* *copy becomes a copy with memory of its own. */
void mt_free_set_copy(struct mt_free_set *copy, const struct mt_free_set *set);

#endif
