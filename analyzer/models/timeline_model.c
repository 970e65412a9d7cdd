/* One streaming pass. Each axis walks along its bins: leaving a bin closes it and opens the next
 * ones with the current state. So a bin without events still shows what was alive, and every event
 * costs O(1). */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "analysis.h"
#include "arena.h"
#include "counters.h"
#include "layers_model.h"
#include "model_feed.h"
#include "report.h"
#include "timeline_model.h"
#include "util.h"

#define DEFAULT_BINS 4096

uint32_t mt_model_bins(const struct mt_analysis *analysis)
{
    return analysis->options->bins ? analysis->options->bins : DEFAULT_BINS;
}

/* Among several phases of that path, the one with the largest peak, the first among equals;
 * MT_NO_PHASE without any. */
static int32_t find_phase(const struct mt_survey *survey, uint32_t slot, const char *path)
{
    const struct mt_survey_device *device = &survey->devices[slot];
    int32_t found = MT_NO_PHASE;

    for (uint32_t i = 0; i < survey->phases.count; i++) {
        const struct mt_phase *phase = &survey->phases.phases[i];

        if (!mt_phase_path_matches(phase->path, path) || phase->end_event < device->first_event)
            continue;
        if (found == MT_NO_PHASE ||
            device->uses[i].peak.allocated > device->uses[found].peak.allocated)
            found = (int32_t)i;
    }
    return found;
}

static int32_t find_step(const struct mt_phases *phases, int64_t step)
{
    for (uint32_t i = 0; i < phases->count; i++)
        if (phases->phases[i].is_step && phases->phases[i].step == step)
            return (int32_t)i;
    return MT_NO_PHASE;
}

struct mt_shown_end mt_model_end(const struct mt_analysis *analysis, uint32_t slot)
{
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    const struct mt_shown_end all = {device->last_t_ns, device->last_event, false};

    return mt_shown_end(device->oom_list, device->oom_count, device->first_event, all);
}

struct mt_model_window mt_model_window(const struct mt_analysis *analysis, uint32_t slot)
{
    const struct mt_window_request *request = &analysis->options->window;
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    const struct mt_shown_end end = mt_model_end(analysis, slot);
    struct mt_model_window window = {.begin_t_ns = device->first_t_ns,
                                     .end_t_ns = end.t_ns,
                                     .begin_event = device->first_event,
                                     .end_event = end.event,
                                     .step = MT_NO_STEP,
                                     .phase = MT_NO_PHASE};
    int64_t step = request->has_step ? request->step : analysis->instants[slot].instants[0].step;

    if (request->phase)
        window.phase = find_phase(&analysis->survey, slot, request->phase);
    else if (!request->whole && step != MT_NO_STEP)
        window.phase = find_step(&analysis->survey.phases, step);
    window.missing =
        window.phase == MT_NO_PHASE && (request->phase || (request->has_step && !request->whole));
    if (window.phase == MT_NO_PHASE)
        return window;
    const struct mt_phase *phase = &analysis->survey.phases.phases[window.phase];
    window.begin_t_ns = phase->begin_t_ns;
    window.end_t_ns = phase->end_t_ns;
    window.begin_event = phase->begin_event;
    window.end_event = phase->end_event;
    if (end.is_cut && end.event < window.end_event && end.event > window.begin_event) {
        window.end_t_ns = mt_max_u64(end.t_ns, window.begin_t_ns);
        window.end_event = end.event;
    }
    window.step = phase->step;
    return window;
}

struct mt_layers_builder; /* layers_model.h */

#define MAX_FOLDS 6
/* A gap is folded if it is this share of the drawn time: less would hardly save room, as the fold
 * itself takes some. Inside of a phase a pause is work without memory changes, so the share is
 * larger. */
#define FOLD_SHARE          0.1
#define FOLD_SHARE_IN_PHASE 0.3
#define PAD_SHARE           0.006 /* part of a folded gap that stays on either side */
#define MAX_BINS            65536u

