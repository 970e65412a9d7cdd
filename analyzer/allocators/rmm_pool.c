/* The policy `rmm-pool`: RMM's pool_memory_resource. A free list a stream, best
 * fit with ties to the lowest address, the rest always split off; a miss looks
 * into the lists of other streams, then merges them into its own, then doubles
 * the pool. Segments go back only to stay below a maximum. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

#include <stdlib.h>

enum { ALIGNMENT = 256 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t initial_bytes, maximum_bytes;
    bool started;
};

enum { INITIAL, MAXIMUM, OPTIONS };

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    static const uint64_t nothing_said = UINT64_MAX;
    uint64_t memory = device->limit_bytes ? device->limit_bytes : device->total_memory_bytes;
    uint64_t values[OPTIONS] = {nothing_said, 0};
    const uint64_t defaults[OPTIONS] = {nothing_said, 0};
    const struct mt_policy_option options[OPTIONS] = {
        {"initial_pool_size", MT_POLICY_BYTES, &values[INITIAL], 0, MT_HEAP_MAX_SEGMENT, NULL},
        {"maximum_pool_size", MT_POLICY_BYTES, &values[MAXIMUM], 0, MT_HEAP_MAX_SEGMENT, NULL}};
    enum mt_status status = mt_policy_options_parse(text, options, OPTIONS, error);

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    if (values[INITIAL] == nothing_said) /* as RMM for Python: half of the device */
        values[INITIAL] = mt_min_u64(memory / 2, MT_HEAP_MAX_SEGMENT);
    values[INITIAL] = mt_round_down(values[INITIAL], ALIGNMENT);
    values[MAXIMUM] = mt_round_down(values[MAXIMUM], ALIGNMENT);
    if (values[MAXIMUM] && values[INITIAL] > values[MAXIMUM])
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "initial_pool_size is more than maximum_pool_size");
    mt_policy_options_spell("rmm-pool", options, defaults, OPTIONS, spelling, spelling_size);
    *policy = calloc(1, sizeof **policy);
    if (!*policy)
        return MT_ERR_MEMORY;
    mt_heap_init(&(*policy)->heap, device, 0);
    (*policy)->initial_bytes = values[INITIAL];
    (*policy)->maximum_bytes = values[MAXIMUM];
    return MT_OK;
}

/* The constructor's block lies in the list of the default stream. */
static enum mt_status start(struct mt_policy *self)
{
    enum mt_status status;
    uint32_t lane, id;

    if (self->started || !self->initial_bytes)
        return MT_OK;
    status = mt_heap_lane(&self->heap, 0, &lane);
    if (status == MT_OK)
        status = mt_heap_grow(&self->heap, self->initial_bytes, 0, lane, &id);
    if (status != MT_OK)
        return status;
    self->started = true;
    return mt_heap_put(&self->heap, id);
}

static uint32_t take_from_others(struct mt_heap *heap, uint32_t own, uint64_t size_bytes)
{
    uint32_t lane, id = MT_NO_BLOCK;

    for (lane = 0; id == MT_NO_BLOCK && lane < heap->lane_count; lane++) {
        if (lane != own)
            id = mt_heap_take_first(heap, lane, size_bytes);
    }
    return id;
}

static enum mt_status move_lane(struct mt_heap *heap, uint32_t from, uint32_t to)
{
    enum mt_status status = MT_OK;
    uint32_t id;

    while (status == MT_OK && (id = mt_heap_take_first(heap, from, 0)) != MT_NO_BLOCK) {
        MT_ASSERT(from != to && heap->store.blocks[id].reservation == from);
        heap->store.blocks[id].reservation = to;
        mt_heap_merge(heap, id);
        status = mt_heap_put(heap, id);
    }
    return status;
}

static enum mt_status merge_others(struct mt_heap *heap, uint32_t own, uint64_t size_bytes,
                                   uint32_t *block)
{
    enum mt_status status = MT_OK;
    uint32_t lane;

    for (lane = 0; status == MT_OK && *block == MT_NO_BLOCK && lane < heap->lane_count; lane++) {
        if (lane == own || !heap->lanes[lane].free.count)
            continue;
        status = move_lane(heap, lane, own);
        if (status == MT_OK)
            *block = mt_heap_take_first(heap, own, size_bytes);
    }
    return status;
}

