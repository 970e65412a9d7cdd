/* Key-value caches that a program keeps by hand: for each token, every layer concatenates its keys
 * and its values with those of the new token, and drops the shorter block. The blocks of such a
 * cache form a chain of generations, all allocated by one stack:
 *
 *   - the blocks of a generation have one size, and each generation is longer than the one before
 *     by the same number of bytes;
 *   - each generation has as many blocks as the one before, at least 3: one or two for each layer;
 *   - all blocks of a generation live until the next one begins, and each is freed when its
 *     successor exists. In a model without a cache, which recomputes longer blocks for each token,
 *     blocks end within their token, or all at once;
 *   - other blocks, those of the rest of a layer, are allocated between the blocks of a generation,
 *     or between its pairs.
 *
 * Two such links in a row make a chain. All blocks of its stack are then cache. The blocks that the
 * first generation replaces come from other stacks: from the projection of the prompt, or from
 * before the start of the trace. They also count as cache. They are the blocks that are freed right
 * after an allocation of the first two generations, existed before the chain, and are at least as
 * long as the chain's first blocks.
 *
 * Memory: 96 bytes for each stack, 32 for each live block of a later generation, and 16 for each
 * block that the first generation may have replaced. */
#ifndef MT_ANALYZER_CACHE_CHAINS_H
#define MT_ANALYZER_CACHE_CHAINS_H

#include "map.h"
#include "symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* State of the blocks of one stack. */
struct mt_cache_chain {
    uint64_t bytes;                 /* of a block of this generation */
    uint64_t step_bytes;            /* growth over the previous generation */
    uint64_t first_bytes;           /* of a block of the first generation */
    uint64_t first;                 /* first allocation of the chain */
    uint64_t old_begin;             /* first allocation of the previous generation */
    uint64_t begin;                 /* first allocation of this generation */
    uint64_t last;                  /* last allocation of this stack */
    uint32_t generation;            /* 0 = no block yet, 1 = the first */
    uint32_t links;                 /* consecutive generations with the same step */
    uint32_t blocks, live;          /* of this generation; not counted in the first one */
    uint32_t old_blocks, old_live;  /* of the previous generation */
    uint32_t parted;                /* blocks of this generation that did not follow directly */
    uint32_t first_head, last_head; /* list of blocks that it may have replaced; index + 1 */
    bool is_uneven; /* more blocks of the old generation are alive than still have to be replaced */
    bool is_cache;  /* stays set even if the next request begins a new chain */
};

/* A block that is freed right after an allocation of a young chain. */
struct mt_cache_head {
    uint64_t allocation;
    uint32_t next; /* index + 1 */
};

/* A block that a chain has replaced. */
struct mt_cache_replaced {
    uint64_t allocation;
    uint64_t least_bytes; /* the block is cache if it has at least this many bytes */
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
};

void mt_cache_chains_release(struct mt_cache_chains *chains);

/* Takes allocations in the order of their numbers. Amortized O(1). */
void mt_cache_chains_birth(struct mt_cache_chains *chains, uint64_t allocation, uint32_t stack,
                           uint64_t size_bytes);
void mt_cache_chains_end(struct mt_cache_chains *chains, uint64_t allocation);

/* Returns true if the blocks of that stack are cache. */
static inline bool mt_cache_chains_has(const struct mt_cache_chains *chains, uint32_t stack)
{
    return stack < chains->chain_capacity && chains->chains[stack].is_cache;
}

#endif
