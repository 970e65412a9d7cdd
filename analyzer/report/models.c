#include "models.h"

#include "analysis.h"
#include "flamechart_model.h"
#include "layers_model.h"
#include "model_feeds.h"
#include "history_model.h"
#include "population.h"
#include "timeline_model.h"
#include "util.h"

#define DEFAULT_BINS 4096

static uint32_t bins_of(const struct mt_analysis *analysis)
{
    return analysis->options->bins ? analysis->options->bins : DEFAULT_BINS;
}

/* ---- windows --------------------------------------------------------------- */

/* Of several phases of that path the one with the largest peak, the first of equal
 * ones; MT_NO_PHASE without any. */
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

struct mt_model_window mt_model_window(const struct mt_analysis *analysis, uint32_t slot)
{
    const struct mt_window_wish *wish = &analysis->options->window;
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct mt_model_window window = {.begin_t_ns = device->first_t_ns,
                                     .end_t_ns = device->last_t_ns,
                                     .begin_event = device->first_event,
                                     .end_event = device->last_event,
                                     .step = MT_NO_STEP,
                                     .phase = MT_NO_PHASE};
    int64_t step = wish->has_step ? wish->step : analysis->plans[slot].instants[0].step;
    const struct mt_phase *phase;

    if (wish->phase)
        window.phase = find_phase(&analysis->survey, slot, wish->phase);
    else if (!wish->whole && step != MT_NO_STEP)
        window.phase = find_step(&analysis->survey.phases, step);
    window.missing =
        window.phase == MT_NO_PHASE && (wish->phase || (wish->has_step && !wish->whole));
    if (window.phase == MT_NO_PHASE)
        return window;
    phase = &analysis->survey.phases.phases[window.phase];
    window.begin_t_ns = phase->begin_t_ns;
    window.end_t_ns = phase->end_t_ns;
    window.begin_event = phase->begin_event;
    window.end_event = phase->end_event;
    window.step = phase->step;
    return window;
}

/* ---- timeline ---------------------------------------------------------------- */

struct timeline_feed {
    struct mt_timeline_builder *builder;
    struct mt_layers_builder *layers; /* NULL: by role */
    bool begun;                       /* the first event of the recorded history was seen */
};

static enum mt_status feed_timeline(void *context, const struct mt_model_state *state)
{
    struct timeline_feed *feed = context;

    bool initial = state->event->flags & MT_EVENT_INITIAL;

    if (!initial)
        mt_timeline_builder_add(feed->builder, state->event->t_ns, state->event->seq, state->now,
                                state->role_bytes);
    else if (!feed->begun)
        mt_timeline_builder_start(feed->builder, state->event->seq, state->now, state->role_bytes);
    feed->begun |= !initial;
    return MT_OK;
}

static enum mt_status feed_birth(void *context, const struct mt_block_life *life)
{
    return mt_layers_birth(((struct timeline_feed *)context)->layers, life);
}

static enum mt_status feed_end(void *context, const struct mt_block_life *life)
{
    return mt_layers_end(((struct timeline_feed *)context)->layers, life);
}

static void release_timeline(void *context)
{
    if (context)
        mt_layers_release(((struct timeline_feed *)context)->layers);
}

static enum mt_status begin_timeline(struct mt_analysis *analysis, uint32_t slot,
                                     struct mt_model_feed *feed)
{
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct mt_arena *arena = &analysis->report->arena;
    struct timeline_feed *made = mt_arena_alloc(arena, sizeof *made);
    struct mt_span *spans;
    uint32_t span_count;
    enum mt_status status;

    *feed = (struct mt_model_feed){
        .builder = made, .on_state = feed_timeline, .release = release_timeline};
    if (!made)
        return MT_ERR_MEMORY;
    status = mt_timeline_spans(arena, device->first_t_ns, device->last_t_ns, device->gaps,
                               device->gap_count, analysis->survey.phases.phases,
                               analysis->survey.phases.count, &spans, &span_count);
    if (!status)
        status = mt_timeline_builder_new(arena, spans, span_count, device->first_event,
                                         device->last_event, bins_of(analysis), &made->builder);
    if (status || analysis->options->layer_by == MT_LAYERS_BY_ROLE)
        return status;
    feed->on_birth = feed_birth;
    feed->on_end = feed_end;
    status = mt_layers_builder_new(analysis, &made->layers);
    if (!status)
        mt_timeline_builder_follow(made->builder, made->layers);
    return status;
}

static enum mt_status finish_timeline(struct mt_analysis *analysis, void *context,
                                      struct mt_device_report *out)
{
    struct timeline_feed *feed = context;
    struct mt_layers *layers = NULL;
    enum mt_status status = MT_OK;