/* Free segment with the lowest address; MT_NO_BLOCK if there is none. */
static uint32_t lowest_whole(const struct mt_heap *heap)
{
    uint32_t id, lowest = MT_NO_BLOCK;

    for (id = 0; id < heap->store.count; id++) {
        const struct mt_block *block = &heap->store.blocks[id];
        if (block->state == MT_BLOCK_FREE && !mt_block_is_split(block) &&
            (lowest == MT_NO_BLOCK || block->addr < heap->store.blocks[lowest].addr))
            lowest = id;
    }
    return lowest;
}

/* Gives whole segments back until a request fits below the maximum again. */
static enum mt_status reclaim(struct mt_policy *self, uint64_t size)
{
    struct mt_heap *heap = &self->heap;
    enum mt_status status = MT_OK;
    uint32_t id;

    if (!self->maximum_bytes || size > self->maximum_bytes)
        return MT_OK;
    while (status == MT_OK && self->maximum_bytes - heap->counters.reserved.now < size &&
           (id = lowest_whole(heap)) != MT_NO_BLOCK) {
        mt_heap_take(heap, id);
        status = mt_heap_drop(heap, id);
    }
    return status;
}

/* With a maximum: half of what remains, or the request. Without: the pool's
 * size again, halved as long as the device refuses. */
static enum mt_status expand(struct mt_policy *self, uint64_t size, uint32_t stream, uint32_t lane,
                             uint32_t *block)
{
    uint64_t pool = self->heap.counters.reserved.now, try_bytes, remaining;
    enum mt_status status;

    if (self->maximum_bytes) {
        remaining =
            mt_round_up(self->maximum_bytes - mt_min_u64(pool, self->maximum_bytes), ALIGNMENT);
        if (size > remaining) {
            self->heap.device->refusals++;
            return MT_ERR_DEVICE_OOM;
        }
        try_bytes = mt_max_u64(size, remaining / 2);
    } else {
        try_bytes = mt_max_u64(size, pool);
    }
    status = mt_heap_grow(&self->heap, mt_round_up(try_bytes, ALIGNMENT), stream, lane, block);
    while (status == MT_ERR_DEVICE_OOM && try_bytes > size) {
        try_bytes = mt_max_u64(size, try_bytes / 2);
        status = mt_heap_grow(&self->heap, mt_round_up(try_bytes, ALIGNMENT), stream, lane, block);
    }
    return status;
}

static enum mt_status find(struct mt_policy *self, uint64_t size, uint32_t stream, uint32_t lane,
                           uint32_t *block)
{
    enum mt_status status = MT_OK;

    *block = mt_heap_take_first(&self->heap, lane, size);
    if (*block == MT_NO_BLOCK)
        *block = take_from_others(&self->heap, lane, size);
    if (*block == MT_NO_BLOCK)
        status = merge_others(&self->heap, lane, size, block);
    if (status != MT_OK || *block != MT_NO_BLOCK)
        return status;
    MT_ASSERT(size % ALIGNMENT == 0 && lane < self->heap.lane_count);
    status = reclaim(self, size);
    if (status == MT_OK)
        status = expand(self, size, stream, lane, block);
    return status;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    struct mt_heap *heap = &policy->heap;
    uint32_t lane, id;
    enum mt_status status;
    uint64_t size;

    if (request->size_bytes > MT_HEAP_MAX_REQUEST)
        return mt_heap_oom(heap);
    size = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
    status = start(policy);
    if (status == MT_OK)
        status = mt_heap_lane(heap, request->stream, &lane);
    if (status == MT_OK)
        status = find(policy, size, request->stream, lane, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    if (status == MT_OK)
        status = mt_heap_hand_out(heap, id, size, request->size_bytes, out);
    if (status == MT_OK) /* freed on this stream, wherever it came from */
        heap->store.blocks[id].reservation = lane;
    return status;
}

const struct mt_policy_ops mt_policy_rmm_pool = {
    .name = "rmm-pool",
    .summary = "RMM's pool_memory_resource: best fit a stream, doubles",
    .doubt = "what its own tests expect holds, but no run of RMM was compared; it visits other "
             "streams' lists in the order of event handles, here in the order of first use",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
