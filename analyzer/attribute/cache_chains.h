/* Key-value caches that a program keeps by hand: for each token, every layer concatenates its keys,
 * and its values, with those of the new token, and drops the shorter block. Such a cache is a chain
 * of generations, all made by one stack:
 *
 *   - the blocks of a generation have one size, and each generation is longer than the one before
 *     by the same number of bytes;
 *   - it has as many blocks as the one before, 3 or more: one for each layer, or two;
 *   - all of them live until the next generation begins, and each is freed when its successor is
 *     there. What a model without a cache computes again, longer with each token, ends within its
 *     token, or all at once;
 *   - something else is born between its blocks, or between its pairs: the rest of a layer.
 *
 * Two such links in a row make a chain, and all blocks of its stack a cache. What the first
 * generation replaces was made elsewhere: by the projection of the prompt, or before the trace
 * begins. It is cache as well: blocks that are freed right after a birth of the first two
 * generations, were there before the chain, and are no shorter than what the chain began with.
 *
 * Memory: 96 bytes for each stack, 32 for each block of a later generation that lives, and 16 for
 * each block that may be such a first one. */
#ifndef MT_ANALYZER_CACHE_CHAINS_H
#define MT_ANALYZER_CACHE_CHAINS_H

#include "map.h"
#include "status.h"
#include "symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the blocks of one stack do. */
struct mt_cache_chain {
    uint64_t bytes;                 /* of a block of this generation */
    uint64_t step_bytes;            /* longer than the one before */
    uint64_t first_bytes;           /* of a block of the first */
    uint64_t first;                 /* allocation that the chain began with, */
    uint64_t old_begin;             /* ... the generation before, */
    uint64_t begin;                 /* ... and this generation */
    uint64_t last;                  /* allocation of this stack */
    uint32_t generation;            /* 0 = no block yet, 1 = the first */
    uint32_t links;                 /* in a row, with the same step */
    uint32_t blocks, live;          /* of this generation; in the first none is followed */
    uint32_t old_blocks, old_live;  /* of the one before */
    uint32_t parted;                /* blocks of this generation that did not follow at once */
    uint32_t first_head, last_head; /* list of what it may have replaced; index + 1 */
    bool is_uneven;                 /* more of the old generation lives than is not replaced yet */
    bool is_cache;                  /* stays: a next request begins a chain of its own */
};

/* A block that is freed right after one of a young chain was born. */
struct mt_cache_head {
    uint64_t allocation;
    uint32_t next; /* index + 1 */
};

/* A block that a chain has replaced. */
struct mt_cache_replaced {
    uint64_t allocation;
    uint64_t least_bytes; /* is cache if it has as many */
};

/* Zeroed memory is ready. */
struct mt_cache_chains {
    struct mt_cache_chain *chains; /* by stack */
    size_t chain_capacity;
    struct mt_map live; /* allocation -> stack, of blocks of later generations */
    struct mt_cache_head *heads;
    size_t head_count, head_capacity;
    uint32_t free_head; /* index + 1 */
    struct mt_cache_replaced *replaced;
    size_t replaced_count, replaced_capacity;
    uint32_t last_stack; /* of the last birth */
    bool failed;         /* no memory: what is found is not all */
};

void mt_cache_chains_release(struct mt_cache_chains *chains);

/* Allocations in order: numbers rise. Amortised O(1). */
enum mt_status mt_cache_chains_birth(struct mt_cache_chains *chains, uint64_t allocation,
                                     uint32_t stack, uint64_t size_bytes) MT_MUST_USE;
/* Sets `failed` if there is no memory. */
void mt_cache_chains_end(struct mt_cache_chains *chains, uint64_t allocation);

/* Is what that stack makes cache? */
static inline bool mt_cache_chains_has(const struct mt_cache_chains *chains, uint32_t stack)
{
    return stack < chains->chain_capacity && chains->chains[stack].is_cache;
}

#endif
