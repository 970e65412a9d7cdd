/* Blocks of a caching allocator and their neighbours in the address space:
 *
 *     segment   [ allocated | free | pending | free ............ ]
 *     blocks       0 <-----> 1 <---> 2 <-----> 3
 *
 * A block knows the blocks right below and above it in the same segment. The
 * store splits and merges; which blocks are free and in which order they are
 * tried is the policy's business. Handles are indices, reused after release. */
#ifndef MT_ANALYZER_BLOCK_STORE_H
#define MT_ANALYZER_BLOCK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "status.h"

#define MT_NO_BLOCK UINT32_MAX

enum mt_block_state {
    MT_BLOCK_UNUSED, /* slot of the store, no block */
    MT_BLOCK_FREE,
    MT_BLOCK_ALLOCATED,
    MT_BLOCK_PENDING, /* freed by the program, waits for other streams */
    MT_BLOCK_UNMAPPED /* address space of an expandable segment, no memory */
};

struct mt_block {
    uint64_t addr, size_bytes;
    uint64_t requested_bytes;
    uint64_t gc_base;        /* clock of the pool when it became free */
    uint32_t previous, next; /* neighbours by address, MT_NO_BLOCK */
    uint32_t stream;
    uint32_t reservation; /* expandable: which one, policy's own number */
    uint32_t age;         /* policy's own number in an order of creation */
    uint16_t pool;        /* policy's own number */
    uint8_t state;        /* enum mt_block_state */
    bool expandable;
};

struct mt_block_store {
    struct mt_block *blocks;
    uint32_t count;
    size_t capacity;
    uint32_t unused; /* head of the list of unused slots, linked by next */
    uint32_t live;   /* blocks that exist */
    bool has_unused;
};

void mt_block_store_init(struct mt_block_store *store);
void mt_block_store_release(struct mt_block_store *store);

/* A new block without neighbours; all of `like` but the links is copied. May
 * move store->blocks. */
enum mt_status mt_block_new(struct mt_block_store *store, const struct mt_block *like,
                            uint32_t *block) MT_MUST_USE;

/* Forgets a block; its neighbours, if any, become neighbours. */
void mt_block_drop(struct mt_block_store *store, uint32_t block);

/* Cuts `block` after `low_bytes`: it keeps the low end, *high becomes a new
 * block with the rest, equal in everything else. */
enum mt_status mt_block_split(struct mt_block_store *store, uint32_t block, uint64_t low_bytes,
                              uint32_t *high) MT_MUST_USE;

/* `block` swallows its neighbour `other`, which is dropped. */
void mt_block_merge(struct mt_block_store *store, uint32_t block, uint32_t other);

static inline bool mt_block_is_split(const struct mt_block *block)
{
    return block->previous != MT_NO_BLOCK || block->next != MT_NO_BLOCK;
}

/* A free block was found for a request. `remaining_bytes`: what a split left
 * over (0 = no split); the counters come in the order of the original, since
 * peaks depend on it. */
void mt_count_alloc(struct mt_counters *counters, const struct mt_block *block,
                    uint64_t remaining_bytes, bool was_split);

void mt_count_free_requested(struct mt_counters *counters, const struct mt_block *block);

/* `size_bytes` of the block before it merged with neighbours that took
 * `merged_bytes` in all; `result` is what became of it. */
void mt_count_free_completed(struct mt_counters *counters, uint64_t size_bytes,
                             uint64_t requested_bytes, uint64_t merged_bytes,
                             const struct mt_block *result);

/* Neighbours name each other, touch, and are never both free; every slot is a block or in the list
 * of unused ones. `may_touch`: free neighbours may stay apart. *why: the rule that is broken. */
bool mt_block_store_is_sound(const struct mt_block_store *store, bool may_touch, const char **why);

#endif
