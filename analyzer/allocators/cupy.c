/* The policy `cupy`: CuPy's MemoryPool. One arena a stream; requests rounded up
 * to 512 bytes; best fit; the rest of a block is always split off; a miss asks
 * the device for exactly the rounded size. */
#include "heap.h"
#include "policy_options.h"
#include "util.h"

#include <stdlib.h>

enum { ALIGNMENT = 512 };

struct mt_policy {
    struct mt_heap heap;  /* first: see heap.h */
    uint64_t limit_bytes; /* of the pool, 0 = none */
};

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    static const uint64_t defaults[] = {0};
    uint64_t limit_bytes = defaults[0];
    const struct mt_policy_option options[] = {
        {"limit", MT_POLICY_BYTES, &limit_bytes, 0, UINT64_MAX, NULL}};
    enum mt_status status = mt_policy_options_parse(text, options, MT_ARRAY_LEN(options), error);

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    mt_policy_options_spell("cupy", options, defaults, MT_ARRAY_LEN(options), spelling,
                            spelling_size);
    *policy = calloc(1, sizeof **policy);
    if (!*policy)
        return MT_ERR_MEMORY;
    mt_heap_init(&(*policy)->heap, device, limit_bytes);
    (*policy)->limit_bytes = limit_bytes;
    return MT_OK;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size;
    uint32_t lane, id;
    enum mt_status status;

    if (request->size_bytes > MT_HEAP_MAX_REQUEST)
        return mt_heap_oom(heap);
    size = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
    status = mt_heap_lane(heap, request->stream, &lane);
    if (status != MT_OK)
        return status;
    id = mt_heap_take_first(heap, lane, size);
    if (id == MT_NO_BLOCK && policy->limit_bytes && size > policy->limit_bytes)
        return mt_heap_oom(heap); /* refused before anything is given back */
    if (id == MT_NO_BLOCK)
        status = mt_heap_grow_or_flush(heap, size, request->stream, lane, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    return status == MT_OK ? mt_heap_hand_out(heap, id, size, request->size_bytes, out) : status;
}

const struct mt_policy_ops mt_policy_cupy = {
    .name = "cupy",
    .summary = "CuPy's MemoryPool: best fit, grows by what is missing",
    .doubt = "of equal free chunks CuPy takes the one whose Python object lies lowest in host "
             "memory; here the lowest device address",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
