/* The policy `paged`: the best case of virtual memory. Physical pages of 2 MiB, any of which can
 * back any request larger than 1 MiB; smaller ones share pages by best fit. A page is free when it
 * is empty. */
#include "heap.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 512 };

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

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1),
                                request->size_bytes > MAX_SHARING ? PAGE : ALIGNMENT);

    share->size_bytes = size;
    if (size <= MAX_SHARING)
        share->block = mt_heap_take_first(heap, 0, size);
    if (share->block != MT_NO_BLOCK)
        return MT_OK;
    return map_pages(heap, mt_round_up(size, PAGE), request->stream, &share->block);
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
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

static const struct mt_heap_rules rules = {
    .size_bytes = sizeof(struct mt_policy),
    .has_one_free_list = true,
    .own_addresses = true,
    .find = find,
};

const struct mt_policy_ops mt_policy_paged = {
    .name = "paged",
    .summary = "pages of 2 MiB mapped in any order: the best case of virtual memory",
    .heap = &rules,
    .free_completed = free_completed,
    .empty_cache = empty_cache,
    MT_HEAP_OPS,
};
