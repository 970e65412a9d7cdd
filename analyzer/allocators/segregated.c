/* The policy `segregated`: size classes, four per doubling. Each class up to 1 MiB has slabs of 2
 * MiB, cut into objects, with one LIFO list. Larger requests are device allocations of their own,
 * in steps of 2 MiB. */
#include "heap.h"
#include "check.h"
#include "util.h"

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
};

enum { MIN_CLASS = 512, ALIGNMENT = 256, TAILS = 0 /* free list of the ends of slabs */ };

static const uint64_t MAX_CLASS = MT_MIB;
static const uint64_t SLAB = 2 * MT_MIB;

static struct mt_heap_key newest_first(const struct mt_block *block)
{
    struct mt_heap_key key = {0, UINT64_MAX - block->gc_base};

    return key;
}

/* (2^k, 2^(k+1)] in four steps, none shorter than the alignment. */
static uint64_t class_of(uint64_t size_bytes)
{
    if (size_bytes <= MIN_CLASS)
        return MIN_CLASS;
    return mt_round_up(size_bytes,
                       mt_max_u64(((uint64_t)1 << mt_log2_floor(size_bytes - 1)) / 4, ALIGNMENT));
}

/* Adds a slab cut into its objects, the lowest on top of the list. */
static enum mt_status add_slab(struct mt_heap *heap, uint64_t class_bytes, uint32_t stream,
                               uint32_t free_list)
{
    uint64_t objects = SLAB / class_bytes;
    enum mt_status status;
    uint32_t id, rest, tails;

    MT_ASSERT(objects > 0 && class_bytes % ALIGNMENT == 0);
    mt_heap_free_list(heap, TAILS, &tails);
    status = MT_OK;
    status = mt_heap_grow_or_flush(heap, SLAB, stream, free_list, &id);
    if (status == MT_OK && objects * class_bytes < SLAB) {
        mt_block_split(&heap->store, id, objects * class_bytes, &rest);
        heap->store.blocks[rest].reservation = tails;
        mt_heap_put(heap, rest);
    }
    while (status == MT_OK && --objects > 0) {
        mt_block_split(&heap->store, id, objects * class_bytes, &rest);
        mt_heap_put(heap, rest);
    }
    if (status == MT_OK) {
        mt_heap_put(heap, id);
        return MT_OK;
    } else
        return status;
}

static enum mt_status find_object(struct mt_heap *heap, uint64_t size, uint32_t stream,
                                  uint32_t *block)
{
    enum mt_status status;
    uint32_t free_list;

    if (size > MAX_CLASS)
        return mt_heap_grow_or_flush(heap, size, stream, MT_NO_BLOCK /* no free list */, block);
    mt_heap_free_list(heap, size, &free_list);
    status = MT_OK;
    *block = mt_heap_take_first(heap, free_list, 0);
    MT_ASSERT(*block == MT_NO_BLOCK || heap->store.blocks[*block].size_bytes == size);
    if (*block != MT_NO_BLOCK)
        return MT_OK;
    status = add_slab(heap, size, stream, free_list);
    if (status == MT_OK)
        *block = mt_heap_take_first(heap, free_list, 0);
    MT_ASSERT(status != MT_OK || heap->store.blocks[*block].size_bytes == size);
    return status;
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    share->size_bytes = request->size_bytes > MAX_CLASS ? mt_round_up(request->size_bytes, SLAB)
                                                        : class_of(request->size_bytes);
    return find_object(&policy->heap, share->size_bytes, request->stream, &share->block);
}

static const struct mt_heap_rules rules = {
    .size_bytes = sizeof(struct mt_policy),
    .key = newest_first,
    .may_touch = true,
    .own_addresses = true,
    .find = find,
};

const struct mt_policy_ops mt_policy_segregated = {
    .name = "segregated",
    .summary = "slabs of size classes, four per power of two",
    .heap = &rules,
    .free_completed = mt_heap_op_free_whole,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};
