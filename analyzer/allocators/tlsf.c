/* The policy `tlsf`: two-level segregated fit. Free blocks are in classes, 32 per power of two. A
 * request is rounded up to a class whose blocks all fit, and takes the most recently freed block of
 * the first such class that has any. */
#include "heap.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 512, SECOND_LEVEL_BITS = 5 };

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
};

static const uint64_t SEGMENT_STEP = 2 * MT_MIB;

/* size_bytes >= ALIGNMENT, so there are enough bits */
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

/* First class whose blocks are all large enough. */
static uint64_t fitting_class(uint64_t size_bytes)
{
    return class_of(size_bytes + ((uint64_t)1 << (mt_log2_floor(size_bytes) - SECOND_LEVEL_BITS)) -
                    1);
}

static enum mt_status find(struct mt_policy *policy, const struct mt_policy_request *request,
                           struct mt_heap_share *share)
{
    struct mt_heap *heap = &policy->heap;
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);

    share->size_bytes = size;
    share->block = mt_heap_take_first(heap, 0, fitting_class(size));
    if (share->block != MT_NO_BLOCK)
        return MT_OK;
    return mt_heap_grow_or_flush(heap, mt_round_up(size, SEGMENT_STEP), request->stream, 0,
                                 &share->block);
}

static const struct mt_heap_rules rules = {
    .size_bytes = sizeof(struct mt_policy),
    .has_one_free_list = true,
    .key = newest_of_class,
    .find = find,
};

const struct mt_policy_ops mt_policy_tlsf = {
    .name = "tlsf",
    .summary = "two-level segregated fit, 32 classes per power of two",
    .heap = &rules,
    .free_completed = mt_heap_op_free_completed,
    .empty_cache = mt_heap_op_drop_idle,
    MT_HEAP_OPS,
};
