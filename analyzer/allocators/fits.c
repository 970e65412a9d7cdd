/* The policies `first-fit`, `next-fit`, `best-fit` and `worst-fit`: one list of
 * free blocks for everything, 512-byte steps, the low end is handed out and the
 * rest always split off, neighbours merge at once, growth in steps of 2 MiB. */
#include "heap.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

#include <stdlib.h>

enum { ALIGNMENT = 512 };

/* Which of the free blocks that fit; taken out. MT_NO_BLOCK if none does. */
typedef uint32_t (*choice)(struct mt_policy *self, uint64_t size_bytes);

struct mt_policy {
    struct mt_heap heap; /* first: see heap.h */
    choice choose;
    uint64_t segment_bytes;
    uint64_t rover; /* next-fit: where the last allocation ended */
};

static struct mt_heap_key by_address(const struct mt_block *block)
{
    struct mt_heap_key key = {block->addr, block->size_bytes};

    return key;
}

/* ---- the four choices ----------------------------------------------------------- */

static uint32_t take_at(struct mt_heap *heap, struct mt_free_cursor at)
{
    uint32_t id = at.entry->block;

    MT_ASSERT(heap->store.blocks[id].state == MT_BLOCK_FREE);
    heap->device->address_ties += heap->lanes[0].free.count > 1;
    mt_free_set_erase(&heap->lanes[0].free, at);
    return id;
}

/* Keys are (address, size): the entry's "addr" is the block's size. */
static uint32_t first_from(struct mt_heap *heap, struct mt_free_cursor at, uint64_t size_bytes)
{
    while (at.entry && at.entry->addr < size_bytes)
        at = mt_free_set_next(&heap->lanes[0].free, at);
    return at.entry ? take_at(heap, at) : MT_NO_BLOCK;
}

static uint32_t first_fit(struct mt_policy *self, uint64_t size_bytes)
{
    return first_from(&self->heap, mt_free_set_find(&self->heap.lanes[0].free, 0, 0), size_bytes);
}

/* Starts with the free block at the rover, or the one that swallowed it. */
static uint32_t next_fit(struct mt_policy *self, uint64_t size_bytes)
{
    const struct mt_free_set *set = &self->heap.lanes[0].free;
    struct mt_free_cursor at = mt_free_set_find(set, self->rover, 0);
    struct mt_free_cursor before = mt_free_set_previous(set, at);
    uint32_t id;

    if (before.entry && before.entry->size_bytes < self->rover &&
        before.entry->size_bytes + before.entry->addr > self->rover)
        at = before;
    id = first_from(&self->heap, at, size_bytes);
    return id == MT_NO_BLOCK ? first_fit(self, size_bytes) : id;
}

static uint32_t best_fit(struct mt_policy *self, uint64_t size_bytes)
{
    return mt_heap_take_first(&self->heap, 0, size_bytes);
}

static uint32_t worst_fit(struct mt_policy *self, uint64_t size_bytes)
{
    struct mt_free_set *set = &self->heap.lanes[0].free;
    struct mt_free_cursor end = mt_free_set_find(set, UINT64_MAX, UINT64_MAX);
    struct mt_free_cursor last = mt_free_set_previous(set, end);

    if (!last.entry || last.entry->size_bytes < size_bytes)
        return MT_NO_BLOCK;
    MT_ASSERT(mt_free_set_next(set, last).entry == NULL);
    return mt_heap_take_first(&self->heap, 0, last.entry->size_bytes);
}

/* ---- the policy ----------------------------------------------------------------- */

static enum mt_status create(const char *name, choice choose, const char *text,
                             struct mt_device_model *device, struct mt_policy **policy,
                             char *spelling, size_t spelling_size, struct mt_error *error)
{
    static const uint64_t defaults[] = {(uint64_t)2 << 20};
    uint64_t segment_bytes = defaults[0];
    const struct mt_policy_option options[] = {
        {"segment", MT_POLICY_BYTES, &segment_bytes, ALIGNMENT, MT_HEAP_MAX_SEGMENT / 2, NULL}};
    enum mt_status status = mt_policy_options_parse(text, options, 1, error);
    struct mt_policy *self;
    uint32_t lane;

    if (status != MT_OK)
        return status;
    segment_bytes = mt_round_up(segment_bytes, ALIGNMENT);
    mt_policy_options_spell(name, options, defaults, 1, spelling, spelling_size);
    self = calloc(1, sizeof *self);
    if (!self)
        return MT_ERR_MEMORY;
    mt_heap_init(&self->heap, device, 0);
    self->heap.key = choose == first_fit || choose == next_fit ? by_address : NULL;
    self->choose = choose;
    self->segment_bytes = segment_bytes;
    status = mt_heap_lane(&self->heap, 0, &lane);
    if (status != MT_OK)
        mt_heap_op_destroy(self);
    else
        *policy = self;
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
    id = policy->choose(policy, size);
    if (id == MT_NO_BLOCK)
        status = mt_heap_grow_or_flush(heap, mt_round_up(size, policy->segment_bytes),
                                       request->stream, 0, &id);
    if (status == MT_ERR_DEVICE_OOM)
        return mt_heap_oom(heap);
    if (status == MT_OK)
        status = mt_heap_hand_out(heap, id, size, request->size_bytes, out);
    if (status == MT_OK)
        policy->rover = out->addr + out->size_bytes;
    return status;
}

#define BY_ADDRESS                                                                                 \
    "every choice hangs on where the driver puts segments: another order, another peak"

#define FIT(id, policy_name, choose_function, policy_summary, policy_doubt)                        \
    static enum mt_status create_##id(                                                             \
        const char *text, const struct mt_trace_header *header, const struct mt_symbols *symbols,  \
        struct mt_device_model *device, struct mt_policy **policy, char *spelling,                 \
        size_t spelling_size, struct mt_error *error)                                              \
    {                                                                                              \
        (void)header;                                                                              \
        (void)symbols;                                                                             \
        return create(policy_name, choose_function, text, device, policy, spelling, spelling_size, \
                      error);                                                                      \
    }                                                                                              \
    const struct mt_policy_ops mt_policy_##id = {                                                  \
        .name = policy_name,                                                                       \
        .summary = policy_summary,                                                                 \
        .doubt = policy_doubt,                                                                     \
        .create = create_##id,                                                                     \
        .destroy = mt_heap_op_destroy,                                                             \
        .alloc = alloc,                                                                            \
        .free_requested = mt_heap_op_free_requested,                                               \
        .free_completed = mt_heap_op_free_completed,                                               \
        .empty_cache = mt_heap_op_drop_idle,                                                       \
        .counters = mt_heap_op_counters,                                                           \
        .is_sound = mt_heap_op_is_sound,                                                           \
    }

FIT(first_fit, "first-fit", first_fit, "the free block with the lowest address", BY_ADDRESS);
FIT(next_fit, "next-fit", next_fit, "the next free block behind the last allocation", BY_ADDRESS);
FIT(best_fit, "best-fit", best_fit, "the smallest free block that fits", NULL);
FIT(worst_fit, "worst-fit", worst_fit, "the largest free block", NULL);
