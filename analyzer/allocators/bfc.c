/* The policy `bfc`: the arena of TensorFlow, XLA and JAX. One pool for all
 * streams. `memory_fraction` of the device is its limit, and all of that is
 * taken at the first request if it preallocates. Regions are mapped one above
 * the other. */
#include "bfc_arena.h"
#include "policy_options.h"
#include "util.h"

#include <stdlib.h>

struct mt_policy {
    struct mt_bfc_arena arena; /* first: see heap.h */
};

/* Of what XLA maps; the first region of an arena that grows. */
static const uint64_t GRANULARITY = 2 * MT_MIB;

enum { FRACTION, PREALLOCATE, GARBAGE, FRAGMENTATION, OPTIONS };

static uint64_t share_of(uint64_t bytes, uint64_t share)
{
    return (uint64_t)((double)bytes * (double)share / MT_POLICY_WHOLE);
}

static void set_rules(struct mt_bfc_arena *arena, struct mt_device_model *device,
                      const uint64_t values[OPTIONS], uint64_t memory_bytes)
{
    uint64_t share = mt_max_u64(share_of(memory_bytes, values[FRACTION]), 1);
    uint64_t limit = mt_min_u64(mt_round_up(share, GRANULARITY), memory_bytes);
    uint64_t first = limit ? mt_min_u64(limit, GRANULARITY) : GRANULARITY;

    mt_bfc_arena_init(arena, device, limit);
    arena->heap.own_addresses = true;
    arena->region_bytes = mt_round_up(values[PREALLOCATE] ? limit : first, MT_BFC_ALIGNMENT);
    arena->waste_bytes = 128 * MT_MIB;
    if (values[FRAGMENTATION] && limit)
        arena->waste_bytes = share_of(limit, values[FRAGMENTATION]);
    arena->collects_garbage = values[GARBAGE];
}

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    static const uint64_t defaults[OPTIONS] = {750000, 1, 0, 0};
    uint64_t values[OPTIONS] = {750000, 1, 0, 0};
    uint64_t memory = device->limit_bytes ? device->limit_bytes : device->total_memory_bytes;
    const struct mt_policy_option options[OPTIONS] = {
        {"memory_fraction", MT_POLICY_SHARE, &values[FRACTION], 1, MT_POLICY_WHOLE, NULL},
        {"preallocate", MT_POLICY_BOOL, &values[PREALLOCATE], 0, 1, NULL},
        {"garbage_collection", MT_POLICY_BOOL, &values[GARBAGE], 0, 1, NULL},
        {"fragmentation_fraction", MT_POLICY_SHARE, &values[FRAGMENTATION], 0, MT_POLICY_WHOLE,
         NULL}};
    enum mt_status status = mt_policy_options_parse(text, options, OPTIONS, error);

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    if (!memory)
        values[PREALLOCATE] = 0; /* of what size? */
    mt_policy_options_spell("bfc", options, defaults, OPTIONS, spelling, spelling_size);
    *policy = calloc(1, sizeof **policy);
    if (!*policy)
        return MT_ERR_MEMORY;
    set_rules(&(*policy)->arena, device, values, mt_min_u64(memory, MT_HEAP_MAX_SEGMENT));
    return MT_OK;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    return mt_bfc_arena_alloc(&policy->arena, request, MT_BFC_NOBODY, out);
}

const struct mt_policy_ops mt_policy_bfc = {
    .name = "bfc",
    .summary = "TensorFlow's and JAX's arena, preallocated or growing",
    .doubt = "every number of JAX's arena was equal, but TensorFlow's was not compared, and where "
             "the driver maps regions decides between equal chunks",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
