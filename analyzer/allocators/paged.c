/* The policy `paged`: what virtual memory could do at best. Physical pages of
 * 2 MiB, any of which can back any request longer than 1 MiB; shorter ones share
 * pages by best fit. A page is free again when nothing lies in it. */
#include "heap.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 512 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h; loose_bytes: the free pages */
};

static const uint64_t PAGE = 2 * MT_MIB;
static const uint64_t MAX_SHARING = MT_MIB;

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    enum mt_status status =
        mt_heap_create_plain("paged", text, device, policy, spelling, spelling_size, error);
    uint32_t lane;

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    (*policy)->heap.own_addresses = true;
    status = mt_heap_lane(&(*policy)->heap, 0, &lane);
    if (status != MT_OK) {
        mt_heap_op_destroy(*policy);
        *policy = NULL;
    }
    return status;
}

/* A free block of whole pages: free pages first, then new ones. */
static enum mt_status map_pages(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                                uint32_t *block)
{
    uint64_t reused = mt_min_u64(heap->loose_bytes, size_bytes), fresh = size_bytes - reused;
    enum mt_status status;

    if (mt_heap_exceeds(heap, fresh)) {
        heap->device->refusals++;
        return MT_ERR_DEVICE_OOM;
    }
    status = mt_heap_place(heap, size_bytes, stream, 0, block);
    if (status != MT_OK)
        return status;
    MT_ASSERT(fresh % PAGE == 0 && heap->loose_bytes >= reused);
    heap->loose_bytes -= reused;
    mt_level_add(&heap->counters.reserved, fresh);
    heap->counters.device_allocs += fresh / PAGE;
    return MT_OK;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    struct mt_heap *heap = &policy->heap;
    enum mt_status status = MT_OK;
    uint32_t id = MT_NO_BLOCK;
    uint64_t size;

    if (request->size_bytes > MT_HEAP_MAX_REQUEST)
        return mt_heap_oom(heap);
    size = mt_round_up(mt_max_u64(request->size_bytes, 1),
                       request->size_bytes > MAX_SHARING ? PAGE : ALIGNMENT);
    if (size <= MAX_SHARING)
        id = mt_heap_take_first(heap, 0, size);
    if (id == MT_NO_BLOCK)
        status = map_pages(heap, mt_round_up(size, PAGE), request->stream, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    return status == MT_OK ? mt_heap_hand_out(heap, id, size, request->size_bytes, out) : status;
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = &policy->heap;

    mt_heap_complete(heap, handle);
    mt_heap_merge(heap, handle);
    if (mt_block_is_split(&heap->store.blocks[handle]))
        return mt_heap_put(heap, handle);
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

const struct mt_policy_ops mt_policy_paged = {
    .name = "paged",
    .summary = "pages of 2 MiB stitched at will: virtual memory at its best",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = free_completed,
    .empty_cache = empty_cache,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
