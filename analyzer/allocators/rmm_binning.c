/* The policy `rmm-binning`: RMM's binning_memory_resource over cudaMalloc. Bins of 2^min to 2^max
 * bytes, each a fixed_size_memory_resource that requests 128 blocks at a time, also at
 * construction; larger requests go upstream. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 256, BLOCKS_PER_CHUNK = 128, FREE_LISTS_PER_STREAM = 64 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t min_exponent, max_exponent;
    uint64_t started; /* bins below this exponent have their first chunk */
};

enum { MIN, MAX };

static const struct mt_policy_option options[] = {
    {"min_size_exponent", MT_POLICY_COUNT, 18, 8, 30, NULL},
    {"max_size_exponent", MT_POLICY_COUNT, 22, 8, 30, NULL}};

/* A bin reuses free blocks in FIFO order. */
static struct mt_heap_key oldest_first(const struct mt_block *block)
{
    struct mt_heap_key key = {0, block->gc_base};

    return key;
}

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    self->min_exponent = self->started = values[MIN];
    self->max_exponent = values[MAX];
    if (values[MIN] <= values[MAX])
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "min_size_exponent is more than max_size_exponent");
}

static void free_list_of(struct mt_heap *heap, uint32_t stream, uint64_t exponent,
                         uint32_t *free_list)
{
    mt_heap_free_list(heap, (uint64_t)stream * FREE_LISTS_PER_STREAM + exponent, free_list);
}

/* Adds a chunk, cut into its blocks, the lowest first in line. */
static enum mt_status add_chunk(struct mt_heap *heap, uint64_t exponent, uint32_t stream)
{
    uint64_t size = (uint64_t)1 << exponent;
    uint32_t free_list, id, rest;

    free_list_of(heap, stream, exponent, &free_list);
    enum mt_status status = mt_heap_grow(heap, BLOCKS_PER_CHUNK * size, stream, free_list, &id);
    for (uint32_t i = 1; status == MT_OK && i < BLOCKS_PER_CHUNK; i++) {
        mt_block_split(&heap->store, id, size, &rest);
        mt_heap_put(heap, id);
        id = rest;
    }
    if (status == MT_OK) {
        mt_heap_put(heap, id);
        return MT_OK;
    } else
        return status;
}

/* Takes the memory of the constructors: one chunk per bin, in the default stream's lists. */
static enum mt_status start(struct mt_policy *self)
{
    enum mt_status status = MT_OK;

    while (status == MT_OK && self->started <= self->max_exponent) {
        status = add_chunk(&self->heap, self->started, 0);
        self->started += status == MT_OK;
    }
    return status;
}

/* Takes from the stream's own list, otherwise from another one of the same bin. */
static uint32_t take_free(struct mt_heap *heap, uint32_t own, uint64_t exponent)
{
    uint32_t id = mt_heap_take_first(heap, own, 0);

    for (uint32_t free_list = 0; id == MT_NO_BLOCK && free_list < heap->free_list_count;
         free_list++)
        if (heap->free_lists[free_list].name % FREE_LISTS_PER_STREAM == exponent)
            id = mt_heap_take_first(heap, free_list, 0);
    return id;
}

static enum mt_status find_in_bin(struct mt_heap *heap, uint64_t exponent, uint32_t stream,
                                  struct mt_heap_share *share)
{
    enum mt_status status = MT_OK;

    free_list_of(heap, stream, exponent, &share->free_list);
    share->size_bytes = (uint64_t)1 << exponent;
    share->block = take_free(heap, share->free_list, exponent);
    if (share->block == MT_NO_BLOCK) {
        status = add_chunk(heap, exponent, stream);
        if (status != MT_OK)
            return status;
        share->block = mt_heap_take_first(heap, share->free_list, 0);
    }
    MT_ASSERT(share->block != MT_NO_BLOCK);
    MT_ASSERT(heap->store.blocks[share->block].size_bytes == share->size_bytes);
    return MT_OK;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    uint64_t exponent = policy->min_exponent;
    enum mt_status status = start(policy);

    while (exponent <= policy->max_exponent && (uint64_t)1 << exponent < request->size_bytes)
        exponent++;
    if (status != MT_OK)
        return status;
    if (exponent <= policy->max_exponent)
        return find_in_bin(&policy->heap, exponent, request->stream, share);
    share->size_bytes = mt_round_up(request->size_bytes, ALIGNMENT);
    return mt_heap_grow(&policy->heap, share->size_bytes, request->stream,
                        MT_NO_BLOCK /* no free list */, &share->block);
}

static const struct mt_heap_rules rules = {
    MT_HEAP_RULES(options, init, find),
    .key = oldest_first,
    .may_touch = true,
    .own_addresses = true,
};

const struct mt_policy_ops mt_policy_rmm_binning = {
    .name = "rmm-binning",
    .summary = "RMM's binning_memory_resource over cudaMalloc",
    .doubt = "it behaves as the tests of RMM expect, but no run was compared; it visits other "
             "streams' lists in the order of event handles, here in the order of first use",
    .heap = &rules,
    .free_completed = mt_heap_op_free_whole,
    .empty_cache = mt_heap_op_keep_cache,
    MT_HEAP_OPS,
};