/* Bins along one axis; they divide `length`. */
struct axis {
    struct mt_bin *bins;
    uint32_t count, at;
    uint64_t length;
    uint64_t end;                     /* of bin `at`, along the axis */
    struct mt_layers_builder *layers; /* layers that follow the bins, or NULL */
    int number;                       /* the number of this axis for the layers */
};

struct mt_timeline_builder {
    struct mt_timeline *timeline;
    struct axis time, event;
    struct mt_bin state;  /* as of the last event */
    uint32_t span;        /* that the last event was in */
    uint64_t span_offset; /* busy time before it */
};

struct timeline_feed {
    struct mt_timeline_builder *builder;
    struct mt_layers_builder *layers; /* NULL: by role */
    bool begun;                       /* the first event of the recorded history has passed */
};

static void set_state(struct mt_bin *state, uint64_t event, const struct mt_bytes *bytes,
                      const uint64_t *role_bytes)
{
    state->event = event;
    memcpy(state->role_bytes, role_bytes, sizeof state->role_bytes);
    state->allocated = state->allocated_min = bytes->allocated;
    state->requested = bytes->requested;
    state->active = bytes->active;
    state->reserved_max = bytes->reserved;
}

/* Sets the state at the start of the history, with which the bins start. Call it before the first
 * event. If it is called repeatedly, the last call counts. */
static void timeline_builder_start(struct mt_timeline_builder *builder, uint64_t event,
                                   const struct mt_bytes *bytes, const uint64_t *role_bytes)
{
    struct mt_layers_builder *layers = builder->time.layers;

    set_state(&builder->state, event, bytes, role_bytes);
    builder->time.bins[0] = builder->event.bins[0] = builder->state;
    if (!layers)
        return;
    mt_layers_happen(layers);
    mt_layers_keep(layers, builder->time.number);
    mt_layers_keep(layers, builder->event.number);
}

static void on_state(void *context, const struct mt_model_state *state)
{
    struct timeline_feed *feed = context;

    bool initial = state->event->flags & MT_EVENT_INITIAL;

    if (!initial)
        mt_timeline_builder_add(feed->builder, state->event->t_ns, state->event->seq, state->now,
                                state->role_bytes);
    else if (!feed->begun)
        timeline_builder_start(feed->builder, state->event->seq, state->now, state->role_bytes);
    feed->begun |= !initial;
}

static void release(void *context)
{
    if (context)
        mt_layers_release(((struct timeline_feed *)context)->layers);
}

static void on_birth(void *context, const struct mt_block_life *life)
{
    mt_layers_birth(((struct timeline_feed *)context)->layers, life);
}

static void on_end(void *context, const struct mt_block_life *life, struct mt_block_end end)
{
    mt_layers_end(((struct timeline_feed *)context)->layers, life, end.event);
}

/* Before the first event: sets the layers that follow each bin. */
static void timeline_builder_follow(struct mt_timeline_builder *builder,
                                    struct mt_layers_builder *layers)
{
    builder->time.layers = builder->event.layers = layers;
    builder->time.number = MT_LAYERS_TIME;
    builder->event.number = MT_LAYERS_EVENTS;
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    const struct mt_shown_end end = mt_model_end(analysis, slot);
    struct mt_arena *arena = &analysis->report->arena;
    struct timeline_feed *made = mt_arena_alloc(arena, sizeof *made);
    struct mt_span *spans;
    uint32_t span_count;

    *feed = (struct mt_model_feed){
        .builder = made, .on_state = on_state, .release = release, .until_event = end.event};
    mt_timeline_spans(arena, device->first_t_ns, end.t_ns, device->gaps, device->gap_count,
                      analysis->survey.phases.phases, analysis->survey.phases.count, &spans,
                      &span_count);
    mt_timeline_builder_new(arena, spans, span_count, device->first_event, end.event,
                            mt_model_bins(analysis), &made->builder);
    if (analysis->options->layer_by == MT_LAYERS_BY_ROLE) {
        feed->is_alone = analysis->options->models & MT_MODEL_BLOCKS; /* joins its relay */
        return MT_OK;
    }
    feed->on_birth = on_birth;
    feed->on_end = on_end;
    mt_layers_builder_new(analysis, &made->layers);
    timeline_builder_follow(made->builder, made->layers);
    return MT_OK;
}

