/* The policy `none`: no caching, one device allocation per request, released when its free
 * completes. Rounds each request up to `page_size`. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t page_bytes;
};

static const struct mt_policy_option options[] = {
    {"page_size", MT_POLICY_BYTES, 512, 512, MT_GIB, NULL}};

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    self->page_bytes = values[0];
    if (self->page_bytes % 512 == 0)
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "page_size is a multiple of 512");
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    share->size_bytes = mt_round_up(mt_max_u64(request->size_bytes, 1), policy->page_bytes);
    return mt_heap_grow(&policy->heap, share->size_bytes, request->stream, 0, &share->block);
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    MT_ASSERT(policy->heap.store.blocks[handle].size_bytes % policy->page_bytes == 0);
    mt_heap_complete(&policy->heap, handle);
    mt_heap_drop(&policy->heap, handle);
    return MT_OK;
}

static const struct mt_heap_rules rules = {
    MT_HEAP_RULES(options, init, find),
    .own_addresses = true,
};

const struct mt_policy_ops mt_policy_none = {
    .name = "none",
    .summary = "no allocator: one device allocation per request",
    .doubt = "the driver packs small allocations into pages of 2 MiB; here each is rounded up to "
             "512 B (page_size=2MiB: to whole pages)",
    .heap = &rules,
    .free_completed = free_completed,
    .empty_cache = mt_heap_op_keep_cache,
    MT_HEAP_OPS,
};
