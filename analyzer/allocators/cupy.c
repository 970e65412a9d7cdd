/* The policy `cupy`: CuPy's MemoryPool. One arena per stream; requests are rounded up to 512 bytes;
 * best fit; the rest of a block is always split off; a miss requests exactly the rounded size from
 * the device. */
#include "heap.h"
#include "policy_options.h"
#include "util.h"

enum { ALIGNMENT = 512 };

struct mt_policy {
    struct mt_heap heap;  /* first: see heap.h */
    uint64_t limit_bytes; /* of the pool, 0 = none */
};

static const struct mt_policy_option options[] = {
    {"limit", MT_POLICY_BYTES, 0, 0, UINT64_MAX, NULL}};

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    (void)error;
    self->limit_bytes = values[0];
    mt_heap_limit(&self->heap, self->limit_bytes);
    return MT_OK;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
    uint32_t free_list;

    mt_heap_free_list(heap, request->stream, &free_list);
    share->size_bytes = size;
    share->block = mt_heap_take_first(heap, free_list, size);
    if (share->block != MT_NO_BLOCK)
        return MT_OK;
    if (policy->limit_bytes && size > policy->limit_bytes)
        return MT_ERR_DEVICE_OOM; /* refused before anything is released */
    return mt_heap_grow_or_flush(heap, size, request->stream, free_list, &share->block);
}

static const struct mt_heap_rules rules = {
    MT_HEAP_RULES(options, init, find),
};

const struct mt_policy_ops mt_policy_cupy = {
    .name = "cupy",
    .summary = "CuPy's MemoryPool: best fit, grows by what is missing",
    .doubt = "among equal free chunks, CuPy takes the one whose Python object has the lowest host "
             "address; the simulation takes the lowest device address",
    .heap = &rules,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};
