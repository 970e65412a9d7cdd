/* Inputs that the model of addresses needs before the pass `blocks`. */
#include "analysis.h"
#include "model_feed.h"

#include "address_model.h"
#include "blocks_model.h"

static void find_steps(const struct mt_analysis *analysis, struct mt_address_options *options)
{
    const struct mt_phases *phases = &analysis->survey.phases;

    options->last_step_event = UINT64_MAX;
    for (uint32_t i = 0; i < phases->count; i++) {
        const struct mt_phase *phase = &phases->phases[i];

        if (!phase->is_step)
            continue;
        if (options->last_step_event == UINT64_MAX)
            options->count_from_t_ns = phase->begin_t_ns;
        options->last_step_event = phase->begin_event;
    }
}

/* Addresses are those of the recorded run, so a what-if replay has none. */
static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];
    const struct mt_shown_end end = mt_model_end(analysis, slot);
    const struct mt_symbols *symbols = &analysis->source->symbols;
    uint64_t total = device->device < symbols->device_count
                         ? symbols->devices[device->device].total_memory_bytes
                         : 0;
    struct mt_address_options options = {
        .reserved_peak_bytes = mt_peak_windows_since(&device->high[MT_HIGH_RESERVED], 0)->value,
        /* PyTorch reserves this much: an eighth more than the device
         * has */
        .reservation_bytes = total + total / 8,
        .rows = analysis->options->bins,
        .columns = analysis->options->bins,
        .blocks = device->events > 1 && (device->allocations || device->frees) ? MT_ADDRESS_BLOCKS
                                                                               : MT_STATE_BLOCKS,
        .first_t_ns = device->first_t_ns,
        .last_t_ns = end.t_ns,
        .first_event = device->first_event,
        .last_event = end.event,
        .count_from_t_ns = device->first_t_ns};
    struct mt_arena *arena = &analysis->report->arena;
    struct mt_address_builder *builder = NULL;
    struct mt_span *spans;

    if (analysis->report->what_if || !options.reserved_peak_bytes ||
        !analysis->source->header.has_segments)
        return MT_OK;
    find_steps(analysis, &options);
    mt_timeline_spans(arena, device->first_t_ns, end.t_ns, device->gaps, device->gap_count,
                      analysis->survey.phases.phases, analysis->survey.phases.count, &spans,
                      &options.span_count);
    options.spans = spans;
    mt_address_builder_new(arena, &options, &builder);
    *feed = (struct mt_model_feed){.builder = builder,
                                   .on_birth = mt_address_builder_birth,
                                   .on_end = mt_address_builder_end,
                                   .on_state = mt_address_builder_state,
                                   .is_alone = true,
                                   .until_event = end.event,
                                   .release = mt_address_builder_release};
    return MT_OK;
}

static enum mt_status finish(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out)
{
    mt_address_builder_finish(builder, &out->address);
    mt_block_words_name(&analysis->attribution, out->address->blocks, out->address->block_count);
    return MT_OK;
}

const struct mt_model_ops mt_model_address = {.begin = begin, .finish = finish};
