/* Inside of the policy `pytorch`: its state, shared by the files that hold one
 * idea each (pools, expandable segments, release). Source of all rules:
 * c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.11, and of 2.12 to 2.15 which of
 * equal free blocks is used first; own words, no code. */
#ifndef MT_ANALYZER_PYTORCH_POOLS_H
#define MT_ANALYZER_PYTORCH_POOLS_H

#include "block_store.h"
#include "device_model.h"
#include "free_set.h"
#include "pytorch_config.h"

/* Free blocks of one stream in one pool. */
struct mt_pytorch_free_list {
    uint32_t stream;
    uint64_t stream_handle; /* order of free lists: as the driver's pointers */
    struct mt_free_set free;
    struct mt_free_set unmapped; /* keyed by (0, address) */
};

/* small_blocks or large_blocks, of the default or of a private pool. */
struct mt_pytorch_pool {
    bool is_small;
    uint16_t owner;                          /* trace's pool id */
    struct mt_pytorch_free_list *free_lists; /* ascending by stream handle, then stream */
    uint32_t free_list_count;
    size_t free_list_capacity;
    uint64_t gc_clock;
};

struct mt_pytorch {
    struct mt_pytorch_config config;
    struct mt_device_model *device;
    const struct mt_symbols *symbols;
    struct mt_block_store store;
    struct mt_pytorch_pool *pools; /* 2 * owner + is_small */
    uint32_t pool_count;
    uint32_t reservation_count;
    enum mt_free_order order;
    uint32_t age_count; /* ages given so far; what was there before the trace began has age 0 */
    struct mt_counters counters;
    bool restoring;        /* state is put back: nothing is in a set yet */
    uint32_t restore_hint; /* free block that the last restored one left over */
    uint32_t place_hint;   /* likewise, of the last one that was placed (pytorch_place.h) */
    uint32_t *scratch;     /* handles collected before a pool changes */
    size_t scratch_count, scratch_capacity;
};

/* A request, with everything that the search needs. */
struct mt_pytorch_search {
    uint64_t requested_bytes, size_bytes, segment_bytes;
    uint32_t stream;
    uint32_t pool;
    struct mt_free_cursor found; /* the free block that serves it, still in its set */
    bool expandable;             /* expandable segments serve this request */
    /* Of a private pool: made while a graph is captured or in a region of
     * use_mem_pool(), which is the same to the allocator: no flush. */
    bool is_private;
};

/* The free list of a stream in a pool, made if new; NULL without memory. */
struct mt_pytorch_free_list *mt_pytorch_find_free_list(struct mt_pytorch *policy, uint32_t pool,
                                                       uint32_t stream);

/* The same; most programs have one stream. */
static inline struct mt_pytorch_free_list *mt_pytorch_free_list(struct mt_pytorch *policy,
                                                                uint32_t pool, uint32_t stream)
{
    if (pool < policy->pool_count && policy->pools[pool].free_list_count &&
        policy->pools[pool].free_lists[0].stream == stream)
        return &policy->pools[pool].free_lists[0];
    return mt_pytorch_find_free_list(policy, pool, stream);
}

/* The age of memory that comes from the driver; 0 where ages do not matter. */
uint32_t mt_pytorch_segment_age(struct mt_pytorch *policy);

/* A block was split: `block` is the part that PyTorch makes a new block of. */
void mt_pytorch_note_split(struct mt_pytorch *policy, uint32_t block);

/* The entry of a free block in the set of its free list. */
static inline struct mt_free_entry mt_pytorch_free_entry(const struct mt_pytorch *policy,
                                                         uint32_t id)
{
    const struct mt_block *block = &policy->store.blocks[id];

    return (struct mt_free_entry){block->size_bytes, block->addr, id, block->age};
}

/* Puts a free (or unmapped) block into the set where it belongs; takes it out. */
enum mt_status mt_pytorch_insert(struct mt_pytorch *policy, uint32_t block) MT_MUST_USE;
void mt_pytorch_remove(struct mt_pytorch *policy, uint32_t block);

/* `block` swallows neighbour `other` if that one is reusable and of the same
 * kind (mapped or not); returns the bytes that it brought. */
uint64_t mt_pytorch_try_merge(struct mt_pytorch *policy, uint32_t block, uint32_t other);

/* A block that became free joins free neighbours and is filed. *merged_bytes: those
 * of the neighbours. */
enum mt_status mt_pytorch_file_freed(struct mt_pytorch *policy, uint32_t block,
                                     uint64_t *merged_bytes) MT_MUST_USE;

/* All of the policy's blocks that are held, i.e. what the limit is about. */
static inline uint64_t mt_pytorch_total(const struct mt_pytorch *policy)
{
    return policy->counters.reserved.now;
}

/* expandable: memory for the request out of an expandable segment. The block
 * is taken out of its set, at least size_bytes large. */
enum mt_status mt_pytorch_expand(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                                 uint32_t *block) MT_MUST_USE;
enum mt_status mt_pytorch_unmap(struct mt_pytorch *policy, uint32_t block) MT_MUST_USE;

/* release: give memory back to the driver. */
enum mt_status mt_pytorch_release_cached(struct mt_pytorch *policy) MT_MUST_USE;
/* *released: is it worth trying the allocation again? */
enum mt_status mt_pytorch_release_available(struct mt_pytorch *policy,
                                            const struct mt_pytorch_search *search,
                                            bool *released) MT_MUST_USE;
enum mt_status mt_pytorch_collect_garbage(struct mt_pytorch *policy) MT_MUST_USE;

/* Blocks touch and are merged, what can be used again is filed where it belongs, and the counters
 * are what the blocks say. Not while state is put back. */
bool mt_pytorch_is_sound(const struct mt_pytorch *policy, const char **why);

#endif
