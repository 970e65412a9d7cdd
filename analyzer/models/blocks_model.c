/* Three sets look at the same stream, each through its own window and axis. A set
 * keeps its blocks in a heap whose top is the least of them: a block that ends is
 * compared with the top, and most go by at that. */
#include "blocks_model.h"

#include "level_curve.h"
#include "util.h"

#include <stdlib.h>

struct entry {
    double score; /* bytes x length in the window */
    struct mt_block_shape shape;
};

struct set_builder {
    struct mt_block_set set;
    struct mt_level_curve curve;
    struct entry *heap;
    uint32_t count;
    uint64_t lived; /* blocks that were there at some time of the window */
    bool by_event, started;
};

struct mt_blocks_builder {
    struct mt_arena *arena;
    struct mt_blocks *blocks;
    struct set_builder sets[3]; /* time, event, around */
    uint64_t allocated;         /* after the last event */
    bool started;
};

static enum mt_status set_init(struct set_builder *builder, struct mt_arena *arena,
                               const struct mt_model_window *window, bool by_event, uint32_t bins)
{
    builder->set.begin_t_ns = window->begin_t_ns;
    builder->set.end_t_ns = mt_max_u64(window->begin_t_ns, window->end_t_ns);
    builder->set.begin_event = window->begin_event;
    builder->set.end_event = mt_max_u64(window->begin_event, window->end_event);
    builder->by_event = by_event;
    builder->heap = mt_arena_array(arena, MT_MAX_KEPT_BLOCKS, sizeof *builder->heap);
    if (!builder->heap)
        return MT_ERR_MEMORY;
    return by_event ? mt_level_curve_init(&builder->curve, arena, builder->set.begin_event,
                                          builder->set.end_event, bins)
                    : mt_level_curve_init(&builder->curve, arena, builder->set.begin_t_ns,
                                          builder->set.end_t_ns, bins);
}

enum mt_status mt_blocks_builder_new(struct mt_arena *arena, const struct mt_model_window *window,
                                     uint64_t peak_event, uint32_t bins,
                                     struct mt_blocks_builder **out)
{
    struct mt_blocks_builder *builder = mt_arena_alloc(arena, sizeof *builder);
    struct mt_blocks *blocks = mt_arena_alloc(arena, sizeof *blocks);
    struct mt_model_window around = *window;
    enum mt_status status;

    if (!builder || !blocks)
        return MT_ERR_MEMORY;
    bins = bins < 1 ? 1 : bins > 8192 ? 8192 : bins;
    peak_event = mt_min_u64(mt_max_u64(peak_event, window->begin_event), window->end_event);
    if (peak_event - window->begin_event > MT_BLOCKS_AROUND)
        around.begin_event = peak_event - MT_BLOCKS_AROUND;
    if (window->end_event > peak_event && window->end_event - peak_event > MT_BLOCKS_AROUND)
        around.end_event = peak_event + MT_BLOCKS_AROUND;
    builder->arena = arena;
    builder->blocks = blocks;
    blocks->step = window->step;
    blocks->phase = window->phase;
    status = set_init(&builder->sets[0], arena, window, false, bins);
    if (!status)
        status = set_init(&builder->sets[1], arena, window, true, bins);
    if (!status)
        status = set_init(&builder->sets[2], arena, &around, true, 2 * MT_BLOCKS_AROUND + 1);
    *out = builder;
    return status;
}

static void add_level(struct set_builder *builder, uint64_t t_ns, uint64_t event, uint64_t level)
{
    t_ns = mt_min_u64(mt_max_u64(t_ns, builder->set.begin_t_ns), builder->set.end_t_ns);
    mt_level_curve_add(&builder->curve, builder->by_event ? event : t_ns, t_ns, event, level);
}

static void set_state(struct set_builder *builder, const struct mt_event *event, uint64_t before,
                      uint64_t after)
{
    if (event->seq < builder->set.begin_event || event->seq > builder->set.end_event)
        return;
    if (!builder->started && event->seq > builder->set.begin_event)
        add_level(builder, builder->set.begin_t_ns, builder->set.begin_event, before);
    builder->started = true;
    add_level(builder, event->t_ns, event->seq, after);
}

static void note_peak(struct mt_blocks_builder *builder, uint64_t level, uint64_t t_ns,
                      uint64_t event)
{
    struct mt_blocks *blocks = builder->blocks;

    if (builder->started && level <= blocks->peak_allocated)
        return;
    builder->started = true;
    blocks->peak_allocated = level;
    blocks->peak_t_ns = t_ns;
    blocks->peak_event = event;
}

enum mt_status mt_blocks_builder_state(void *context, const struct mt_model_state *state)
{
    struct mt_blocks_builder *builder = context;
    const struct mt_event *event = state->event;
    const struct mt_block_set *whole = &builder->sets[0].set;
    uint64_t before = builder->allocated;

