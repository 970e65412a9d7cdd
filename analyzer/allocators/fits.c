/* The policies `first-fit`, `next-fit`, `best-fit` and `worst-fit`: one list of all free blocks,
 * 512-byte steps. The low end is allocated and the rest always split off, neighbors merge
 * immediately, and growth is in steps of 2 MiB. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

enum { ALIGNMENT = 512 };

/* Removes and returns one of the free blocks that fit; MT_NO_BLOCK if none. */
typedef uint32_t (*choice)(struct mt_policy *self, uint64_t size_bytes);

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    uint64_t segment_bytes;
    uint64_t rover; /* next-fit: where the last allocation ended */
};

static struct mt_heap_key by_address(const struct mt_block *block)
{
    struct mt_heap_key key = {block->addr, block->size_bytes};

    return key;
}

static uint32_t take_at(struct mt_heap *heap, struct mt_free_cursor at)
{
    uint32_t id = at.entry->block;

    MT_ASSERT(heap->store.blocks[id].state == MT_BLOCK_FREE);
    heap->device->address_ties += heap->free_lists[0].free.count > 1;
    mt_free_set_erase(&heap->free_lists[0].free, at);
    return id;
}

/* Keys are (address, size): the entry's "addr" is the block's size. */
static uint32_t first_from(struct mt_heap *heap, struct mt_free_cursor at, uint64_t size_bytes)
{
    while (at.entry && at.entry->addr < size_bytes)
        at = mt_free_set_next(&heap->free_lists[0].free, at);
    return at.entry ? take_at(heap, at) : MT_NO_BLOCK;
}

static uint32_t first_fit(struct mt_policy *self, uint64_t size_bytes)
{
    return first_from(&self->heap, mt_free_set_find(&self->heap.free_lists[0].free, 0, 0),
                      size_bytes);
}

/* Starts with the free block at the rover, or the one that absorbed it. */
static uint32_t next_fit(struct mt_policy *self, uint64_t size_bytes)
{
    const struct mt_free_set *set = &self->heap.free_lists[0].free;
    struct mt_free_cursor at = mt_free_set_find(set, self->rover, 0);
    struct mt_free_cursor before = mt_free_set_previous(set, at);

    if (before.entry && before.entry->size_bytes < self->rover &&
        before.entry->size_bytes + before.entry->addr > self->rover)
        at = before;
    uint32_t id = first_from(&self->heap, at, size_bytes);
    return id == MT_NO_BLOCK ? first_fit(self, size_bytes) : id;
}

static uint32_t best_fit(struct mt_policy *self, uint64_t size_bytes)
{
    return mt_heap_take_first(&self->heap, 0, size_bytes);
}

static uint32_t worst_fit(struct mt_policy *self, uint64_t size_bytes)
{
    struct mt_free_set *set = &self->heap.free_lists[0].free;
    struct mt_free_cursor end = mt_free_set_find(set, UINT64_MAX, UINT64_MAX);
    struct mt_free_cursor last = mt_free_set_previous(set, end);

    if (!last.entry || last.entry->size_bytes < size_bytes)
        return MT_NO_BLOCK;
    MT_ASSERT(mt_free_set_next(set, last).entry == NULL);
    return mt_heap_take_first(&self->heap, 0, last.entry->size_bytes);
}

static const struct mt_policy_option options[] = {
    {"segment", MT_POLICY_BYTES, 2 * MT_MIB, ALIGNMENT, MT_HEAP_MAX_SEGMENT / 2, NULL}};

static enum mt_status init(struct mt_policy *self, uint64_t *values, struct mt_error *error)
{
    (void)error;
    self->segment_bytes = values[0] = mt_round_up(values[0], ALIGNMENT);
    return MT_OK;
}

static enum mt_status find(struct mt_policy *self, choice choose,
                           const struct mt_policy_request *request, struct mt_heap_share *share)
{
    uint64_t size = mt_round_up(mt_max_u64(request->size_bytes, 1), ALIGNMENT);
    enum mt_status status = MT_OK;

    share->size_bytes = size;
    share->block = choose(self, size);
    if (share->block == MT_NO_BLOCK)
        status = mt_heap_grow_or_flush(&self->heap, mt_round_up(size, self->segment_bytes),
                                       request->stream, 0, &share->block);
    if (status == MT_OK)
        self->rover = self->heap.store.blocks[share->block].addr + size;
    return status;
}

#define BY_ADDRESS                                                                                 \
    "every choice depends on where the driver places segments: another order of addresses gives "  \
    "another peak"

#define FIT(id, policy_name, order, policy_summary, policy_doubt)                                  \
    static enum mt_status find_##id(struct mt_policy *self,                                        \
                                    const struct mt_policy_request *request,                       \
                                    struct mt_heap_share *share)                                   \
    {                                                                                              \
        return find(self, id, request, share);                                                     \
    }                                                                                              \
    static const struct mt_heap_rules id##_rules = {                                               \
        MT_HEAP_RULES(options, init, find_##id),                                                   \
        .has_one_free_list = true,                                                                 \
        .key = order,                                                                              \
    };                                                                                             \
    const struct mt_policy_ops mt_policy_##id = {                                                  \
        .name = policy_name,                                                                       \
        .summary = policy_summary,                                                                 \
        .doubt = policy_doubt,                                                                     \
        .heap = &id##_rules,                                                                       \
        .free_completed = mt_heap_op_free_completed,                                               \
        .empty_cache = mt_heap_op_drop_idle,                                                       \
        MT_HEAP_OPS,                                                                               \
    }

FIT(first_fit, "first-fit", by_address, "the free block with the lowest address", BY_ADDRESS);
FIT(next_fit, "next-fit", by_address, "the next free block after the last allocation", BY_ADDRESS);
FIT(best_fit, "best-fit", NULL, "the smallest free block that fits", NULL);
FIT(worst_fit, "worst-fit", NULL, "the largest free block", NULL);
