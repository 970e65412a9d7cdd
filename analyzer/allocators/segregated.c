/* The policy `segregated`: size classes, four a doubling. Up to 1 MiB a class
 * has slabs of 2 MiB, cut into objects, with one list: last freed, first used.
 * Longer requests are device allocations of their own, in steps of 2 MiB. */
#include "heap.h"
#include "check.h"
#include "util.h"

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
};

enum { MIN_CLASS = 512, ALIGNMENT = 256, TAILS = 0 /* lane of the ends of slabs */ };

static const uint64_t MAX_CLASS = MT_MIB;
static const uint64_t SLAB = 2 * MT_MIB;

static struct mt_heap_key newest_first(const struct mt_block *block)
{
    struct mt_heap_key key = {0, UINT64_MAX - block->gc_base};

    return key;
}

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    enum mt_status status =
        mt_heap_create_plain("segregated", text, device, policy, spelling, spelling_size, error);

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    (*policy)->heap.key = newest_first;
    (*policy)->heap.may_touch = true;
    (*policy)->heap.own_addresses = true;
    return MT_OK;
}

/* (2^k, 2^(k+1)] in four steps, none shorter than the alignment. */
static uint64_t class_of(uint64_t size_bytes)
{
    if (size_bytes <= MIN_CLASS)
        return MIN_CLASS;
    return mt_round_up(size_bytes,
                       mt_max_u64(((uint64_t)1 << mt_log2_floor(size_bytes - 1)) / 4, ALIGNMENT));
}

/* A slab cut into its objects, the lowest on top of the list. */
static enum mt_status add_slab(struct mt_heap *heap, uint64_t class_bytes, uint32_t stream,
                               uint32_t lane)
{
    uint64_t objects = SLAB / class_bytes;
    enum mt_status status;
    uint32_t id, rest, tails;

    MT_ASSERT(objects > 0 && class_bytes % ALIGNMENT == 0);
    status = mt_heap_lane(heap, TAILS, &tails);
    if (status == MT_OK)
        status = mt_heap_grow_or_flush(heap, SLAB, stream, lane, &id);
    if (status == MT_OK && objects * class_bytes < SLAB) {
        status = mt_block_split(&heap->store, id, objects * class_bytes, &rest);
        if (status != MT_OK)
            return status;
        heap->store.blocks[rest].reservation = tails;
        status = mt_heap_put(heap, rest);
    }
    while (status == MT_OK && --objects > 0) {
        status = mt_block_split(&heap->store, id, objects * class_bytes, &rest);
        if (status == MT_OK)
            status = mt_heap_put(heap, rest);
    }
    return status == MT_OK ? mt_heap_put(heap, id) : status;
}

static enum mt_status find(struct mt_heap *heap, uint64_t size, uint32_t stream, uint32_t *block)
{
    enum mt_status status;
    uint32_t lane;

    if (size > MAX_CLASS)
        return mt_heap_grow_or_flush(heap, size, stream, MT_NO_BLOCK /* no lane */, block);
    status = mt_heap_lane(heap, size, &lane);
    if (status != MT_OK)
        return status;
    *block = mt_heap_take_first(heap, lane, 0);
    if (*block != MT_NO_BLOCK)
        return MT_OK;
    status = add_slab(heap, size, stream, lane);
    if (status == MT_OK)
        *block = mt_heap_take_first(heap, lane, 0);
    return status;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    struct mt_heap *heap = &policy->heap;
    enum mt_status status;
    uint64_t size;
    uint32_t id;

    if (request->size_bytes > MT_HEAP_MAX_REQUEST)
        return mt_heap_oom(heap);
    size = request->size_bytes > MAX_CLASS ? mt_round_up(request->size_bytes, SLAB)
                                           : class_of(request->size_bytes);
    status = find(heap, size, request->stream, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    MT_ASSERT(status != MT_OK || heap->store.blocks[id].size_bytes == size);
    return status == MT_OK ? mt_heap_hand_out(heap, id, size, request->size_bytes, out) : status;
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = &policy->heap;

    mt_heap_complete(heap, handle);
    if (heap->store.blocks[handle].reservation == MT_NO_BLOCK)
        return mt_heap_drop(heap, handle);
    return mt_heap_put(heap, handle);
}

const struct mt_policy_ops mt_policy_segregated = {
    .name = "segregated",
    .summary = "slabs of size classes, four a doubling",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
