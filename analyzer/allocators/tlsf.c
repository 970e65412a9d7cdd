/* The policy `tlsf`: two-level segregated fit. Free blocks lie in classes, 32 to
 * each power of two; a request is rounded up to a class whose blocks all fit,
 * and takes what was freed last in the first such class that has any. */
#include "heap.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 512, SECOND_LEVEL_BITS = 5 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
};

static const uint64_t SEGMENT_STEP = 2 * MT_MIB;

/* size_bytes >= ALIGNMENT, so that there are bits enough */
static uint64_t class_of(uint64_t size_bytes)
{
    unsigned power = mt_log2_floor(size_bytes);

    MT_ASSERT(size_bytes >= ALIGNMENT && power >= SECOND_LEVEL_BITS);
    return ((uint64_t)power << SECOND_LEVEL_BITS) |
           ((size_bytes >> (power - SECOND_LEVEL_BITS)) & ((1u << SECOND_LEVEL_BITS) - 1));
}

static struct mt_heap_key newest_of_class(const struct mt_block *block)
{
    struct mt_heap_key key = {class_of(block->size_bytes), UINT64_MAX - block->gc_base};

    return key;
}

/* First class whose blocks are all as long as wanted. */
static uint64_t fitting_class(uint64_t size_bytes)
{
    return class_of(size_bytes + ((uint64_t)1 << (mt_log2_floor(size_bytes) - SECOND_LEVEL_BITS)) -
                    1);
}

static enum mt_status create(const char *text, const struct mt_trace_header *header,
                             const struct mt_symbols *symbols, struct mt_device_model *device,
                             struct mt_policy **policy, char *spelling, size_t spelling_size,
                             struct mt_error *error)
{
    enum mt_status status =
        mt_heap_create_plain("tlsf", text, device, policy, spelling, spelling_size, error);
    uint32_t lane;

    (void)header;
    (void)symbols;
    if (status != MT_OK)
        return status;
    (*policy)->heap.key = newest_of_class;
    status = mt_heap_lane(&(*policy)->heap, 0, &lane);
    if (status != MT_OK) {
        mt_heap_op_destroy(*policy);
        *policy = NULL;
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
    size = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
    id = mt_heap_take_first(heap, 0, fitting_class(size));
    if (id == MT_NO_BLOCK)
        status =
            mt_heap_grow_or_flush(heap, mt_round_up(size, SEGMENT_STEP), request->stream, 0, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    MT_ASSERT(status != MT_OK || heap->store.blocks[id].size_bytes >= size);
    return status == MT_OK ? mt_heap_hand_out(heap, id, size, request->size_bytes, out) : status;
}

const struct mt_policy_ops mt_policy_tlsf = {
    .name = "tlsf",
    .summary = "two-level segregated fit, 32 classes a power of two",
    .create = create,
    .destroy = mt_heap_op_destroy,
    .alloc = alloc,
    .free_requested = mt_heap_op_free_requested,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    .counters = mt_heap_op_counters,
    .is_sound = mt_heap_op_is_sound,
};
