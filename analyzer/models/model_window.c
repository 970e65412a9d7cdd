#include "model_window.h"

#include "analysis.h"

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

struct mt_model_window mt_model_window(const struct mt_analysis *analysis, uint32_t slot)
{
    const struct mt_window_request *request = &analysis->options->window;
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct mt_model_window window = {.begin_t_ns = device->first_t_ns,
                                     .end_t_ns = device->last_t_ns,
                                     .begin_event = device->first_event,
                                     .end_event = device->last_event,
                                     .step = MT_NO_STEP,
                                     .phase = MT_NO_PHASE};
    int64_t step = request->has_step ? request->step : analysis->instants[slot].instants[0].step;
    const struct mt_phase *phase;

    if (request->phase)
        window.phase = find_phase(&analysis->survey, slot, request->phase);
    else if (!request->whole && step != MT_NO_STEP)
        window.phase = find_step(&analysis->survey.phases, step);
    window.missing =
        window.phase == MT_NO_PHASE && (request->phase || (request->has_step && !request->whole));
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