    if (event->seq > whole->end_event)
        return MT_OK;
    builder->allocated = state->now->allocated;
    if (event->seq < whole->begin_event)
        return MT_OK;
    if (!builder->started && event->seq > whole->begin_event)
        note_peak(builder, before, whole->begin_t_ns, whole->begin_event);
    note_peak(builder, builder->allocated, event->t_ns, event->seq);
    builder->blocks->events++;
    for (size_t i = 0; i < MT_ARRAY_LEN(builder->sets); i++)
        set_state(&builder->sets[i], event, before, builder->allocated);
    return MT_OK;
}

/* Does a go before b? Then b is what is kept of the two. */
static bool is_less(const struct entry *a, const struct entry *b)
{
    if (a->score < b->score || a->score > b->score)
        return a->score < b->score;
    return a->shape.birth_event > b->shape.birth_event;
}

static void sift_up(struct entry *heap, uint32_t at)
{
    while (at && is_less(&heap[at], &heap[(at - 1) / 2])) {
        struct entry moved = heap[at];

        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = moved;
        at = (at - 1) / 2;
    }
}

static void sift_down(struct entry *heap, uint32_t count)
{
    uint32_t at = 0, child;

    for (; (child = 2 * at + 1) < count; at = child) {
        struct entry moved = heap[at];

        if (child + 1 < count && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], &heap[at]))
            return;
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

static struct mt_block_shape shape_of(const struct mt_block_life *life)
{
    return (struct mt_block_shape){.block_bytes = life->block_bytes,
                                   .requested_bytes = life->requested_bytes,
                                   .birth_t_ns = life->birth_t_ns,
                                   .birth_event = life->birth_event,
                                   .end_t_ns = life->end_t_ns,
                                   .end_event = life->end_event,
                                   .stack = life->stack,
                                   .tied = life->tied,
                                   .tie = (enum mt_tie)life->tie,
                                   .phase = life->phase,
                                   .role = (enum mt_role)life->role,
                                   .initial = life->initial};
}

/* Of [begin, end) what lies in [low, high]; at least 1, as it was there. */
static uint64_t shared_length(uint64_t begin, uint64_t end, uint64_t low, uint64_t high)
{
    begin = mt_max_u64(begin, low);
    end = mt_min_u64(end, high);
    return end > begin ? end - begin : 1;
}

static void set_end(struct set_builder *builder, const struct mt_block_life *life)
{
    const struct mt_block_set *set = &builder->set;
    uint64_t length;
    struct entry entry;

    if (life->birth_event > set->end_event || life->end_event <= set->begin_event)
        return;
    builder->lived++;
    length =
        builder->by_event
            ? shared_length(life->birth_event, life->end_event, set->begin_event, set->end_event)
            : shared_length(life->birth_t_ns, life->end_t_ns, set->begin_t_ns, set->end_t_ns);
    entry.score = (double)life->block_bytes * (double)length;
    entry.shape.birth_event = life->birth_event;
    if (builder->count == MT_MAX_KEPT_BLOCKS && is_less(&entry, &builder->heap[0]))
        return;
    entry.shape = shape_of(life);
    if (builder->count < MT_MAX_KEPT_BLOCKS) {
        builder->heap[builder->count] = entry;
        sift_up(builder->heap, builder->count++);
    } else {
        builder->heap[0] = entry;
        sift_down(builder->heap, builder->count);
    }
}

enum mt_status mt_blocks_builder_end(void *context, const struct mt_block_life *life)
{
    struct mt_blocks_builder *builder = context;

    for (size_t i = 0; i < MT_ARRAY_LEN(builder->sets); i++)
        set_end(&builder->sets[i], life);
    return MT_OK;
}

static int by_birth(const void *a, const void *b)
{
    const struct mt_block_shape *x = a, *y = b;

    if (x->birth_event != y->birth_event)
        return x->birth_event < y->birth_event ? -1 : 1;
    return (x->block_bytes < y->block_bytes) - (x->block_bytes > y->block_bytes);
}

static enum mt_status set_finish(struct mt_blocks_builder *blocks, struct set_builder *builder,
                                 struct mt_block_set *out)
{
    if (!builder->started)
        add_level(builder, builder->set.begin_t_ns, builder->set.begin_event, blocks->allocated);
    *out = builder->set;
    out->bins = builder->curve.bins;
    out->bin_count = builder->curve.count;
    out->block_count = builder->count;
    out->others = builder->lived - builder->count;
    out->blocks = mt_arena_array(blocks->arena, (size_t)builder->count + 1, sizeof *out->blocks);
    if (!out->blocks)
        return MT_ERR_MEMORY;
    for (uint32_t i = 0; i < builder->count; i++)
        out->blocks[i] = builder->heap[i].shape;
    qsort(out->blocks, builder->count, sizeof *out->blocks, by_birth);
    return MT_OK;
}

struct mt_blocks *mt_blocks_builder_finish(struct mt_blocks_builder *builder)
{
    struct mt_blocks *blocks = builder->blocks;
    const struct mt_block_set *whole = &builder->sets[0].set;

    if (!builder->started)
        note_peak(builder, builder->allocated, whole->begin_t_ns, whole->begin_event);
    if (set_finish(builder, &builder->sets[0], &blocks->time) ||
        set_finish(builder, &builder->sets[1], &blocks->event) ||
        set_finish(builder, &builder->sets[2], &blocks->around))
        return NULL;
    return blocks;
}