/* Minimum share for folding a gap; above 1 = never, because it contains the start or end of a
 * phase. */
static double fold_share(const struct mt_gap *gap, const struct mt_phase *phases,
                         size_t phase_count)
{
    double share = FOLD_SHARE;

    for (size_t i = 0; i < phase_count; i++) {
        uint64_t begin = phases[i].begin_t_ns, end = phases[i].end_t_ns;

        if ((begin > gap->begin_t_ns && begin < gap->end_t_ns) ||
            (end > gap->begin_t_ns && end < gap->end_t_ns))
            return 2;
        if (!phases[i].is_step && begin <= gap->begin_t_ns && end >= gap->end_t_ns)
            share = FOLD_SHARE_IN_PHASE;
    }
    return share;
}

static uint64_t gap_length(const struct mt_gap *gap, uint64_t first_t_ns, uint64_t last_t_ns)
{
    uint64_t begin = mt_max_u64(gap->begin_t_ns, first_t_ns);
    uint64_t end = mt_min_u64(gap->end_t_ns, last_t_ns);

    return end > begin ? end - begin : 0;
}

/* Marks the longest gaps, as long as they are long compared with the remaining time. Returns that
 * time. */
static uint64_t choose_folds(const struct mt_gap *gaps, size_t gap_count, bool *looked_at,
                             bool *folded, uint64_t first_t_ns, uint64_t last_t_ns,
                             const struct mt_phase *phases, size_t phase_count)
{
    uint64_t busy = last_t_ns - first_t_ns;
    unsigned folds = 0;

    while (folds < MAX_FOLDS) {
        uint64_t longest = 0;
        size_t best = 0;

        for (size_t i = 0; i < gap_count; i++) {
            uint64_t length = looked_at[i] ? 0 : gap_length(&gaps[i], first_t_ns, last_t_ns);
            if (length > longest) {
                longest = length;
                best = i;
            }
        }
        if (!longest || (double)longest <= FOLD_SHARE * (double)busy)
            break;
        looked_at[best] = true;
        if ((double)longest <= fold_share(&gaps[best], phases, phase_count) * (double)busy)
            continue;
        folded[best] = true;
        busy -= longest;
        folds++;
    }
    return busy;
}

void mt_timeline_spans(struct mt_arena *arena, uint64_t first_t_ns, uint64_t last_t_ns,
                       const struct mt_gap *gaps, size_t gap_count, const struct mt_phase *phases,
                       size_t phase_count, struct mt_span **spans, uint32_t *span_count)
{
    struct mt_span *list = mt_arena_array(arena, MAX_FOLDS + 1, sizeof *list);
    bool *flags = mt_arena_array(arena, gap_count ? gap_count : 1, 2 * sizeof *flags);
    uint32_t count = 1;

    if (last_t_ns < first_t_ns)
        last_t_ns = first_t_ns;
    uint64_t busy = choose_folds(gaps, gap_count, flags, flags + gap_count, first_t_ns, last_t_ns,
                                 phases, phase_count);
    uint64_t pad = (uint64_t)(PAD_SHARE * (double)busy);
    list[0].begin_t_ns = first_t_ns;
    for (size_t i = 0; i < gap_count; i++) {
        uint64_t begin = mt_max_u64(gaps[i].begin_t_ns, first_t_ns);
        uint64_t margin = mt_min_u64(pad, gap_length(&gaps[i], first_t_ns, last_t_ns) / 4);

        if (!flags[gap_count + i])
            continue;
        list[count - 1].end_t_ns = begin + margin;
        list[count++].begin_t_ns = mt_min_u64(gaps[i].end_t_ns, last_t_ns) - margin;
    }
    list[count - 1].end_t_ns = last_t_ns;
    *spans = list;
    *span_count = count;
}

