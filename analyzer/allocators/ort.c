/* The policy `ort`: ONNX Runtime's arena. Like bfc, but it starts at 1 MiB,
 * extends by either of two strategies, and what a stream has used is for that stream. */
#include "bfc_arena.h"
#include "policy_options.h"
#include "util.h"

#include <stdlib.h>

struct mt_policy {
    struct mt_bfc_arena arena; /* first: see heap.h */
};

enum { LIMIT, STRATEGY, INITIAL, DEAD, CAP, OPTIONS };

static void set_rules(struct mt_bfc_arena *arena, struct mt_device_model *device,
                      const uint64_t values[OPTIONS])
{
    uint64_t first = values[INITIAL];

    mt_bfc_arena_init(arena, device, values[LIMIT]);
    if (values[LIMIT])
        first = mt_min_u64(first, values[LIMIT]);
    arena->region_bytes = mt_round_up(first, MT_BFC_ALIGNMENT);
    arena->doubling_cap_bytes = values[CAP];
    arena->waste_bytes = values[DEAD];
    arena->same_as_requested = values[STRATEGY];
}

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    static const char *const strategies[] = {"kNextPowerOfTwo", "kSameAsRequested", NULL};
    static const uint64_t defaults[OPTIONS] = {0, 0, (uint64_t)1 << 20, (uint64_t)1 << 27,
                                               (uint64_t)1 << 30};
    uint64_t values[OPTIONS] = {defaults[LIMIT], defaults[STRATEGY], defaults[INITIAL],
                                defaults[DEAD], defaults[CAP]};
    const struct mt_policy_option options[OPTIONS] = {
        {"gpu_mem_limit", MT_POLICY_BYTES, &values[LIMIT], 0, MT_HEAP_MAX_SEGMENT, NULL},
        {"arena_extend_strategy", MT_POLICY_CHOICE, &values[STRATEGY], 0, 1, strategies},
        {"initial_chunk_size_bytes", MT_POLICY_BYTES, &values[INITIAL], 1, MT_HEAP_MAX_SEGMENT,
         NULL},
        {"max_dead_bytes_per_chunk", MT_POLICY_BYTES, &values[DEAD], 1, MT_HEAP_MAX_SEGMENT, NULL},
        {"max_power_of_two_extend_bytes", MT_POLICY_BYTES, &values[CAP], MT_MIB,
         MT_HEAP_MAX_SEGMENT, NULL}};
    enum mt_status status = mt_policy_options_parse(text, options, OPTIONS, error);

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    mt_policy_options_spell("ort", options, defaults, OPTIONS, spelling, spelling_size);
    *policy = calloc(1, sizeof **policy);
    if (!*policy)
        return MT_ERR_MEMORY;
    set_rules(&(*policy)->arena, device, values);
    return MT_OK;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    /* the default stream is none, as in ORT's Alloc() */
    return mt_bfc_arena_alloc(&policy->arena, request, request->stream, out);
}

const struct mt_policy_ops mt_policy_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's arena, both extend strategies",
    .doubt = "what its own tests expect holds, but no run of ONNX Runtime was compared; it may "
             "reuse the chunk of another stream that it waited for, and forgets at the end of each "
             "run which stream used what: a trace does not show either",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
