/* The flame chart, fed by the requests and frees of its window. */
#include "analysis.h"
#include "flamechart_model.h"
#include "model_ops.h"
#include "model_window.h"

static void on_state(void *builder, const struct mt_model_state *state)
{
    const struct mt_event *event = state->event;
    uint64_t allocated = state->now->allocated;

    if (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_FREE_REQUESTED)
        return;
    mt_flamechart_builder_add(builder, event, state->phase,
                              (int64_t)(allocated - state->allocated_before), allocated);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct mt_model_window part = mt_model_window(analysis, slot);
    const struct mt_phase *zoom =
        part.phase == MT_NO_PHASE || analysis->report->phases[part.phase].is_step
            ? NULL
            : &analysis->report->phases[part.phase];
    struct mt_flamechart_window window = {
        part.begin_t_ns,         part.end_t_ns, part.begin_event, part.end_event, part.step,
        mt_model_bins(analysis), zoom};
    struct mt_flamechart_builder *builder = NULL;

    mt_flamechart_builder_new(&analysis->report->arena, &window, analysis->report->phases,
                              analysis->report->phase_count, &analysis->source->symbols, &builder);
    *feed = (struct mt_model_feed){.builder = builder, .on_state = on_state};
    return MT_OK;
}

static enum mt_status finish(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out)
{
    (void)analysis;
    mt_flamechart_builder_finish(builder, &out->flamechart);
    return MT_OK;
}

const struct mt_model_ops mt_model_flamechart = {.begin = begin, .finish = finish};
