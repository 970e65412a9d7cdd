/* The policy `ort`: ONNX Runtime's arena. Like bfc, but it starts at 1 MiB, extends by either of
 * two strategies, and keeps chunks for the stream that used them. */
#include "bfc_arena.h"
#include "policy_options.h"
#include "util.h"

struct mt_policy {
    struct mt_bfc_arena arena; /* first: see heap.h */
};

enum { LIMIT, STRATEGY, INITIAL, DEAD, CAP };

static const char *const strategies[] = {"kNextPowerOfTwo", "kSameAsRequested", NULL};

static const struct mt_policy_option options[] = {
    {"gpu_mem_limit", MT_POLICY_BYTES, 0, 0, MT_HEAP_MAX_SEGMENT, NULL},
    {"arena_extend_strategy", MT_POLICY_CHOICE, 0, 0, 1, strategies},
    {"initial_chunk_size_bytes", MT_POLICY_BYTES, MT_MIB, 1, MT_HEAP_MAX_SEGMENT, NULL},
    {"max_dead_bytes_per_chunk", MT_POLICY_BYTES, 128 * MT_MIB, 1, MT_HEAP_MAX_SEGMENT, NULL},
    {"max_power_of_two_extend_bytes", MT_POLICY_BYTES, MT_GIB, MT_MIB, MT_HEAP_MAX_SEGMENT, NULL}};

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    struct mt_bfc_arena *arena = &self->arena;
    uint64_t first = values[INITIAL];

    (void)error;
    arena->limit_bytes = values[LIMIT];
    if (values[LIMIT])
        first = mt_min_u64(first, values[LIMIT]);
    arena->region_bytes = mt_round_up(first, MT_BFC_ALIGNMENT);
    arena->doubling_cap_bytes = values[CAP];
    arena->waste_bytes = values[DEAD];
    arena->same_as_requested = values[STRATEGY];
    return MT_OK;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    /* the default stream is no owner, as in ORT's Alloc() */
    return mt_bfc_arena_find(&policy->arena, request, request->stream, share);
}

static const struct mt_heap_rules rules = {
    .size_bytes = sizeof(struct mt_policy),
    .options = options,
    .option_count = MT_ARRAY_LEN(options),
    .init = init,
    .find = find,
};

const struct mt_policy_ops mt_policy_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's arena, both extend strategies",
    .doubt = "it behaves as the tests of ONNX Runtime expect, but no run was compared; ONNX "
             "Runtime may reuse a chunk of a stream that it waited for, and at the end of each run "
             "it forgets which stream used which chunk: a trace shows neither",
    .heap = &rules,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    MT_HEAP_OPS,
};
