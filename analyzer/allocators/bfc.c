/* The policy `bfc`: the arena of TensorFlow, XLA and JAX. One pool for all streams.
 * `memory_fraction` of the device is its limit, and all of that is taken at the first request if it
 * preallocates. Regions are mapped at ascending addresses. */
#include "bfc_arena.h"
#include "policy_options.h"
#include "util.h"

struct mt_policy {
    struct mt_bfc_arena arena; /* first: see heap.h */
};

/* Granularity of XLA's mappings, and the first region of an arena that grows. */
static const uint64_t GRANULARITY = 2 * MT_MIB;

enum { FRACTION, PREALLOCATE, GARBAGE, FRAGMENTATION };

static const struct mt_policy_option options[] = {
    {"memory_fraction", MT_POLICY_SHARE, 750000, 1, MT_POLICY_WHOLE, NULL},
    {"preallocate", MT_POLICY_BOOL, 1, 0, 1, NULL},
    {"garbage_collection", MT_POLICY_BOOL, 0, 0, 1, NULL},
    {"fragmentation_fraction", MT_POLICY_SHARE, 0, 0, MT_POLICY_WHOLE, NULL}};

static uint64_t share_of(uint64_t bytes, uint64_t share)
{
    return (uint64_t)((double)bytes * (double)share / (double)MT_POLICY_WHOLE);
}

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    struct mt_bfc_arena *arena = &self->arena;
    uint64_t memory = mt_min_u64(mt_device_memory(arena->heap.device), MT_HEAP_MAX_SEGMENT);
    uint64_t share = mt_max_u64(share_of(memory, values[FRACTION]), 1);
    uint64_t limit = mt_min_u64(mt_round_up(share, GRANULARITY), memory);
    uint64_t first = limit ? mt_min_u64(limit, GRANULARITY) : GRANULARITY;

    (void)error;
    if (!memory)
        values[PREALLOCATE] = 0; /* the device's size is unknown */
    arena->limit_bytes = limit;
    arena->region_bytes = mt_round_up(values[PREALLOCATE] ? limit : first, MT_BFC_ALIGNMENT);
    arena->waste_bytes = 128 * MT_MIB;
    if (values[FRAGMENTATION] && limit)
        arena->waste_bytes = share_of(limit, values[FRAGMENTATION]);
    arena->collects_garbage = values[GARBAGE];
    return MT_OK;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    return mt_bfc_arena_find(&policy->arena, request, MT_BFC_NOBODY, share);
}

static const struct mt_heap_rules rules = {
    .size_bytes = sizeof(struct mt_policy),
    .options = options,
    .option_count = MT_ARRAY_LEN(options),
    .own_addresses = true,
    .init = init,
    .find = find,
};

const struct mt_policy_ops mt_policy_bfc = {
    .name = "bfc",
    .summary = "TensorFlow's and JAX's arena, preallocated or growing",
    .doubt =
        "for JAX the size of the pool was exact and the peak in use within 3.5%; TensorFlow was "
        "compared only in host memory; the driver's addresses decide between chunks of equal size",
    .heap = &rules,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    MT_HEAP_OPS,
};
