/* The policy `rmm-binning`: RMM's binning_memory_resource over cudaMalloc. Bins
 * of 2^min to 2^max bytes, each a fixed_size_memory_resource that asks for 128
 * blocks at a time, at its construction too; larger requests go upstream. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

#include <stdlib.h>

enum { ALIGNMENT = 256, BLOCKS_PER_CHUNK = 128, LANES_PER_STREAM = 64 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t min_exponent, max_exponent;
    uint64_t started; /* bins below this exponent have their first chunk */
};

enum { MIN, MAX, OPTIONS };

/* Free blocks of a bin are used first in, first out. */
static struct mt_heap_key oldest_first(const struct mt_block *block)
{
    struct mt_heap_key key = {0, block->gc_base};

    return key;
}

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    static const uint64_t defaults[OPTIONS] = {18, 22};
    uint64_t values[OPTIONS] = {18, 22};
    const struct mt_policy_option options[OPTIONS] = {
        {"min_size_exponent", MT_POLICY_COUNT, &values[MIN], 8, 30, NULL},
        {"max_size_exponent", MT_POLICY_COUNT, &values[MAX], 8, 30, NULL}};
    enum mt_status status = mt_policy_options_parse(text, options, OPTIONS, error);

    (void)header;
    (void)symbols;
    if (status == MT_OK && values[MIN] > values[MAX])
        status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                         "min_size_exponent is more than max_size_exponent");
    if (status != MT_OK)
        return status;
    mt_policy_options_spell("rmm-binning", options, defaults, OPTIONS, spelling, spelling_size);
    *policy = calloc(1, sizeof **policy);
    if (!*policy)
        return MT_ERR_MEMORY;
    mt_heap_init(&(*policy)->heap, device, 0);
    (*policy)->heap.key = oldest_first;
    (*policy)->heap.may_touch = true;
    (*policy)->heap.own_addresses = true;
    (*policy)->min_exponent = (*policy)->started = values[MIN];
    (*policy)->max_exponent = values[MAX];
    return MT_OK;
}

static enum mt_status lane_of(struct mt_heap *heap, uint32_t stream, uint64_t exponent,
                              uint32_t *lane)
{
    return mt_heap_lane(heap, (uint64_t)stream * LANES_PER_STREAM + exponent, lane);
}

/* One more chunk, cut into its blocks, the lowest first in line. */
static enum mt_status add_chunk(struct mt_heap *heap, uint64_t exponent, uint32_t stream)
{
    uint64_t size = (uint64_t)1 << exponent;
    enum mt_status status;
    uint32_t lane, id, rest, i;

    status = lane_of(heap, stream, exponent, &lane);
    if (status == MT_OK)
        status = mt_heap_grow(heap, BLOCKS_PER_CHUNK * size, stream, lane, &id);
    for (i = 1; status == MT_OK && i < BLOCKS_PER_CHUNK; i++) {
        status = mt_block_split(&heap->store, id, size, &rest);
        if (status == MT_OK)
            status = mt_heap_put(heap, id);
        id = rest;
    }
    return status == MT_OK ? mt_heap_put(heap, id) : status;
}

/* What the constructors take: a chunk a bin, in the default stream's lists. */
static enum mt_status start(struct mt_policy *self)
{
    enum mt_status status = MT_OK;

    while (status == MT_OK && self->started <= self->max_exponent) {
        status = add_chunk(&self->heap, self->started, 0);
        self->started += status == MT_OK;
    }
    return status;
}

/* From the stream's own list, else from another's of the same bin. */
static uint32_t take_free(struct mt_heap *heap, uint32_t own, uint64_t exponent)
{
    uint32_t id = mt_heap_take_first(heap, own, 0), lane;

    for (lane = 0; id == MT_NO_BLOCK && lane < heap->lane_count; lane++) {
        if (heap->lanes[lane].name % LANES_PER_STREAM == exponent)
            id = mt_heap_take_first(heap, lane, 0);
    }
    return id;
}

static enum mt_status alloc_in_bin(struct mt_heap *heap, uint64_t exponent,
                                   const struct mt_policy_request *request,
                                   struct mt_policy_block *out)
{
    enum mt_status status;
    uint32_t lane, id;

    status = lane_of(heap, request->stream, exponent, &lane);
    if (status != MT_OK)
        return status;
    id = take_free(heap, lane, exponent);
    if (id == MT_NO_BLOCK) {
        status = add_chunk(heap, exponent, request->stream);
        if (status != MT_OK)
            return status;
        id = mt_heap_take_first(heap, lane, 0);
    }
    MT_ASSERT(id != MT_NO_BLOCK);
    MT_ASSERT(heap->store.blocks[id].size_bytes == (uint64_t)1 << exponent);
    heap->store.blocks[id].reservation = lane;
    return mt_heap_hand_out(heap, id, (uint64_t)1 << exponent, request->size_bytes, out);
}

static enum mt_status alloc_upstream(struct mt_heap *heap, const struct mt_policy_request *request,
                                     struct mt_policy_block *out)
{
    uint64_t size = mt_round_up(request->size_bytes, ALIGNMENT);
    uint32_t id;
    enum mt_status status =
        mt_heap_grow(heap, size, request->stream, MT_NO_BLOCK /* no lane */, &id);

    return status == MT_OK ? mt_heap_hand_out(heap, id, size, request->size_bytes, out) : status;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t exponent = policy->min_exponent;
    enum mt_status status;

    if (request->size_bytes > MT_HEAP_MAX_REQUEST)
        return mt_heap_oom(heap);
    while (exponent <= policy->max_exponent && (uint64_t)1 << exponent < request->size_bytes)
        exponent++;
    status = start(policy);
    if (status == MT_OK)
        status = exponent <= policy->max_exponent ? alloc_in_bin(heap, exponent, request, out)
                                                  : alloc_upstream(heap, request, out);
    return status == MT_ERR_DEVICE_OOM ? mt_heap_oom(heap) : status;
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = &policy->heap;

    mt_heap_complete(heap, handle);
    if (heap->store.blocks[handle].reservation == MT_NO_BLOCK)
        return mt_heap_drop(heap, handle);
    return mt_heap_put(heap, handle);
}

const struct mt_policy_ops mt_policy_rmm_binning = {
    .name = "rmm-binning",
    .summary = "RMM's binning_memory_resource over cudaMalloc",
    .doubt = "what its own tests expect holds, but no run of RMM was compared; it visits other "
             "streams' lists in the order of event handles, here in the order of first use",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
