/* The policy `none`: no allocator at all, one device allocation a request, given
 * back when its free completes. Counts each request in steps of `page_size`. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

#include <stdlib.h>

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t page_bytes;
};

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    static const uint64_t defaults[] = {512};
    uint64_t page_bytes = defaults[0];
    const struct mt_policy_option options[] = {
        {"page_size", MT_POLICY_BYTES, &page_bytes, 512, MT_GIB, NULL}};
    enum mt_status status = mt_policy_options_parse(text, options, MT_ARRAY_LEN(options), error);

    (void)header;
    (void)symbols;
    if (status == MT_OK && page_bytes % 512 != 0)
        status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "page_size is a multiple of 512");
    if (status != MT_OK)
        return status;
    mt_policy_options_spell("none", options, defaults, MT_ARRAY_LEN(options), spelling,
                            spelling_size);
    *policy = calloc(1, sizeof **policy);
    if (!*policy)
        return MT_ERR_MEMORY;
    mt_heap_init(&(*policy)->heap, device, 0);
    (*policy)->heap.own_addresses = true;
    (*policy)->page_bytes = page_bytes;
    return MT_OK;
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
    size = mt_round_up(mt_max_u64(request->size_bytes, 1), policy->page_bytes);
    status = mt_heap_grow(heap, size, request->stream, 0, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    return status == MT_OK ? mt_heap_hand_out(heap, id, size, request->size_bytes, out) : status;
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    MT_ASSERT(policy->heap.store.blocks[handle].size_bytes % policy->page_bytes == 0);
    mt_heap_complete(&policy->heap, handle);
    return mt_heap_drop(&policy->heap, handle);
}

const struct mt_policy_ops mt_policy_none = {
    .name = "none",
    .summary = "no allocator: one device allocation a request",
    .doubt = "the driver packs small allocations into pages of 2 MiB; here each counts its own "
             "512 B steps (page_size=2MiB: whole pages)",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
