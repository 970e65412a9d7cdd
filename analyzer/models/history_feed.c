/* Turns lives into groups. The words of a block (site, phase, role) depend on few facts, and are
 * made once for each combination of them. */
#include "address_model.h"
#include "analysis.h"
#include "block_origins.h"
#include "blocks_model.h"
#include "grow.h"
#include "history.h"
#include "model_feed.h"
#include "process_memory.h"
#include "report_query.h"
#include "sorted.h"
#include "timeline_model.h"

#include <stdio.h>
#include <stdlib.h>

enum { END_CUTS = 16 }; /* of the end of a run */

struct history_feed {
    struct mt_block_origins origins;
    struct mt_history_builder *builder;
    const struct mt_symbols *symbols;
    struct mt_history_group *groups; /* by origin */
    uint32_t group_count;
    size_t group_capacity;
    uint32_t share; /* number of devices that share the page */
    unsigned first_step_percent;
    struct mt_kept_blocks kept; /* without capacity: the page lists no blocks */
    uint64_t blocks_in_all, last_t_ns, last_event;
    bool by_event;
};

static const char *stream_of(const struct history_feed *feed, uint32_t stream)
{
    const struct mt_symbols *symbols = feed->symbols;
    uint64_t handle = stream < symbols->stream_count ? symbols->streams[stream].handle : 0;
    char text[64];

    if (!handle)
        return mt_history_word(feed->builder, "default stream");
    /* its number in pictures, and its handle in `memtrace dump` */
    snprintf(text, sizeof text, "stream %u (0x%llx)", (unsigned)stream, (unsigned long long)handle);
    return mt_history_word(feed->builder, text);
}

static const char *pool_of(const struct history_feed *feed, uint16_t pool)
{
    const struct mt_symbols *symbols = feed->symbols;
    const uint64_t *id = pool < symbols->pool_count ? symbols->pools[pool].id : NULL;
    char text[64];

    if (!id || (!id[0] && !id[1]))
        return mt_history_word(feed->builder, "default pool");
    snprintf(text, sizeof text, "%s pool (%llu, %llu)", id[0] ? "CUDA graph" : "private",
             (unsigned long long)id[0], (unsigned long long)id[1]);
    return mt_history_word(feed->builder, text);
}

/* The name that the program gave to its blocks. */
static const char *tag_of(const struct history_feed *feed, uint32_t tag)
{
    return mt_history_word(feed->builder,
                           tag == MT_NO_ID ? "" : mt_symbols_text(feed->symbols, tag));
}

static struct mt_history_group describe(const struct history_feed *feed,
                                        const struct mt_block_origin *origin)
{
    return (struct mt_history_group){
        .site = mt_history_word(feed->builder, origin->site),
        .phase = mt_history_word(feed->builder, origin->phase),
        .stream = stream_of(feed, origin->stream),
        .pool = pool_of(feed, origin->pool),
        .tag = tag_of(feed, origin->tag),
        .stack = origin->stack,
        .site_stack = mt_stack_of_site((enum mt_tie)origin->tie, origin->tied, origin->stack),
        .tie = (enum mt_tie)origin->tie,
        .role = (enum mt_role)origin->role,
        .detail = MT_HISTORY_BY_SIZE,
        .is_initial = origin->is_initial,
        .is_backward = origin->is_backward};
}

/* The group of a block, without its size. */
static const struct mt_history_group *group_of(struct history_feed *feed,
                                               const struct mt_block_life *life)
{
    uint32_t origin = mt_block_origins_find(&feed->origins, life);

    if (origin == feed->group_count) {
        mt_grow_to(&feed->groups, &feed->group_capacity, (size_t)origin + 1, sizeof *feed->groups);
        feed->groups[feed->group_count++] = describe(feed, &feed->origins.list[origin]);
    }
    return &feed->groups[origin];
}

static const char *operation_of(struct history_feed *feed, const struct mt_block_life *life)
{
    uint32_t origin = mt_block_origins_find(&feed->origins, life);

    return feed->origins.list[origin].operation;
}

/* Adds a window of at most `events` events, `before` of which precede `event`. *next is the event
 * after the previous window: windows do not overlap. */
