/* Three sets read the same stream, each with its own window and axis. */
#include "blocks_model.h"

#include <string.h>

#include "level_curve.h"
#include "util.h"

struct set_builder {
    struct mt_block_set set;
    struct mt_level_curve curve;
    struct mt_kept_blocks kept;
    uint64_t lived; /* blocks alive at some time of the window */
    bool by_event, started;
};

struct mt_blocks_builder {
    struct mt_arena *arena;
    struct mt_blocks *blocks;
    struct set_builder sets[3]; /* time, event, around */
    uint64_t allocated;         /* after the last event */
    uint64_t roles[MT_ROLE_COUNT];
    bool started;
};

static void set_init(struct set_builder *builder, struct mt_arena *arena,
                     const struct mt_model_window *window, bool by_event, uint32_t bins)
{
    builder->set.begin_t_ns = window->begin_t_ns;
    builder->set.end_t_ns = mt_max_u64(window->begin_t_ns, window->end_t_ns);
    builder->set.begin_event = window->begin_event;
    builder->set.end_event = mt_max_u64(window->begin_event, window->end_event);
    builder->by_event = by_event;
    builder->set.levels = mt_arena_array(arena, (size_t)bins + 1, sizeof *builder->set.levels);
    mt_kept_blocks_init(&builder->kept, arena, MT_MAX_KEPT_BLOCKS);
    if (by_event)
        mt_level_curve_init(&builder->curve, arena, builder->set.begin_event,
                            builder->set.end_event, bins);
    else
        mt_level_curve_init(&builder->curve, arena, builder->set.begin_t_ns, builder->set.end_t_ns,
                            bins);
}

void mt_blocks_builder_new(struct mt_arena *arena, const struct mt_model_window *window,
                           uint64_t peak_event, uint32_t bins, struct mt_blocks_builder **out)
{
    struct mt_blocks_builder *builder = mt_arena_alloc(arena, sizeof *builder);
    struct mt_blocks *blocks = mt_arena_alloc(arena, sizeof *blocks);
    struct mt_model_window around = *window;

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
    set_init(&builder->sets[0], arena, window, false, bins);
    set_init(&builder->sets[1], arena, window, true, bins);
    set_init(&builder->sets[2], arena, &around, true, 2 * MT_BLOCKS_AROUND + 1);
    *out = builder;
}

static void add_level(struct set_builder *builder, uint64_t t_ns, uint64_t event, uint64_t level,
                      const uint64_t *roles)
{
    struct mt_level_curve *curve = &builder->curve;
    uint32_t bins = curve->count;
    uint64_t before;
    struct mt_role_levels *levels;

    t_ns = mt_min_u64(mt_max_u64(t_ns, builder->set.begin_t_ns), builder->set.end_t_ns);
    before = bins ? curve->bins[bins - 1].max : 0;
    mt_level_curve_add(curve, builder->by_event ? event : t_ns, t_ns, event, level);
    levels = &builder->set.levels[curve->count - 1];
    if (curve->count > bins || level > before)
        memcpy(levels->max, roles, sizeof levels->max);
    memcpy(levels->last, roles, sizeof levels->last);
}

/* A device before and after an event. */
struct levels {
    uint64_t before, after;
    const uint64_t *roles_before, *roles_after;
};

static void set_state(struct set_builder *builder, const struct mt_event *event,
                      const struct levels *levels)
{
    if (event->seq < builder->set.begin_event || event->seq > builder->set.end_event)
        return;
    if (!builder->started && event->seq > builder->set.begin_event)
        add_level(builder, builder->set.begin_t_ns, builder->set.begin_event, levels->before,
                  levels->roles_before);
    builder->started = true;
    add_level(builder, event->t_ns, event->seq, levels->after, levels->roles_after);
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

void mt_blocks_builder_state(void *context, const struct mt_model_state *state)
{
    struct mt_blocks_builder *builder = context;
    const struct mt_event *event = state->event;
    const struct mt_block_set *whole = &builder->sets[0].set;
    const struct levels levels = {builder->allocated, state->now->allocated, builder->roles,
                                  state->role_bytes};
    uint64_t before = builder->allocated;

    if (event->seq > whole->end_event)
        return;
    builder->allocated = state->now->allocated;
    if (event->seq < whole->begin_event) {
        memcpy(builder->roles, state->role_bytes, sizeof builder->roles);
        return;
    }
    if (!builder->started && event->seq > whole->begin_event)
        note_peak(builder, before, whole->begin_t_ns, whole->begin_event);
    note_peak(builder, builder->allocated, event->t_ns, event->seq);
    builder->blocks->events++;
    for (size_t i = 0; i < MT_ARRAY_LEN(builder->sets); i++)
        set_state(&builder->sets[i], event, &levels);
    memcpy(builder->roles, state->role_bytes, sizeof builder->roles);
}

/* Length of the overlap of [begin, end) and [low, high]; at least 1, since the block existed. */
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

    if (life->birth_event > set->end_event || life->end_event <= set->begin_event)
        return;
    builder->lived++;
    length =
        builder->by_event
            ? shared_length(life->birth_event, life->end_event, set->begin_event, set->end_event)
            : shared_length(life->birth_t_ns, life->end_t_ns, set->begin_t_ns, set->end_t_ns);
    mt_kept_blocks_add(&builder->kept, life, (double)life->block_bytes * (double)length);
}

void mt_blocks_builder_end(void *context, const struct mt_block_life *life)
{
    struct mt_blocks_builder *builder = context;

    for (size_t i = 0; i < MT_ARRAY_LEN(builder->sets); i++)
        set_end(&builder->sets[i], life);
}

static void set_finish(struct mt_blocks_builder *blocks, struct set_builder *builder,
                       struct mt_block_set *out)
{
    if (!builder->started)
        add_level(builder, builder->set.begin_t_ns, builder->set.begin_event, blocks->allocated,
                  blocks->roles);
    *out = builder->set;
    out->bins = builder->curve.bins;
    out->bin_count = builder->curve.count;
    out->block_count = builder->kept.count;
    out->others = builder->lived - builder->kept.count;
    out->blocks = mt_kept_blocks_list(&builder->kept, blocks->arena);
}

struct mt_blocks *mt_blocks_builder_finish(struct mt_blocks_builder *builder)
{
    struct mt_blocks *blocks = builder->blocks;
    const struct mt_block_set *whole = &builder->sets[0].set;

    if (!builder->started)
        note_peak(builder, builder->allocated, whole->begin_t_ns, whole->begin_event);
    set_finish(builder, &builder->sets[0], &blocks->time);
    set_finish(builder, &builder->sets[1], &blocks->event);
    set_finish(builder, &builder->sets[2], &blocks->around);
    return blocks;
}
