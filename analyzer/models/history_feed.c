/* Turns lives into groups. The words of a block (site, phase, role) depend on few facts, and are
 * made once for each combination of them. */
#include "analysis.h"
#include "attributed.h"
#include "history.h"
#include "model_feed.h"
#include "process_memory.h"
#include "report_query.h"
#include "timeline_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The facts that determine the words of a block. */
struct origin {
    uint32_t stack, tied;
    uint32_t phase_name; /* number of the phase's name as a person would give it */
    uint32_t stream, tag;
    uint16_t pool;
    uint8_t role, tie;
    bool initial;
};

struct known {
    struct origin origin;
    struct mt_history_group group;
};

struct history_feed {
    struct mt_attribution attribution;
    struct mt_history_builder *builder;
    const struct mt_symbols *symbols;
    uint32_t *phase_names; /* by phase: number of its name */
    uint32_t phase_count;
    struct known *known;
    uint32_t known_count, known_capacity;
    struct mt_map ids; /* hash of an origin -> known */
    uint32_t share;    /* number of devices that share the page */
};

/* Steps have thousands of phases, and few names. */
static void name_phases(struct history_feed *feed)
{
    struct mt_strings names = {0};

    feed->phase_count = feed->attribution.phases->count;
    feed->phase_names = mt_memory_zeroed((size_t)feed->phase_count + 1, sizeof *feed->phase_names);
    for (uint32_t i = 0; i < feed->phase_count; i++) {
        const struct mt_block_life life = {
            .stack = MT_NO_ID, .tied = MT_NO_ID, .phase = (int32_t)i};
        struct mt_attributed row = mt_attributed_of_life(&feed->attribution, &life);
        uint32_t id;

        mt_strings_put(&names, row.phase, strlen(row.phase), &id);
        feed->phase_names[i] = 2 * (id + 1) + (row.backward ? 1 : 0);
    }
    mt_strings_release(&names);
}

static bool is_same(const struct origin *a, const struct origin *b)
{
    return a->stack == b->stack && a->tied == b->tied && a->phase_name == b->phase_name &&
           a->role == b->role && a->tie == b->tie && a->initial == b->initial &&
           a->stream == b->stream && a->tag == b->tag && a->pool == b->pool;
}

static uint64_t hash(const struct origin *origin)
{
    uint64_t hash = mt_hash_u64((uint64_t)origin->stack << 32 | origin->tied);

    hash = mt_hash_u64(hash ^ ((uint64_t)origin->stream << 32 | origin->tag));
    hash = mt_hash_u64(hash ^ origin->pool);
    return mt_hash_u64(hash ^ ((uint64_t)origin->phase_name << 24 | (uint64_t)origin->role << 16 |
                               (uint64_t)origin->tie << 8 | (origin->initial ? 1u : 0u)));
}

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
    snprintf(text, sizeof text, "%s pool (%llu, %llu)", id[0] ? "CUDA graph" : "own",
             (unsigned long long)id[0], (unsigned long long)id[1]);
    return mt_history_word(feed->builder, text);
}

/* The name that the program gave to its blocks. */
static const char *tag_of(const struct history_feed *feed, uint32_t tag)
{
    return mt_history_word(feed->builder,
                           tag == MT_NO_ID ? "" : mt_symbols_text(feed->symbols, tag));
}

static void describe(struct history_feed *feed, const struct mt_block_life *life,
                     struct mt_history_group *group)
{
    struct mt_attributed row = mt_attributed_of_life(&feed->attribution, life);
    const char *site = mt_attributed_site(&feed->attribution, &row);

    *group = (struct mt_history_group){
        .site = mt_history_word(feed->builder, site),
        .phase = mt_history_word(feed->builder, row.phase),
        .stream = stream_of(feed, life->stream),
        .pool = pool_of(feed, life->pool),
        .tag = tag_of(feed, life->tag),
        .stack = life->stack,
        .site_stack = mt_stack_of_site((enum mt_tie)life->tie, life->tied, life->stack),
        .tie = (enum mt_tie)life->tie,
        .role = (enum mt_role)life->role,
        .detail = MT_HISTORY_BY_SIZE,
        .is_initial = row.initial,
        .is_backward = row.backward};
}

static void remember(struct history_feed *feed, const struct known *known)
{
    if (feed->known_count == feed->known_capacity) {
        uint32_t capacity = feed->known_capacity ? feed->known_capacity * 2 : 256;
        struct known *bigger = mt_memory_resize(feed->known, capacity * sizeof *bigger);

        feed->known = bigger;
        feed->known_capacity = capacity;
    }
    feed->known[feed->known_count++] = *known;
}