/* Time drawn before t; times in a gap count as its edge. */
static uint64_t busy_before(const struct mt_span *spans, uint32_t count, uint64_t t_ns)
{
    uint64_t busy = 0;

    for (uint32_t i = 0; i < count && t_ns > spans[i].begin_t_ns; i++)
        busy += mt_min_u64(t_ns, spans[i].end_t_ns) - spans[i].begin_t_ns;
    return busy;
}

uint64_t mt_timeline_busy(const struct mt_span *spans, uint32_t span_count)
{
    return busy_before(spans, span_count, UINT64_MAX);
}

double mt_timeline_position(const struct mt_timeline *timeline, uint64_t t_ns)
{
    if (!timeline->busy_ns)
        return 0;
    uint64_t before = busy_before(timeline->spans, timeline->span_count, t_ns);
    return (double)before / (double)timeline->busy_ns;
}

/* The first whole position after bin `at`. */
static void set_end(struct axis *axis)
{
    double next = (double)axis->at + 1;

    axis->end = axis->at + 1 >= axis->count
                    ? UINT64_MAX
                    : (uint64_t)ceil(next * ((double)axis->length / axis->count));
}

static void axis_init(struct axis *axis, struct mt_arena *arena, uint32_t count, uint64_t length,
                      const struct mt_bin *start)
{
    axis->bins = mt_arena_array(arena, count, sizeof *axis->bins);
    axis->bins[0] = *start;
    axis->count = count;
    axis->length = mt_max_u64(length, 1);
    set_end(axis);
}

/* Closes bins up to that of `place`; new ones start with `state`. */
static void axis_advance(struct axis *axis, uint64_t place, const struct mt_bin *state)
{
    while (place >= axis->end) {
        axis->at++;
        axis->bins[axis->at] = *state;
        if (axis->layers)
            mt_layers_next_bin(axis->layers, axis->number);
        set_end(axis);
    }
}

static void axis_add(struct axis *axis, const struct mt_bin *state)
{
    struct mt_bin *bin = &axis->bins[axis->at];
    uint64_t reserved_max = mt_max_u64(bin->reserved_max, state->reserved_max);
    uint64_t allocated_min = mt_min_u64(bin->allocated_min, state->allocated_min);

    if (state->allocated > bin->allocated) {
        *bin = *state;
        if (axis->layers)
            mt_layers_keep(axis->layers, axis->number);
    }
    bin->reserved_max = reserved_max;
    bin->allocated_min = allocated_min;
}

void mt_timeline_builder_new(struct mt_arena *arena, struct mt_span *spans, uint32_t span_count,
                             uint64_t first_event, uint64_t last_event, uint32_t bin_count,
                             struct mt_timeline_builder **builder)
{
    struct mt_timeline_builder *made = mt_arena_alloc(arena, sizeof *made);
    struct mt_timeline *timeline = mt_arena_alloc(arena, sizeof *timeline);

    bin_count = bin_count < 1 ? 1 : bin_count > MAX_BINS ? MAX_BINS : bin_count;
    timeline->spans = spans;
    timeline->span_count = span_count;
    timeline->bin_count = bin_count;
    timeline->busy_ns = mt_timeline_busy(spans, span_count);
    timeline->first_event = first_event;
    timeline->last_event = mt_max_u64(first_event, last_event);
    made->timeline = timeline;
    made->state.event = first_event;
    made->state.t_ns = span_count ? spans[0].begin_t_ns : 0;
    *builder = made;
    axis_init(&made->time, arena, bin_count, timeline->busy_ns, &made->state);
    axis_init(&made->event, arena, bin_count, timeline->last_event - first_event + 1, &made->state);
}

