/* The policy `cub`: cub::CachingDeviceAllocator. Requests are rounded up to the next power of
 * `bin_growth`. A cached block of that bin and stream is reused as a whole; blocks are never split.
 * Requests larger than the largest bin are not cached, and a free block is released if the cache
 * would exceed `max_cached_bytes`. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 256, BINS = 64 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t bin_growth, min_bin, max_bin, max_cached_bytes;
};

enum { GROWTH, MIN, MAX, CACHED };

static const struct mt_policy_option options[] = {
    {"bin_growth", MT_POLICY_COUNT, 8, 2, 1024, NULL},
    {"min_bin", MT_POLICY_COUNT, 3, 0, 40, NULL},
    {"max_bin", MT_POLICY_COUNT, 7, 0, 40, NULL},
    {"max_cached_bytes", MT_POLICY_BYTES, 3 * ((uint64_t)1 << 21) - 1, 0, UINT64_MAX, NULL}};

/* Powers that a bin may have: the largest is 2^40. */
static const uint64_t MAX_BIN = (uint64_t)1 << 40;

static struct mt_heap_key oldest_first(const struct mt_block *block)
{
    struct mt_heap_key key = {0, block->gc_base};

    return key;
}

/* base^exponent, at most MAX_BIN + 1. */
static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t value = 1;

    for (; exponent > 0 && value <= MAX_BIN; exponent--)
        value *= base;
    return mt_min_u64(value, MAX_BIN + 1);
}

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    self->bin_growth = values[GROWTH];
    self->min_bin = values[MIN];
    self->max_bin = values[MAX];
    self->max_cached_bytes = values[CACHED];
    if (values[MIN] <= values[MAX] && power(values[GROWTH], values[MAX]) <= MAX_BIN)
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "these bins are empty or too large");
}

/* The bin of a request, max_bin + 1 if it is not cached. */
static uint64_t bin_of(const struct mt_policy *self, uint64_t size_bytes)
{
    uint64_t bin = self->min_bin;

    while (bin <= self->max_bin && power(self->bin_growth, bin) < size_bytes)
        bin++;
    return bin;
}

static enum mt_status find_in_bin(struct mt_heap *heap, uint64_t bin, uint64_t size,
                                  uint32_t stream, uint32_t *block)
{
    uint32_t free_list;

    mt_heap_free_list(heap, (uint64_t)stream * BINS + bin, &free_list);
    *block = mt_heap_take_first(heap, free_list, 0);
    MT_ASSERT(*block == MT_NO_BLOCK || heap->store.blocks[*block].size_bytes == size);
    return *block == MT_NO_BLOCK ? mt_heap_grow_or_flush(heap, size, stream, free_list, block)
                                 : MT_OK;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t bin = bin_of(policy, request->size_bytes);

    if (bin > policy->max_bin) {
        share->size_bytes = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
        return mt_heap_grow_or_flush(heap, share->size_bytes, request->stream, MT_NO_BLOCK,
                                     &share->block);
    }
    share->size_bytes = mt_round_up(power(policy->bin_growth, bin), ALIGNMENT);
    return find_in_bin(heap, bin, share->size_bytes, request->stream, &share->block);
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = &policy->heap;

    mt_heap_complete(heap, handle);
    uint64_t cached = heap->counters.reserved.now - heap->counters.active.now;
    if (heap->store.blocks[handle].reservation == MT_NO_BLOCK ||
        cached > policy->max_cached_bytes) {
        mt_heap_drop(heap, handle);
        return MT_OK;
    }
    mt_heap_put(heap, handle);
    return MT_OK;
}

static const struct mt_heap_rules rules = {
    MT_HEAP_RULES(options, init, find),
    .key = oldest_first,
    .own_addresses = true,
};

const struct mt_policy_ops mt_policy_cub = {
    .name = "cub",
    .summary = "cub::CachingDeviceAllocator: bins of powers of eight",
    .doubt = "it may reuse a block of another stream whose work is done, which a trace does not "
             "show; no run was compared",
    .heap = &rules,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};
