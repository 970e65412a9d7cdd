#include "choose_wanted.h"

#include "analysis.h"
#include "findings.h"
#include "models.h"
#include "process_memory.h"
#include "util.h"

#include <stdlib.h>

/* Limits all snapshots together to this many rows. */
#define MAX_SNAPSHOT_ROWS 2000000

static void want(struct mt_holders *holders, uint64_t event, uint16_t device)
{
    if (event != MT_INSTANT_NOTHING)
        holders->snapshots[holders->snapshot_count++] =
            (struct mt_snapshot){.event = event, .device = device};
}

static void want_for_models(struct mt_analysis *analysis, uint32_t slot)
{
    uint64_t events[MT_MODEL_COUNT];
    uint32_t count = mt_models_snapshot_events(analysis, slot, events);

    for (uint32_t i = 0; i < count; i++)
        want(&analysis->holders, events[i], analysis->survey.devices[slot].device);
}

static void drop_duplicates(struct mt_holders *holders)
{
    uint32_t kept = 0;

    qsort(holders->snapshots, holders->snapshot_count, sizeof *holders->snapshots,
          mt_snapshot_order);
    for (uint32_t i = 0; i < holders->snapshot_count; i++)
        if (!kept || mt_snapshot_order(&holders->snapshots[kept - 1], &holders->snapshots[i]))
            holders->snapshots[kept++] = holders->snapshots[i];
    holders->snapshot_count = kept;
}

/* For a question only the allocated peak and the instant itself. */
static void want_answer(struct mt_analysis *analysis, uint32_t slot)
{
    struct mt_instants *chosen = &analysis->instants[slot];
    struct mt_answer *answer = &analysis->answers[slot];

    chosen->instant_count = 1;
    chosen->explanation_count = 0;
    mt_question_resolve(&analysis->watch, &analysis->survey, slot, answer);
    if (!answer->missing)
        want(&analysis->holders, answer->instant.event, analysis->survey.devices[slot].device);
}

/* Fewer instants and explanations for a device with very many live blocks. */
static void shorten(struct mt_instants *chosen, const struct mt_survey_device *device)
{
    uint64_t most = MAX_SNAPSHOT_ROWS / (device->live_blocks_peak + 1);

    if (most < 8)
        most = 8;
    if (chosen->instant_count > most)
        chosen->instant_count = (uint32_t)most;
    if (chosen->explanation_count > most / 2)
        chosen->explanation_count = (uint32_t)(most / 2);
}

static void watch_idle(struct mt_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->survey.device_count; i++)
        mt_idle_choose(&analysis->holders.devices[i].idle, &analysis->survey,
                       &analysis->survey.devices[i], analysis->is_main);
}

static void choose_instants(struct mt_analysis *analysis)
{
    struct mt_survey *survey = &analysis->survey;
    struct mt_holders *holders = &analysis->holders;
    struct mt_arena *arena = &analysis->report->arena;
    size_t most = (size_t)survey->device_count *
                  (MT_ARRAY_LEN(analysis->instants->instants) +
                   2 * MT_ARRAY_LEN(analysis->instants->explanations) + MT_MODEL_COUNT + 1);

    if (analysis->options->question)
        analysis->answers =
            mt_arena_array(arena, (size_t)survey->device_count + 1, sizeof *analysis->answers);
    analysis->instants =
        mt_memory_zeroed((size_t)survey->device_count + 1, sizeof *analysis->instants);
    holders->snapshots = mt_arena_array(arena, most + 1, sizeof *holders->snapshots);
    mt_main_phases(arena, &survey->phases, &analysis->is_main);
    if (!analysis->options->question)
        watch_idle(analysis);
    for (uint32_t i = 0; i < survey->device_count; i++) {
        struct mt_instants *chosen = &analysis->instants[i];

        mt_instants_choose(chosen, survey, &survey->devices[i], analysis->is_main);
        shorten(chosen, &survey->devices[i]);
        if (analysis->answers)
            want_answer(analysis, i);
        want_for_models(analysis, i);
        for (uint32_t j = 0; j < chosen->instant_count; j++)
            want(holders, chosen->instants[j].event, survey->devices[i].device);
        for (uint32_t j = 0; j < chosen->explanation_count; j++) {
            want(holders, chosen->from_events[j], survey->devices[i].device);
            want(holders, chosen->to_events[j], survey->devices[i].device);
        }
        if (holders->devices[i].pins.wanted)
            want(holders, holders->devices[i].pins.event, survey->devices[i].device);
    }
    drop_duplicates(holders);
}

enum mt_status mt_choose_wanted(struct mt_analysis *analysis)
{
    struct mt_holders *holders = &analysis->holders;
    enum mt_status status = MT_OK;

    holders->arena = &analysis->report->arena;
    holders->survey = &analysis->survey;
    holders->devices =
        mt_memory_zeroed((size_t)analysis->survey.device_count + 1, sizeof *holders->devices);
    if (!analysis->options->question && !analysis->options->no_findings)
        mt_findings_begin(analysis);
    choose_instants(analysis);
    for (uint32_t i = 0; i < analysis->survey.device_count && !status; i++)
        status = mt_models_begin(analysis, i, &holders->devices[i].models);
    return status;
}
