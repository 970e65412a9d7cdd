/* The BFC arena of TensorFlow and XLA, and the allocators that consist of one: `bfc`, and `ort` of
 * ONNX Runtime.
 *
 * The best-fit arena of TensorFlow, which XLA, JAX and ONNX Runtime inherited: 256-byte steps, best
 * fit by (size, address), regions that double. The bins of the original only accelerate the
 * search. */
#include "check.h"
#include "heap.h"
#include "policy_options.h"
#include "util.h"

enum { MT_BFC_ALIGNMENT = 256 };

struct bfc_arena {
    struct mt_heap heap;         /* first: see heap.h */
    uint64_t limit_bytes;        /* of the arena, 0 = none */
    uint64_t region_bytes;       /* minimum size of the next region */
    uint64_t doubling_cap_bytes; /* limit of doubling; 0 = none */
    uint64_t waste_bytes;        /* a chunk with at least this much excess is split */
    bool same_as_requested;      /* regions as long as the request */
    bool collects_garbage;       /* releases idle regions before it fails */
};

/* Owner of chunks that belong to no stream. */
#define BFC_NOBODY 0

/* Below this a refused region is not retried with a smaller size; at 2.5 KiB rounding would undo
 * the reduction by a tenth. */
static const uint64_t MIN_TRY = 8 * MT_KIB;

static uint64_t available(const struct bfc_arena *arena)
{
    uint64_t reserved = arena->heap.counters.reserved.now;

    if (!arena->limit_bytes)
        return MT_HEAP_MAX_SEGMENT;
    return mt_round_down(arena->limit_bytes - mt_min_u64(reserved, arena->limit_bytes),
                         MT_BFC_ALIGNMENT);
}

static void double_region(struct bfc_arena *arena)
{
    uint64_t cap = arena->doubling_cap_bytes ? arena->doubling_cap_bytes : MT_HEAP_MAX_SEGMENT;

    arena->region_bytes = mt_min_u64(2 * arena->region_bytes, cap);
}

/* Size of the region to request; the next one will be larger. */
static uint64_t next_region(struct bfc_arena *arena, uint64_t size_bytes, uint64_t most)
{
    bool increased = false;

    if (arena->same_as_requested)
        return size_bytes;
    while (size_bytes > arena->region_bytes) {
        arena->region_bytes *= 2;
        increased = true;
    }
    uint64_t bytes = mt_min_u64(arena->region_bytes, most);
    if (!increased)
        double_region(arena);
    return bytes;
}

/* Adds a region, reduced by tenths while the device refuses. */
static enum mt_status extend(struct bfc_arena *arena, uint64_t size_bytes, uint32_t stream,
                             uint32_t free_list, uint32_t *block)
{
    uint64_t most = available(arena);

    if (size_bytes > most) {
        arena->heap.device->refusals++;
        return MT_ERR_DEVICE_OOM;
    }
    uint64_t bytes = next_region(arena, size_bytes, most);
    MT_ASSERT(bytes >= size_bytes && bytes <= most);
    enum mt_status status = mt_heap_grow(&arena->heap, bytes, stream, free_list, block);
    while (status == MT_ERR_DEVICE_OOM) {
        bytes = mt_round_up((uint64_t)((float)bytes * 0.9f), MT_BFC_ALIGNMENT);
        if (bytes < size_bytes || bytes < MIN_TRY)
            break;
        status = mt_heap_grow(&arena->heap, bytes, stream, free_list, block);
    }
    return status;
}

static uint64_t idle_bytes(const struct mt_heap *heap)
{
    uint64_t bytes = 0;

    for (uint32_t id = 0; id < heap->store.count; id++) {
        const struct mt_block *block = &heap->store.blocks[id];
        if (block->state == MT_BLOCK_FREE && !mt_block_is_split(block))
            bytes += block->size_bytes;
    }
    return bytes;
}

/* Releases idle regions only if that makes the request possible. */
static enum mt_status collect_and_extend(struct bfc_arena *arena, uint64_t size_bytes,
                                         uint32_t stream, uint32_t free_list, uint32_t *block)
{
    uint64_t idle = idle_bytes(&arena->heap);

    if (!arena->collects_garbage || !idle || size_bytes > available(arena) + idle)
        return MT_ERR_DEVICE_OOM;
    arena->heap.counters.retries++;
    mt_heap_drop_idle(&arena->heap);
    return extend(arena, size_bytes, stream, free_list, block);
}

/* Removes and returns the better fit of two free lists. */
static uint32_t take_best(struct mt_heap *heap, uint32_t own, uint32_t nobody, uint64_t size_bytes)
{
    struct mt_free_cursor mine = mt_free_set_find(&heap->free_lists[own].free, size_bytes, 0);

    MT_ASSERT(own < heap->free_list_count && nobody < heap->free_list_count);
    if (own == nobody)
        return mt_heap_take_first(heap, own, size_bytes);
    struct mt_free_cursor other = mt_free_set_find(&heap->free_lists[nobody].free, size_bytes, 0);
    if (!mine.entry || !other.entry)
        return mt_heap_take_first(heap, mine.entry ? own : nobody, size_bytes);
    if (mine.entry->size_bytes != other.entry->size_bytes)
        return mt_heap_take_first(
            heap, mine.entry->size_bytes < other.entry->size_bytes ? own : nobody, size_bytes);
    heap->device->address_ties++;
    return mt_heap_take_first(heap, mine.entry->addr < other.entry->addr ? own : nobody,
                              size_bytes);
}

