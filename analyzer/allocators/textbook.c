/* Allocators of textbooks, to compare with: paging, buddies, size classes. */
#include "check.h"
#include "heap.h"
#include "util.h"

/* The policy `paged`: the best case of virtual memory. Physical pages of 2 MiB, any of which can
 * back any request larger than 1 MiB; smaller ones share pages by best fit. A page is free when it
 * is empty. */

enum { PAGED_ALIGNMENT = 512 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h; loose_bytes: the free pages */
};

static const uint64_t PAGE = 2 * MT_MIB;
static const uint64_t MAX_SHARING = MT_MIB;

/* Takes a free block of whole pages: free pages first, then new ones. */
static enum mt_status map_pages(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                                uint32_t *block)
{
    uint64_t reused = mt_min_u64(heap->loose_bytes, size_bytes), fresh = size_bytes - reused;

    if (mt_heap_exceeds(heap, fresh)) {
        heap->device->refusals++;
        return MT_ERR_DEVICE_OOM;
    }
    mt_heap_place(heap, size_bytes, stream, 0, block);
    MT_ASSERT(fresh % PAGE == 0 && heap->loose_bytes >= reused);
    heap->loose_bytes -= reused;
    mt_level_add(&heap->counters.reserved, fresh);
    heap->counters.device_allocs += fresh / PAGE;
    return MT_OK;
}

static enum mt_status find_paged(struct mt_policy *policy, const struct mt_policy_request *request,
                                 struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1),
                                request->size_bytes > MAX_SHARING ? PAGE : PAGED_ALIGNMENT);

    share->size_bytes = size;
    if (size <= MAX_SHARING)
        share->block = mt_heap_take_first(heap, 0, size);
    if (share->block != MT_NO_BLOCK)
        return MT_OK;
    return map_pages(heap, mt_round_up(size, PAGE), request->stream, &share->block);
}

static enum mt_status paged_free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = &policy->heap;

    mt_heap_complete(heap, handle);
    mt_heap_merge(heap, handle);
    if (mt_block_is_split(&heap->store.blocks[handle])) {
        mt_heap_put(heap, handle);
        return MT_OK;
    }
    MT_ASSERT(heap->store.blocks[handle].size_bytes % PAGE == 0);
    heap->loose_bytes += heap->store.blocks[handle].size_bytes;
    mt_block_drop(&heap->store, handle);
    return MT_OK;
}

static enum mt_status empty_cache(struct mt_policy *policy)
{
    struct mt_heap *heap = &policy->heap;

    MT_ASSERT(heap->loose_bytes % PAGE == 0);
    mt_level_sub(&heap->counters.reserved, heap->loose_bytes);
    heap->counters.device_frees += heap->loose_bytes / PAGE;
    heap->loose_bytes = 0;
    return MT_OK;
}

static const struct mt_heap_rules rules_paged = {
    .size_bytes = sizeof(struct mt_policy),
    .has_one_free_list = true,
    .own_addresses = true,
    .find = find_paged,
};

const struct mt_policy_ops mt_policy_paged = {
    .name = "paged",
    .summary = "pages of 2 MiB mapped in any order: the best case of virtual memory",
    .heap = &rules_paged,
    .free_completed = paged_free_completed,
    .empty_cache = empty_cache,
    MT_HEAP_OPS,
};

/* The policy `buddy`: binary buddies. Blocks are powers of two of at least 512 bytes. Halves are
 * split off as needed, the lower one is allocated, and free halves merge again up to the segment (a
 * power of two, at least 2 MiB). */

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

static enum mt_status find_buddy(struct mt_policy *policy, const struct mt_policy_request *request,
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
    const struct mt_block *block = &heap->store.blocks[id];
    uint32_t buddy = block->addr & block->size_bytes ? block->previous : block->next;

    MT_ASSERT((block->size_bytes & (block->size_bytes - 1)) == 0);
    MT_ASSERT(block->addr % block->size_bytes == 0);
    if (buddy == MT_NO_BLOCK)
        return MT_NO_BLOCK;
    const struct mt_block *other = &heap->store.blocks[buddy];
    return other->state == MT_BLOCK_FREE && other->size_bytes == block->size_bytes ? buddy
                                                                                   : MT_NO_BLOCK;
}

static enum mt_status buddy_free_completed(struct mt_policy *policy, uint32_t handle)
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

static const struct mt_heap_rules rules_buddy = {
    .size_bytes = sizeof(struct mt_policy),
    .has_one_free_list = true,
    .may_touch = true,
    .own_addresses = true, /* aligned to their size: see buddy_of */
    .find = find_buddy,
};

const struct mt_policy_ops mt_policy_buddy = {
    .name = "buddy",
    .summary = "binary buddies: powers of two",
    .heap = &rules_buddy,
    .free_completed = buddy_free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};

/* The policy `segregated`: size classes, four per doubling. Each class up to 1 MiB has slabs of 2
 * MiB, cut into objects, with one LIFO list. Larger requests are device allocations of their own,
 * in steps of 2 MiB. */