static void add_window(struct history_feed *feed, uint64_t *next, uint64_t event, uint64_t before,
                       uint64_t events)
{
    struct mt_history_window window = {mt_sub_or_0_u64(event, before), 0};

    window.last = window.first + events - 1;
    window.first = mt_max_u64(window.first, *next);
    if (window.first > window.last)
        return;
    mt_history_add_window(feed->builder, &window);
    *next = window.last + 1;
}

/* The whole run if it is short. Otherwise the events around the allocated and the reserved peak,
 * and around the last out-of-memory error. */
static void choose_windows(struct history_feed *feed, struct mt_survey_device *device)
{
    uint64_t centers[3] = {mt_peak_windows_since(&device->high[MT_HIGH_ALLOCATED], 0)->event,
                           mt_peak_windows_since(&device->high[MT_HIGH_RESERVED], 0)->event, 0};
    const uint64_t events = MT_HISTORY_EXACT / feed->share;
    uint64_t next = 0;
    size_t count = 2, kept = 1;

    if (device->last_event - device->first_event < events) {
        add_window(feed, &next, device->first_event, 0, events);
        return;
    }
    if (device->oom_count)
        centers[count++] = device->oom_list[device->oom_count - 1].event;
    qsort(centers, count, sizeof *centers, mt_ascending_u64);
    for (size_t i = 1; i < count; i++)
        if (centers[i] - centers[kept - 1] > events / 4)
            centers[kept++] = centers[i];
    for (size_t i = 0; i < kept; i++)
        add_window(feed, &next, centers[i], events / kept * 2 / 3, events / kept);
}

static uint32_t add_cuts(const struct mt_analysis *analysis, bool steps, uint64_t *events)
{
    const struct mt_phases *phases = &analysis->survey.phases;
    uint32_t count = 0;

    for (uint32_t i = 0; i < phases->count; i++) {
        const struct mt_phase *phase = &phases->phases[i];

        if (steps ? !phase->is_step : !analysis->is_main[i])
            continue;
        if (count + 2 > MT_HISTORY_CUTS)
            return UINT32_MAX;
        events[count++] = mt_phase_last_event_before(phase);
        events[count++] = phase->end_event;
    }
    return count;
}

/* A program frees what is left at its end, in less time than a column has. Adds the last event, and
 * events between it and the last cut before. */
static uint32_t add_end(uint64_t *events, uint32_t count, uint64_t last_event)
{
    uint64_t from = 0;
    uint32_t added = 0;

    for (uint32_t i = 0; i < count; i++)
        if (events[i] < last_event)
            from = mt_max_u64(from, events[i]);
    for (uint32_t i = 1; i < END_CUTS && from && last_event - from > END_CUTS; i++)
        events[count + added++] = from + (last_event - from) / END_CUTS * i;
    events[count + added++] = last_event;
    return count + added;
}

/* The ends of all steps, and of all phases, if there are few enough; and the end of the run. */
static void choose_cuts(struct history_feed *feed, const struct mt_analysis *analysis,
                        uint64_t last_event)
{
    uint64_t *events = mt_arena_array(&analysis->report->arena,
                                      (size_t)2 * MT_HISTORY_CUTS + END_CUTS, sizeof *events);
    const uint32_t most = MT_HISTORY_CUTS / feed->share;
    uint32_t count = add_cuts(analysis, true, events);
    uint32_t more = count <= most ? add_cuts(analysis, false, events + count) : UINT32_MAX;

    if (count > most)
        count = 0;
    else if (more <= most - count)
        count += more;
    count = add_end(events, count, last_event);
    qsort(events, count, sizeof *events, mt_ascending_u64);
    mt_history_set_cuts(feed->builder, events, count);
}

/* If the first of several steps takes more than half of the time (it compiles, or chooses kernels),
 * an axis of time has no room for the others. Returns its share in percent, otherwise 0. */