/* Finds a chunk, in no set, from the arena or from the device. */
static enum mt_status find(struct bfc_arena *arena, uint64_t size_bytes, uint32_t stream,
                           uint32_t own, uint32_t *block)
{
    struct mt_heap *heap = &arena->heap;
    uint32_t nobody;
    enum mt_status status = MT_OK;

    mt_heap_free_list(heap, BFC_NOBODY, &nobody);
    *block = take_best(heap, own, nobody, size_bytes);
    if (*block == MT_NO_BLOCK)
        status = extend(arena, size_bytes, stream, nobody, block);
    if (status == MT_ERR_DEVICE_OOM)
        status = collect_and_extend(arena, size_bytes, stream, nobody, block);
    return status;
}

/* For mt_heap_rules.find: finds a chunk that belongs to `owner` or to no stream; `owner` then owns
 * it. A remainder that is split off keeps its owner; a new region has no owner. */
static enum mt_status bfc_arena_find(struct bfc_arena *arena,
                                     const struct mt_policy_request *request, uint64_t owner,
                                     struct mt_heap_share *share)
{
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1), MT_BFC_ALIGNMENT);
    enum mt_status status = MT_OK;

    mt_heap_free_list(&arena->heap, owner, &share->free_list);
    status = find(arena, size, request->stream, share->free_list, &share->block);
    if (status != MT_OK)
        return status;
    uint64_t chunk = arena->heap.store.blocks[share->block].size_bytes;
    MT_ASSERT(chunk >= size && size % MT_BFC_ALIGNMENT == 0);
    share->size_bytes = chunk < 2 * size && chunk - size < arena->waste_bytes ? chunk : size;
    return MT_OK;
}

/* The policy `bfc`: the arena of TensorFlow, XLA and JAX. One pool for all streams.
 * `memory_fraction` of the device is its limit, and all of that is taken at the first request if it
 * preallocates. Regions are mapped at ascending addresses. */

struct mt_policy {
    struct bfc_arena arena; /* first: see heap.h */
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
    struct bfc_arena *arena = &self->arena;
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

static enum mt_status find_bfc(struct mt_policy *policy, const struct mt_policy_request *request,
                               struct mt_heap_share *share)
{
    return bfc_arena_find(&policy->arena, request, BFC_NOBODY, share);
}

static const struct mt_heap_rules rules = {
    MT_HEAP_RULES(options, init, find_bfc),
    .own_addresses = true,
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

/* The policy `ort`: ONNX Runtime's arena. Like bfc, but it starts at 1 MiB, extends by either of
 * two strategies, and keeps chunks for the stream that used them. */

enum { LIMIT, STRATEGY, INITIAL, DEAD, CAP };

static const char *const strategies[] = {"kNextPowerOfTwo", "kSameAsRequested", NULL};

static const struct mt_policy_option options_ort[] = {
    {"gpu_mem_limit", MT_POLICY_BYTES, 0, 0, MT_HEAP_MAX_SEGMENT, NULL},
    {"arena_extend_strategy", MT_POLICY_CHOICE, 0, 0, 1, strategies},
    {"initial_chunk_size_bytes", MT_POLICY_BYTES, MT_MIB, 1, MT_HEAP_MAX_SEGMENT, NULL},
    {"max_dead_bytes_per_chunk", MT_POLICY_BYTES, 128 * MT_MIB, 1, MT_HEAP_MAX_SEGMENT, NULL},
    {"max_power_of_two_extend_bytes", MT_POLICY_BYTES, MT_GIB, MT_MIB, MT_HEAP_MAX_SEGMENT, NULL}};

static enum mt_status init_ort(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    struct bfc_arena *arena = &self->arena;
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

static enum mt_status find_ort(struct mt_policy *policy, const struct mt_policy_request *request,
                               struct mt_heap_share *share)
{
    /* the default stream is no owner, as in ORT's Alloc() */
    return bfc_arena_find(&policy->arena, request, request->stream, share);
}

static const struct mt_heap_rules rules_ort = {
    MT_HEAP_RULES(options_ort, init_ort, find_ort),
};

const struct mt_policy_ops mt_policy_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's arena, both extend strategies",
    .doubt = "it behaves as the tests of ONNX Runtime expect, but no run was compared; ONNX "
             "Runtime may reuse a chunk of a stream that it waited for, and at the end of each run "
             "it forgets which stream used which chunk: a trace shows neither",
    .heap = &rules_ort,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    MT_HEAP_OPS,
};