enum {
    MIN_CLASS = 512,
    SEGREGATED_ALIGNMENT = 256,
    TAILS = 0 /* free list of the ends of slabs */
};

static const uint64_t MAX_CLASS = MT_MIB;
static const uint64_t SLAB = 2 * MT_MIB;

static struct mt_heap_key newest_first(const struct mt_block *block)
{
    struct mt_heap_key key = {0, UINT64_MAX - block->gc_base};

    return key;
}

/* (2^k, 2^(k+1)] in four steps, none shorter than the alignment. */
static uint64_t segregated_class_of(uint64_t size_bytes)
{
    if (size_bytes <= MIN_CLASS)
        return MIN_CLASS;
    return mt_round_up(size_bytes, mt_max_u64(((uint64_t)1 << mt_log2_floor(size_bytes - 1)) / 4,
                                              SEGREGATED_ALIGNMENT));
}

/* Adds a slab cut into its objects, the lowest on top of the list. */
static enum mt_status add_slab(struct mt_heap *heap, uint64_t class_bytes, uint32_t stream,
                               uint32_t free_list)
{
    uint64_t objects = SLAB / class_bytes;
    uint32_t id, rest, tails;

    MT_ASSERT(objects > 0 && class_bytes % SEGREGATED_ALIGNMENT == 0);
    mt_heap_free_list(heap, TAILS, &tails);
    enum mt_status status = mt_heap_grow_or_flush(heap, SLAB, stream, free_list, &id);
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
    uint32_t free_list;

    if (size > MAX_CLASS)
        return mt_heap_grow_or_flush(heap, size, stream, MT_NO_BLOCK /* no free list */, block);
    mt_heap_free_list(heap, size, &free_list);
    enum mt_status status = MT_OK;
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

static enum mt_status find_segregated(struct mt_policy *policy,
                                      const struct mt_policy_request *request,
                                      struct mt_heap_share *share)
{
    share->size_bytes = request->size_bytes > MAX_CLASS ? mt_round_up(request->size_bytes, SLAB)
                                                        : segregated_class_of(request->size_bytes);
    return find_object(&policy->heap, share->size_bytes, request->stream, &share->block);
}

static const struct mt_heap_rules rules_segregated = {
    .size_bytes = sizeof(struct mt_policy),
    .key = newest_first,
    .may_touch = true,
    .own_addresses = true,
    .find = find_segregated,
};

const struct mt_policy_ops mt_policy_segregated = {
    .name = "segregated",
    .summary = "slabs of size classes, four per power of two",
    .heap = &rules_segregated,
    .free_completed = mt_heap_op_free_whole,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};

/* The policy `tlsf`: two-level segregated fit. Free blocks are in classes, 32 per power of two. A
 * request is rounded up to a class whose blocks all fit, and takes the most recently freed block of
 * the first such class that has any. */

enum { TLSF_ALIGNMENT = 512, SECOND_LEVEL_BITS = 5 };

static const uint64_t SEGMENT_STEP = 2 * MT_MIB;

/* size_bytes >= ALIGNMENT, so there are enough bits */
static uint64_t tlsf_class_of(uint64_t size_bytes)
{
    unsigned power = mt_log2_floor(size_bytes);

    MT_ASSERT(size_bytes >= TLSF_ALIGNMENT && power >= SECOND_LEVEL_BITS);
    return ((uint64_t)power << SECOND_LEVEL_BITS) |
           ((size_bytes >> (power - SECOND_LEVEL_BITS)) & ((1u << SECOND_LEVEL_BITS) - 1));
}

static struct mt_heap_key newest_of_class(const struct mt_block *block)
{
    struct mt_heap_key key = {tlsf_class_of(block->size_bytes), UINT64_MAX - block->gc_base};

    return key;
}

/* First class whose blocks are all large enough. */
static uint64_t fitting_class(uint64_t size_bytes)
{
    return tlsf_class_of(size_bytes +
                         ((uint64_t)1 << (mt_log2_floor(size_bytes) - SECOND_LEVEL_BITS)) - 1);
}

static enum mt_status find_tlsf(struct mt_policy *policy, const struct mt_policy_request *request,
                                struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1), TLSF_ALIGNMENT);

    share->size_bytes = size;
    share->block = mt_heap_take_first(heap, 0, fitting_class(size));
    if (share->block != MT_NO_BLOCK)
        return MT_OK;
    return mt_heap_grow_or_flush(heap, mt_round_up(size, SEGMENT_STEP), request->stream, 0,
                                 &share->block);
}

static const struct mt_heap_rules rules_tlsf = {
    .size_bytes = sizeof(struct mt_policy),
    .has_one_free_list = true,
    .key = newest_of_class,
    .find = find_tlsf,
};

const struct mt_policy_ops mt_policy_tlsf = {
    .name = "tlsf",
    .summary = "two-level segregated fit, 32 classes per power of two",
    .heap = &rules_tlsf,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};
