/* Internals of the policy `pytorch`: its state, shared by its files (pools, expandable segments,
 * release). Source of all rules: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.11; versions 2.12
 * to 2.15 for the choice among equal free blocks. Reimplemented, no code copied. */
#ifndef MT_ANALYZER_PYTORCH_POOLS_H
#define MT_ANALYZER_PYTORCH_POOLS_H

#include "block_store.h"
#include "device_model.h"
#include "policy.h"
#include "pytorch_config.h"

/* Free blocks of one stream in one pool. */
struct mt_pytorch_free_list {
    uint32_t stream;
    uint64_t stream_handle; /* order of free lists: like the driver's pointers */
    uint32_t reservations;  /* of expandable segments, without those from before the trace */
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
    uint32_t age_count; /* number of ages so far; memory from before the trace has age 0 */
    struct mt_counters counters;
    bool restoring;        /* state is being restored: no block is in a set yet */
    uint32_t restore_hint; /* free remainder of the last restored block */
    uint32_t place_hint;   /* the same for the last placed block (pytorch_restore.c) */
    uint64_t place_looks;  /* blocks examined by searches for a place */
    uint32_t *scratch;     /* handles collected before a pool changes */
    size_t scratch_count, scratch_capacity;
};

/* A request with all inputs of the search. */
struct mt_pytorch_search {
    uint64_t requested_bytes, size_bytes, segment_bytes;
    uint32_t stream;
    uint32_t pool;
    struct mt_free_cursor found; /* the free block that serves it, still in its set */
    bool expandable;             /* expandable segments serve this request */
    /* From a private pool: during the capture of a graph or in use_mem_pool(), which is the same to
     * the allocator: no flush. */
    bool is_private;
};

/* Returns the free list of a stream in a pool, created if missing. */
struct mt_pytorch_free_list *mt_pytorch_find_free_list(struct mt_pytorch *policy, uint32_t pool,
                                                       uint32_t stream);

/* The same, with a shortcut for programs with one stream. */
static inline struct mt_pytorch_free_list *mt_pytorch_free_list(struct mt_pytorch *policy,
                                                                uint32_t pool, uint32_t stream)
{
    if (pool < policy->pool_count && policy->pools[pool].free_list_count &&
        policy->pools[pool].free_lists[0].stream == stream)
        return &policy->pools[pool].free_lists[0];
    return mt_pytorch_find_free_list(policy, pool, stream);
}

/* The age of new memory from the driver; 0 if ages do not matter. */
uint32_t mt_pytorch_segment_age(struct mt_pytorch *policy);

/* Notes a split: `block` is the part that PyTorch makes a new block of. */
void mt_pytorch_note_split(struct mt_pytorch *policy, uint32_t block);

/* The entry of a free block in the set of its free list. */
static inline struct mt_free_entry mt_pytorch_free_entry(const struct mt_pytorch *policy,
                                                         uint32_t id)
{
    const struct mt_block *block = &policy->store.blocks[id];

    return (struct mt_free_entry){block->size_bytes, block->addr, id, block->age};
}

/* These two insert a free (or unmapped) block into its set, and remove it from there. */
void mt_pytorch_insert(struct mt_pytorch *policy, uint32_t block);
void mt_pytorch_remove(struct mt_pytorch *policy, uint32_t block);

/* Merges a freed block with free neighbors and files it. *merged_bytes: bytes of the neighbors. */
void mt_pytorch_file_freed(struct mt_pytorch *policy, uint32_t block, uint64_t *merged_bytes);

/* Returns the bytes of the policy's memory to which the limit applies. */
static inline uint64_t mt_pytorch_total(const struct mt_pytorch *policy)
{
    return policy->counters.reserved.now;
}

/* mt_pytorch_expand takes memory for the request from an expandable segment. The block is in no
 * set, and has at least search->size_bytes. pytorch_unmap unmaps what it can of a free block. */
enum mt_status mt_pytorch_expand(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                                 uint32_t *block) MT_MUST_USE;

/* These three give memory back to the driver. */
void mt_pytorch_release_cached(struct mt_pytorch *policy);

/* Returns bytes that a flush of the default pool would release, or less. */
uint64_t mt_pytorch_releasable(struct mt_pytorch *policy);

/* Sets *released to whether the allocation is worth retrying. */
void mt_pytorch_release_available(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                                  bool *released);
void mt_pytorch_collect_garbage(struct mt_pytorch *policy);

/* Internals of the policy `pytorch`: a start in the middle of a run. Segments first, ascending,
 * then blocks, ascending, then mt_pytorch_restored. */

void mt_pytorch_restore_segment(struct mt_pytorch *self, const struct mt_event *event);
enum mt_status mt_pytorch_restore_block(struct mt_pytorch *self, const struct mt_event *event,
                                        uint32_t *handle) MT_MUST_USE;
void mt_pytorch_restored(struct mt_pytorch *self);

/* Blocks at a given address (policy.h, `place`). The request's range is [request->addr, +
 * request->block_bytes).
 *
 * Sets *block to the free block in the small or the large pool of the owner that contains the
 * range. O(free blocks of the pool and stream); for ranges in ascending order only the first one
 * searches. Returns MT_ERR_FORMAT if there is none, MT_ERR_UNSUPPORTED after too many searches. */
enum mt_status mt_pytorch_find_place(struct mt_pytorch *self,
                                     const struct mt_policy_request *request,
                                     uint32_t *block) MT_MUST_USE;

/* Cuts the range out of that block, regardless of the rules for splitting. */
enum mt_status mt_pytorch_place(struct mt_pytorch *self, const struct mt_policy_request *request,
                                uint32_t *id) MT_MUST_USE;

/* Whether the range is a whole segment (for an expandable one, all that is mapped), and free. */
bool mt_pytorch_is_idle_segment(struct mt_pytorch *self, const struct mt_policy_request *request);

#endif