static unsigned long_first_step(const struct mt_timeline *axis,
                                const struct mt_device_report *device)
{
    if (!device || device->step_count < 2)
        return 0;
    double share = mt_timeline_position(axis, device->steps[0].end_t_ns) -
                   mt_timeline_position(axis, device->steps[0].begin_t_ns);
    return share > 0.5 ? (unsigned)(100 * share) : 0;
}

static void prepare(struct history_feed *feed, struct mt_analysis *analysis, uint32_t slot)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct mt_arena *arena = &analysis->report->arena;
    struct mt_timeline axis = {.first_event = device->first_event,
                               .last_event = mt_model_end(analysis, slot).event};
    const struct mt_report *report = analysis->report;
    const struct mt_device_report *facts = mt_report_device(report, device->device);

    feed->symbols = &analysis->source->symbols;
    feed->share = (uint32_t)mt_min_u64(analysis->survey.device_count, MT_HISTORY_SHARES);
    mt_block_origins_begin(&feed->origins, analysis);
    mt_timeline_spans(arena, device->first_t_ns, mt_model_end(analysis, slot).t_ns, device->gaps,
                      device->gap_count, analysis->survey.phases.phases,
                      analysis->survey.phases.count, &axis.spans, &axis.span_count);
    axis.busy_ns = mt_timeline_busy(axis.spans, axis.span_count);
    feed->by_event = mt_is_shown_by_event(report, facts);
    feed->first_step_percent = feed->by_event ? 0 : long_first_step(&axis, facts);
    mt_history_builder_new(arena, &analysis->source->symbols, &axis,
                           feed->by_event || feed->first_step_percent, &device->start,
                           &feed->builder);
    choose_windows(feed, device);
    choose_cuts(feed, analysis, axis.last_event);
    feed->last_t_ns = mt_model_end(analysis, slot).t_ns;
    feed->last_event = axis.last_event;
    if (analysis->options->models & MT_MODEL_BLOCKS)
        mt_kept_blocks_init(&feed->kept, arena, MT_HISTORY_BLOCKS / feed->share);
}

static void release(void *context)
{
    struct history_feed *feed = context;

    if (!feed)
        return;
    mt_block_origins_release(&feed->origins);
    mt_history_builder_release(feed->builder);
    free(feed->groups);
    free(feed);
}

static void on_birth(void *context, const struct mt_block_life *life)
{
    struct history_feed *feed = context;
    struct mt_history_group group = *group_of(feed, life);

    group.block_bytes = life->block_bytes;
    mt_history_birth(feed->builder, life->block, &group, life->block_bytes,
                     life->birth_event < feed->origins.attribution.first_event);
}

static void on_end(void *context, const struct mt_block_life *life, struct mt_block_end end)
{
    struct history_feed *feed = context;

    if (end.event != UINT64_MAX)
        mt_history_death(feed->builder, life->block, life->block_bytes,
                         end.event < feed->origins.attribution.first_event);
}

/* Bytes x length, to the end of the axis for a block without an end. */
static double score_of(const struct history_feed *feed, const struct mt_block_life *life,
                       struct mt_block_end end)
{
    bool ended = end.event != UINT64_MAX;
    uint64_t length = feed->by_event
                          ? mt_sub_or_0_u64(ended ? end.event : feed->last_event, life->birth_event)
                          : mt_sub_or_0_u64(ended ? end.t_ns : feed->last_t_ns, life->birth_t_ns);

    return (double)life->block_bytes * ((double)length + 1);
}

static void on_gone(void *context, const struct mt_block_life *life, struct mt_block_end end,
                    struct mt_block_end completed)
{
    struct history_feed *feed = context;

    feed->blocks_in_all++;
    if (!feed->kept.capacity)
        return;
    struct mt_block_shape *shape =
        mt_kept_blocks_add(&feed->kept, life, end, score_of(feed, life, end));
    if (shape)
        shape->completed = completed;
}

static void on_state(void *context, const struct mt_model_state *state)
{
    struct history_feed *feed = context;

    if (state->event->flags & MT_EVENT_INITIAL)
        return;
    mt_history_state(feed->builder, state->event->t_ns, state->event->seq, state->phase,
                     state->now);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct history_feed *made = mt_memory_zeroed(1, sizeof *made);

    prepare(made, analysis, slot);
    *feed = (struct mt_model_feed){.builder = made,
                                   .on_birth = on_birth,
                                   .on_end = on_end,
                                   .on_gone = on_gone,
                                   .on_state = on_state,
                                   .until_event = mt_model_end(analysis, slot).event,
                                   .release = release};
    return MT_OK;
}

