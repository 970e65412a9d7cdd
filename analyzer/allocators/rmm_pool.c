/* The policy `rmm-pool`: RMM's pool_memory_resource. One free list per stream, best fit, ties go to
 * the lowest address, the rest is always split off. A miss searches the lists of other streams,
 * then merges them into its own, then doubles the pool. Segments are released only to stay below a
 * maximum. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 256 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t initial_bytes, maximum_bytes;
    bool started;
};

enum { INITIAL, MAXIMUM };

#define NOTHING_SAID UINT64_MAX

static const struct mt_policy_option options[] = {
    {"initial_pool_size", MT_POLICY_BYTES, NOTHING_SAID, 0, MT_HEAP_MAX_SEGMENT, NULL},
    {"maximum_pool_size", MT_POLICY_BYTES, 0, 0, MT_HEAP_MAX_SEGMENT, NULL}};

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    if (values[INITIAL] == NOTHING_SAID) /* like RMM for Python: half of the device */
        values[INITIAL] = mt_min_u64(mt_device_memory(self->heap.device) / 2, MT_HEAP_MAX_SEGMENT);
    self->initial_bytes = values[INITIAL] = mt_round_down(values[INITIAL], ALIGNMENT);
    self->maximum_bytes = values[MAXIMUM] = mt_round_down(values[MAXIMUM], ALIGNMENT);
    if (!values[MAXIMUM] || values[INITIAL] <= values[MAXIMUM])
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "initial_pool_size is more than maximum_pool_size");
}

/* The constructor's block is in the list of the default stream. */
static enum mt_status start(struct mt_policy *self)
{
    uint32_t free_list, id;

    if (self->started || !self->initial_bytes)
        return MT_OK;
    mt_heap_free_list(&self->heap, 0, &free_list);
    enum mt_status status = mt_heap_grow(&self->heap, self->initial_bytes, 0, free_list, &id);
    if (status != MT_OK)
        return status;
    self->started = true;
    mt_heap_put(&self->heap, id);
    return MT_OK;
}

static uint32_t take_from_others(struct mt_heap *heap, uint32_t own, uint64_t size_bytes)
{
    uint32_t id = MT_NO_BLOCK;

    for (uint32_t free_list = 0; id == MT_NO_BLOCK && free_list < heap->free_list_count;
         free_list++)
        if (free_list != own)
            id = mt_heap_take_first(heap, free_list, size_bytes);
    return id;
}

static void move_free_list(struct mt_heap *heap, uint32_t from, uint32_t to)
{
    uint32_t id;

    while ((id = mt_heap_take_first(heap, from, 0)) != MT_NO_BLOCK) {
        MT_ASSERT(from != to && heap->store.blocks[id].reservation == from);
        heap->store.blocks[id].reservation = to;
        mt_heap_merge(heap, id);
        mt_heap_put(heap, id);
    }
}

static void merge_others(struct mt_heap *heap, uint32_t own, uint64_t size_bytes, uint32_t *block)
{
    for (uint32_t free_list = 0; *block == MT_NO_BLOCK && free_list < heap->free_list_count;
         free_list++) {
        if (free_list == own || !heap->free_lists[free_list].free.count)
            continue;
        move_free_list(heap, free_list, own);
        *block = mt_heap_take_first(heap, own, size_bytes);
    }
}

/* Free segment with the lowest address, or MT_NO_BLOCK. */
static uint32_t lowest_whole(const struct mt_heap *heap)
{
    uint32_t lowest = MT_NO_BLOCK;

    for (uint32_t id = 0; id < heap->store.count; id++) {
        const struct mt_block *block = &heap->store.blocks[id];
        if (block->state == MT_BLOCK_FREE && !mt_block_is_split(block) &&
            (lowest == MT_NO_BLOCK || block->addr < heap->store.blocks[lowest].addr))
            lowest = id;
    }
    return lowest;
}

/* Releases whole segments until a request fits below the maximum. */
static void reclaim(struct mt_policy *self, uint64_t size)
{
    struct mt_heap *heap = &self->heap;
    uint32_t id;

    if (!self->maximum_bytes || size > self->maximum_bytes)
        return;
    while (self->maximum_bytes - heap->counters.reserved.now < size &&
           (id = lowest_whole(heap)) != MT_NO_BLOCK) {
        mt_heap_take(heap, id);
        mt_heap_drop(heap, id);
    }
}

/* With a maximum: half of what remains, or the request. Without: doubles the pool, and halves the
 * growth while the device refuses. */
static enum mt_status expand(struct mt_policy *self, uint64_t size, uint32_t stream,
                             uint32_t free_list, uint32_t *block)
{
    uint64_t pool = self->heap.counters.reserved.now, try_bytes;

    if (self->maximum_bytes) {
        uint64_t remaining =
            mt_round_up(self->maximum_bytes - mt_min_u64(pool, self->maximum_bytes), ALIGNMENT);
        if (size > remaining) {
            self->heap.device->refusals++;
            return MT_ERR_DEVICE_OOM;
        }
        try_bytes = mt_max_u64(size, remaining / 2);
    } else {
        try_bytes = mt_max_u64(size, pool);
    }
    enum mt_status status =
        mt_heap_grow(&self->heap, mt_round_up(try_bytes, ALIGNMENT), stream, free_list, block);
    while (status == MT_ERR_DEVICE_OOM && try_bytes > size) {
        try_bytes = mt_max_u64(size, try_bytes / 2);
        status =
            mt_heap_grow(&self->heap, mt_round_up(try_bytes, ALIGNMENT), stream, free_list, block);
    }
    return status;
}

static enum mt_status find_for(struct mt_policy *self, uint64_t size, uint32_t stream,
                               uint32_t free_list, uint32_t *block)
{
    enum mt_status status = MT_OK;

    *block = mt_heap_take_first(&self->heap, free_list, size);
    if (*block == MT_NO_BLOCK)
        *block = take_from_others(&self->heap, free_list, size);
    if (*block == MT_NO_BLOCK)
        merge_others(&self->heap, free_list, size, block);
    if (*block != MT_NO_BLOCK)
        return MT_OK;
    MT_ASSERT(size % ALIGNMENT == 0 && free_list < self->heap.free_list_count);
    reclaim(self, size);
    status = expand(self, size, stream, free_list, block);
    return status;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    enum mt_status status = start(policy);

    share->size_bytes = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
    if (status == MT_OK)
        mt_heap_free_list(&policy->heap, request->stream, &share->free_list);
    if (status == MT_OK)
        status =
            find_for(policy, share->size_bytes, request->stream, share->free_list, &share->block);
    return status;
}

static const struct mt_heap_rules rules = {
    MT_HEAP_RULES(options, init, find),
};

const struct mt_policy_ops mt_policy_rmm_pool = {
    .name = "rmm-pool",
    .summary = "RMM's pool_memory_resource: best fit per stream, doubles when it grows",
    .doubt = "it behaves as the tests of RMM expect, but no run was compared; it visits other "
             "streams' lists in the order of event handles, here in the order of first use",
    .heap = &rules,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    MT_HEAP_OPS,
};
