/* The policy `buddy`: binary buddies. Blocks are powers of two of 512 bytes and
 * more, halves are split off as needed, the lower one is handed out, and free
 * halves merge again up to the segment (a power of two, 2 MiB at least). */
#include "heap.h"
#include "check.h"
#include "util.h"

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
};

static const uint64_t MIN_BLOCK = 512;
static const uint64_t MIN_SEGMENT = 2 * MT_MIB;

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    enum mt_status status =
        mt_heap_create_plain("buddy", text, device, policy, spelling, spelling_size, error);
    uint32_t lane;

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    (*policy)->heap.may_touch = true;
    (*policy)->heap.own_addresses = true; /* aligned to their size: see buddy_of */
    status = mt_heap_lane(&(*policy)->heap, 0, &lane);
    if (status != MT_OK) {
        mt_heap_op_destroy(*policy);
        *policy = NULL;
    }
    return status;
}

static uint64_t power_of_two(uint64_t size_bytes)
{
    return (uint64_t)1 << (mt_log2_floor(mt_max_u64(size_bytes, 2) - 1) + 1);
}

/* Halves a block until it is as long as wanted; keeps the low end. */
static enum mt_status halve(struct mt_heap *heap, uint32_t id, uint64_t size_bytes)
{
    enum mt_status status = MT_OK;
    uint32_t rest;

    MT_ASSERT((size_bytes & (size_bytes - 1)) == 0);
    while (status == MT_OK && heap->store.blocks[id].size_bytes > size_bytes) {
        status = mt_block_split(&heap->store, id, heap->store.blocks[id].size_bytes / 2, &rest);
        if (status == MT_OK)
            status = mt_heap_put(heap, rest);
    }
    return status;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    struct mt_heap *heap = &policy->heap;
    enum mt_status status = MT_OK;
    uint64_t size;
    uint32_t id;

    if (request->size_bytes > MT_HEAP_MAX_REQUEST)
        return mt_heap_oom(heap);
    size = mt_max_u64(power_of_two(request->size_bytes), MIN_BLOCK);
    id = mt_heap_take_first(heap, 0, size);
    if (id == MT_NO_BLOCK)
        status =
            mt_heap_grow_or_flush(heap, mt_max_u64(size, MIN_SEGMENT), request->stream, 0, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    if (status == MT_OK)
        status = halve(heap, id, size);
    return status == MT_OK ? mt_heap_hand_out(heap, id, size, request->size_bytes, out) : status;
}

/* The other half, if it is free and whole. Segments are aligned to their size,
 * so one bit of the address says which half a block is. */
static uint32_t buddy_of(const struct mt_heap *heap, uint32_t id)
{
    const struct mt_block *block = &heap->store.blocks[id], *other;
    uint32_t buddy = block->addr & block->size_bytes ? block->previous : block->next;

    MT_ASSERT((block->size_bytes & (block->size_bytes - 1)) == 0);
    MT_ASSERT(block->addr % block->size_bytes == 0);
    if (buddy == MT_NO_BLOCK)
        return MT_NO_BLOCK;
    other = &heap->store.blocks[buddy];
    return other->state == MT_BLOCK_FREE && other->size_bytes == block->size_bytes ? buddy
                                                                                   : MT_NO_BLOCK;
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = &policy->heap;
    uint32_t buddy;

    mt_heap_complete(heap, handle);
    while ((buddy = buddy_of(heap, handle)) != MT_NO_BLOCK) {
        mt_heap_take(heap, buddy);
        mt_block_merge(&heap->store, handle, buddy);
    }
    return mt_heap_put(heap, handle);
}

const struct mt_policy_ops mt_policy_buddy = {
    .name = "buddy",
    .summary = "binary buddies: powers of two",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
