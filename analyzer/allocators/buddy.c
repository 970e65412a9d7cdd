/* The policy `buddy`: binary buddies. Blocks are powers of two of at least 512 bytes. Halves are
 * split off as needed, the lower one is allocated, and free halves merge again up to the segment (a
 * power of two, at least 2 MiB). */
#include "heap.h"
#include "check.h"
#include "util.h"

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
};

static const uint64_t MIN_BLOCK = 512;
static const uint64_t MIN_SEGMENT = 2 * MT_MIB;

static uint64_t power_of_two(uint64_t size_bytes)
{
    return (uint64_t)1 << (mt_log2_floor(mt_max_u64(size_bytes, 2) - 1) + 1);
}

/* Halves a block down to the requested length; keeps the low end. */
static void halve(struct mt_heap *heap, uint32_t id, uint64_t size_bytes)
{
    uint32_t rest;

    MT_ASSERT((size_bytes & (size_bytes - 1)) == 0);
    while (heap->store.blocks[id].size_bytes > size_bytes) {
        mt_block_split(&heap->store, id, heap->store.blocks[id].size_bytes / 2, &rest);
        mt_heap_put(heap, rest);
    }
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size = mt_max_u64(power_of_two(request->size_bytes), MIN_BLOCK);
    enum mt_status status = MT_OK;

    share->size_bytes = size;
    share->block = mt_heap_take_first(heap, 0, size);
    if (share->block == MT_NO_BLOCK)
        status = mt_heap_grow_or_flush(heap, mt_max_u64(size, MIN_SEGMENT), request->stream, 0,
                                       &share->block);
    if (status == MT_OK) {
        halve(heap, share->block, size);
        return MT_OK;
    } else
        return status;
}

/* Returns the other half if it is free and whole. Segments are aligned to their size, so one bit of
 * the address tells the halves apart. */
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
    mt_heap_put(heap, handle);
    return MT_OK;
}

static const struct mt_heap_rules rules = {
    .size_bytes = sizeof(struct mt_policy),
    .has_one_free_list = true,
    .may_touch = true,
    .own_addresses = true, /* aligned to their size: see buddy_of */
    .find = find,
};

const struct mt_policy_ops mt_policy_buddy = {
    .name = "buddy",
    .summary = "binary buddies: powers of two",
    .heap = &rules,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};