/* Blocks that a page lists, each once. */
struct listing {
    struct history_feed *feed;
    struct mt_history *history;
    struct mt_map kept, listed; /* key of a block -> its index */
};

static uint64_t key_of(const struct mt_block_shape *shape)
{
    return mt_hash_u64(mt_hash_u64(shape->life.addr) ^ shape->life.birth_event);
}

/* Only a shape that was kept here has its completion. */
static void list_block(struct listing *listing, const struct mt_block_shape *shape)
{
    struct mt_history *history = listing->history;
    struct mt_history_block *block = &history->blocks[history->block_count];
    uint32_t kept = mt_map_get(&listing->kept, key_of(shape));

    if (mt_map_get(&listing->listed, key_of(shape)) != MT_MAP_NONE)
        return;
    mt_map_put(&listing->listed, key_of(shape), history->block_count++);
    block->shape = kept == MT_MAP_NONE ? *shape : listing->feed->kept.heap[kept].shape;
    if (kept == MT_MAP_NONE)
        block->shape.completed = shape->end;
    block->group = *group_of(listing->feed, &shape->life);
    block->shape.site = block->group.site;
    block->shape.operation = operation_of(listing->feed, &shape->life);
    block->group.block_bytes = shape->life.block_bytes;
}

static void list_shapes(struct listing *listing, const struct mt_block_shape *shapes,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        list_block(listing, &shapes[i]);
}

static void list_charts(struct listing *listing, const struct mt_device_report *device)
{
    const struct mt_blocks *blocks = device->blocks;

    if (blocks) {
        const struct mt_block_set *set = listing->feed->by_event ? &blocks->event : &blocks->time;
        list_shapes(listing, set->blocks, set->block_count);
        list_shapes(listing, blocks->around.blocks, blocks->around.block_count);
    }
    if (device->address)
        list_shapes(listing, device->address->blocks, device->address->block_count);
}

static int by_score(const void *a, const void *b)
{
    const struct mt_kept_block *x = a, *y = b;

    if (x->score < y->score || x->score > y->score)
        return x->score < y->score ? 1 : -1;
    return (x->shape.life.birth_event > y->shape.life.birth_event) -
           (x->shape.life.birth_event < y->shape.life.birth_event);
}

static void list_blocks(struct listing *listing, const struct mt_device_report *device)
{
    struct mt_kept_blocks *kept = &listing->feed->kept;
    const size_t charts =
        2 * MT_MAX_KEPT_BLOCKS + (device->address ? device->address->block_count : 0);
    struct mt_history *history = listing->history;

    history->blocks =
        mt_arena_array(history->arena, kept->count + charts + 1, sizeof *history->blocks);
    qsort(kept->heap, kept->count, sizeof *kept->heap, by_score);
    for (uint32_t i = 0; i < kept->count; i++)
        mt_map_put(&listing->kept, key_of(&kept->heap[i].shape), i);
    list_charts(listing, device);
    for (uint32_t i = 0; i < kept->count; i++)
        list_block(listing, &kept->heap[i].shape);
    mt_map_release(&listing->kept);
    mt_map_release(&listing->listed);
}

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct history_feed *feed = context;
    const uint32_t share = feed->share;
    struct listing listing = {.feed = feed};

    (void)analysis;
    mt_history_finish(feed->builder, &out->history);
    out->history->first_step_percent = feed->first_step_percent;
    listing.history = out->history;
    out->history->blocks_in_all = feed->blocks_in_all;
    if (feed->kept.capacity)
        list_blocks(&listing, out);
    mt_history_reduce(out->history, MT_HISTORY_GROUPS / share, MT_HISTORY_CHANGES / share);
    return MT_OK;
}

const struct mt_model_ops mt_model_history = {.begin = begin, .finish = finish};