static void group_of(struct history_feed *feed, const struct mt_block_life *life,
                     struct mt_history_group *group)
{
    bool in_phase = life->phase >= 0 && (uint32_t)life->phase < feed->phase_count;
    struct known fresh = {.origin = {.stack = life->stack,
                                     .tied = life->tied,
                                     .phase_name = in_phase ? feed->phase_names[life->phase] : 0,
                                     .stream = life->stream,
                                     .tag = life->tag,
                                     .pool = life->pool,
                                     .role = life->role,
                                     .tie = life->tie,
                                     .initial = life->birth_event < feed->attribution.first_event}};
    uint64_t key = hash(&fresh.origin);

    for (;; key++) {
        uint32_t found = mt_map_get(&feed->ids, key);

        if (found == MT_MAP_NONE)
            break;
        *group = feed->known[found].group;
        if (is_same(&feed->known[found].origin, &fresh.origin))
            return;
    }
    describe(feed, life, &fresh.group);
    *group = fresh.group;
    remember(feed, &fresh);
    mt_map_put(&feed->ids, key, feed->known_count - 1);
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

static int by_event(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
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
    qsort(centers, count, sizeof *centers, by_event);
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

/* The ends of all steps, and of all phases, if there are few enough. */
static void choose_cuts(struct history_feed *feed, const struct mt_analysis *analysis)
{
    uint64_t *events =
        mt_arena_array(&analysis->report->arena, (size_t)2 * MT_HISTORY_CUTS, sizeof *events);
    const uint32_t most = MT_HISTORY_CUTS / feed->share;
    uint32_t count = add_cuts(analysis, true, events), more;

    if (count > most)
        return;
    more = add_cuts(analysis, false, events + count);
    if (more <= most - count)
        count += more;
    qsort(events, count, sizeof *events, by_event);
    mt_history_set_cuts(feed->builder, events, count);
}

static void prepare(struct history_feed *feed, struct mt_analysis *analysis, uint32_t slot)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct mt_arena *arena = &analysis->report->arena;
    struct mt_timeline axis = {.first_event = device->first_event,
                               .last_event = mt_model_end(analysis, slot).event};
    const struct mt_report *report = analysis->report;

    feed->symbols = &analysis->source->symbols;
    feed->share = (uint32_t)mt_min_u64(analysis->survey.device_count, MT_HISTORY_SHARES);
    mt_attribution_init(&feed->attribution, arena, &analysis->source->symbols,
                        &analysis->survey.phases);
    feed->attribution.has_stacks = analysis->source->header.has_stacks;
    feed->attribution.names_operations = mt_header_names_operations(&analysis->source->header);
    feed->attribution.first_event = analysis->survey.first_event;
    name_phases(feed);
    mt_timeline_spans(arena, device->first_t_ns, mt_model_end(analysis, slot).t_ns, device->gaps,
                      device->gap_count, analysis->survey.phases.phases,
                      analysis->survey.phases.count, &axis.spans, &axis.span_count);
    mt_history_builder_new(arena, &analysis->source->symbols, &axis,
                           mt_is_shown_by_event(report, mt_report_device(report, device->device)),
                           &device->start, &feed->builder);
    choose_windows(feed, device);
    choose_cuts(feed, analysis);
}

static void release(void *context)
{
    struct history_feed *feed = context;

    if (!feed)
        return;
    mt_attribution_release(&feed->attribution);
    mt_history_builder_release(feed->builder);
    mt_map_release(&feed->ids);
    free(feed->phase_names);
    free(feed->known);
    free(feed);
}

static void on_birth(void *context, const struct mt_block_life *life)
{
    struct history_feed *feed = context;
    struct mt_history_group group;

    group_of(feed, life, &group);
    group.block_bytes = life->block_bytes;
    mt_history_birth(feed->builder, life->block, &group, life->block_bytes,
                     life->birth_event < feed->attribution.first_event);
}

static void on_end(void *context, const struct mt_block_life *life, struct mt_block_end end)
{
    struct history_feed *feed = context;

    if (end.event != UINT64_MAX)
        mt_history_death(feed->builder, life->block, life->block_bytes,
                         end.event < feed->attribution.first_event);
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
                                   .on_state = on_state,
                                   .until_event = mt_model_end(analysis, slot).event,
                                   .release = release};
    return MT_OK;
}

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct history_feed *feed = context;
    const uint32_t share = feed->share;

    (void)analysis;
    mt_history_finish(feed->builder, &out->history);
    mt_history_reduce(out->history, MT_HISTORY_GROUPS / share, MT_HISTORY_CHANGES / share);
    return MT_OK;
}

const struct mt_model_ops mt_model_history = {.begin = begin, .finish = finish};