    (void)analysis;
    out->timeline = mt_timeline_builder_finish(feed->builder);
    if (feed->layers)
        status = mt_layers_finish(feed->layers, out->timeline, out->allocated_peak.event, &layers);
    out->timeline->layers = layers;
    return status;
}

/* ---- flame chart ------------------------------------------------------------- */

static enum mt_status feed_flamechart(void *builder, const struct mt_model_state *state)
{
    const struct mt_event *event = state->event;
    uint64_t allocated = state->now->allocated;

    if (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_FREE_REQUESTED)
        return MT_OK;
    return mt_flamechart_builder_add(builder, event, state->phase,
                                     (int64_t)(allocated - state->allocated_before), allocated);
}

static enum mt_status begin_flamechart(struct mt_analysis *analysis, uint32_t slot,
                                       struct mt_model_feed *feed)
{
    struct mt_model_window part = mt_model_window(analysis, slot);
    const struct mt_phase *zoom =
        part.phase == MT_NO_PHASE || analysis->report->phases[part.phase].is_step
            ? NULL
            : &analysis->report->phases[part.phase];
    struct mt_flamechart_window window = {
        part.begin_t_ns,   part.end_t_ns, part.begin_event, part.end_event, part.step,
        bins_of(analysis), zoom};
    struct mt_flamechart_builder *builder = NULL;
    enum mt_status status;

    status = mt_flamechart_builder_new(&analysis->report->arena, &window, analysis->report->phases,
                                       analysis->report->phase_count, &analysis->source->symbols,
                                       &builder);
    *feed = (struct mt_model_feed){.builder = builder, .on_state = feed_flamechart};
    return status;
}

static enum mt_status finish_flamechart(struct mt_analysis *analysis, void *builder,
                                        struct mt_device_report *out)
{
    (void)analysis;
    return mt_flamechart_builder_finish(builder, &out->flamechart);
}

/* ---- history ----------------------------------------------------------------- */

static enum mt_status begin_history(struct mt_analysis *analysis, uint32_t slot,
                                    struct mt_model_feed *feed)
{
    struct mt_history_feed *builder = NULL;
    enum mt_status status = mt_history_feed_new(analysis, slot, &builder);

    *feed = (struct mt_model_feed){.builder = builder,
                                   .on_birth = mt_history_feed_birth,
                                   .on_end = mt_history_feed_end,
                                   .on_state = mt_history_feed_state,
                                   .release = mt_history_feed_release};
    return status;
}

static enum mt_status finish_history(struct mt_analysis *analysis, void *builder,
                                     struct mt_device_report *out)
{
    (void)analysis;
    return mt_history_feed_finish(builder, &out->history);
}

/* ---- all of them --------------------------------------------------------------- */

static const struct {
    unsigned bit;
    enum mt_status (*begin)(struct mt_analysis *analysis, uint32_t slot,
                            struct mt_model_feed *feed);
    enum mt_status (*finish)(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out);
} models[] = {
    {MT_MODEL_TIMELINE, begin_timeline, finish_timeline},
    {MT_MODEL_FLAMECHART, begin_flamechart, finish_flamechart},
    {MT_MODEL_BLOCKS, mt_blocks_feed_begin, mt_blocks_feed_finish},
    {MT_MODEL_LIFETIMES, mt_lifetimes_feed_begin, mt_lifetimes_feed_finish},
    {MT_MODEL_HISTORY, begin_history, finish_history},
    {MT_MODEL_POPULATION, mt_population_begin, mt_population_finish},
    {MT_MODEL_ADDRESS, mt_address_feed_begin, mt_address_feed_finish},
};

_Static_assert(MT_ARRAY_LEN(models) <= MT_MODELS_MAX, "a feed for each model");

enum mt_status mt_models_begin(struct mt_analysis *analysis, uint32_t slot,
                               struct mt_model_feeds *feeds)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < MT_ARRAY_LEN(models) && !status; i++) {
        struct mt_model_feed *feed = &feeds->feeds[feeds->count];

        if (!(analysis->options->models & models[i].bit))
            continue;
        *feed = (struct mt_model_feed){0};
        status = models[i].begin(analysis, slot, feed);
        if (!feed->builder)
            continue; /* it has nothing to say of this device */
        feeds->wants_lives |= feed->on_birth || feed->on_end;
        feeds->rows[feeds->count++] = (uint8_t)i;
    }
    return status;
}

enum mt_status mt_models_finish(struct mt_analysis *analysis, struct mt_model_feeds *feeds,
                                struct mt_device_report *out)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < feeds->count && !status; i++)
        status = models[feeds->rows[i]].finish(analysis, feeds->feeds[i].builder, out);
    return status;
}

void mt_models_release(struct mt_model_feeds *feeds)
{
    for (uint32_t i = 0; i < feeds->count; i++)
        if (feeds->feeds[i].release)
            feeds->feeds[i].release(feeds->feeds[i].builder);
    feeds->count = 0;
}
