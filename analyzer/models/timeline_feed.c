/* The timeline, fed by the state after each event; its layers by the blocks. */
#include "analysis.h"
#include "layers_model.h"
#include "model_ops.h"
#include "model_window.h"
#include "timeline_model.h"

struct timeline_feed {
    struct mt_timeline_builder *builder;
    struct mt_layers_builder *layers; /* NULL: by role */
    bool begun;                       /* the first event of the recorded history has passed */
};

static void on_state(void *context, const struct mt_model_state *state)
{
    struct timeline_feed *feed = context;

    bool initial = state->event->flags & MT_EVENT_INITIAL;

    if (!initial)
        mt_timeline_builder_add(feed->builder, state->event->t_ns, state->event->seq, state->now,
                                state->role_bytes);
    else if (!feed->begun)
        mt_timeline_builder_start(feed->builder, state->event->seq, state->now, state->role_bytes);
    feed->begun |= !initial;
}

static void on_birth(void *context, const struct mt_block_life *life)
{
    mt_layers_birth(((struct timeline_feed *)context)->layers, life);
}

static void on_end(void *context, const struct mt_block_life *life)
{
    mt_layers_end(((struct timeline_feed *)context)->layers, life);
}

static void release(void *context)
{
    if (context)
        mt_layers_release(((struct timeline_feed *)context)->layers);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct mt_arena *arena = &analysis->report->arena;
    struct timeline_feed *made = mt_arena_alloc(arena, sizeof *made);
    struct mt_span *spans;
    uint32_t span_count;

    *feed = (struct mt_model_feed){.builder = made, .on_state = on_state, .release = release};
    mt_timeline_spans(arena, device->first_t_ns, device->last_t_ns, device->gaps, device->gap_count,
                      analysis->survey.phases.phases, analysis->survey.phases.count, &spans,
                      &span_count);
    mt_timeline_builder_new(arena, spans, span_count, device->first_event, device->last_event,
                            mt_model_bins(analysis), &made->builder);
    if (analysis->options->layer_by == MT_LAYERS_BY_ROLE)
        return MT_OK;
    feed->on_birth = on_birth;
    feed->on_end = on_end;
    mt_layers_builder_new(analysis, &made->layers);
    mt_timeline_builder_follow(made->builder, made->layers);
    return MT_OK;
}

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