static uint64_t time_offset(struct mt_timeline_builder *builder, uint64_t t_ns)
{
    const struct mt_timeline *timeline = builder->timeline;
    const struct mt_span *span;

    while (builder->span + 1 < timeline->span_count &&
           t_ns >= timeline->spans[builder->span + 1].begin_t_ns) {
        span = &timeline->spans[builder->span++];
        builder->span_offset += span->end_t_ns - span->begin_t_ns;
    }
    if (builder->span >= timeline->span_count)
        return 0;
    span = &timeline->spans[builder->span];
    t_ns = mt_min_u64(mt_max_u64(t_ns, span->begin_t_ns), span->end_t_ns);
    return builder->span_offset + (t_ns - span->begin_t_ns);
}

void mt_timeline_builder_add(struct mt_timeline_builder *builder, uint64_t t_ns, uint64_t event,
                             const struct mt_bytes *bytes, const uint64_t *role_bytes)
{
    uint64_t first = builder->timeline->first_event;
    uint64_t place = mt_min_u64(event, builder->timeline->last_event);
    struct mt_bin *state = &builder->state;

    axis_advance(&builder->time, time_offset(builder, t_ns), state);
    axis_advance(&builder->event, place > first ? place - first : 0, state);
    if (builder->time.layers)
        mt_layers_happen(builder->time.layers);
    state->t_ns = t_ns;
    set_state(state, event, bytes, role_bytes);
    axis_add(&builder->time, state);
    axis_add(&builder->event, state);
}

struct mt_timeline *mt_timeline_builder_finish(struct mt_timeline_builder *builder)
{
    axis_advance(&builder->time, UINT64_MAX - 1, &builder->state);
    axis_advance(&builder->event, UINT64_MAX - 1, &builder->state);
    builder->timeline->time_bins = builder->time.bins;
    builder->timeline->event_bins = builder->event.bins;
    return builder->timeline;
}

/* The timeline, fed by the state after each event; its layers by the blocks. */

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct timeline_feed *feed = context;
    struct mt_layers *layers = NULL;

    (void)analysis;
    out->timeline = mt_timeline_builder_finish(feed->builder);
    if (feed->layers)
        mt_layers_finish(feed->layers, out->timeline, out->allocated_peak.event, &layers);
    out->timeline->layers = layers;
    return MT_OK;
}

const struct mt_model_ops mt_model_timeline = {.begin = begin, .finish = finish};

void mt_level_curve_init(struct mt_level_curve *curve, struct mt_arena *arena, uint64_t begin,
                         uint64_t end, uint32_t bins)
{
    memset(curve, 0, sizeof *curve);
    curve->begin = curve->next_position = begin;
    curve->width = end > begin ? end - begin : 1;
    curve->bin_count = bins;
    curve->bins = mt_arena_array(arena, (size_t)bins + 1, sizeof *curve->bins);
}

/* Positions never decrease. Both products fit: bins <= 2^13, and a window of more than 2^51 (26
 * days, in ns) uses coarser units. */
static void curve_enter_bin(struct mt_level_curve *curve, uint64_t position)
{
    unsigned shift = curve->width >> 50 ? 14 : 0;
    uint64_t width = mt_max_u64(curve->width >> shift, 1);
    uint64_t bin = mt_min_u64(((position - curve->begin) >> shift) * curve->bin_count / width,
                              curve->bin_count);

    curve->next_position =
        bin >= curve->bin_count
            ? UINT64_MAX
            : curve->begin +
                  (((bin + 1) * width + curve->bin_count - 1) / curve->bin_count << shift);
    curve->count++;
}

void mt_level_curve_add(struct mt_level_curve *curve, uint64_t position, uint64_t t_ns,
                        uint64_t event, uint64_t level)
{
    bool is_new = position >= curve->next_position && curve->count <= curve->bin_count;

    if (is_new)
        curve_enter_bin(curve, position);
    struct mt_curve_bin *bin = &curve->bins[curve->count - 1];
    if (is_new || level > bin->max) {
        bin->max = level;
        bin->t_ns = t_ns;
        bin->event = event;
    }
    if (is_new || level < bin->min)
        bin->min = level;
    bin->last = level;
    bin->last_t_ns = t_ns;
    bin->last_event = event;
}
