/* A trace is read twice: once through the replay, to learn what was when
 * (survey.h), and once to see who held the memory at the instants that turned
 * out to matter (plan.h, holders.h). */
#include "analysis.h"
#include "analyze.h"
#include "check.h"
#include "fill_report.h"
#include "findings.h"
#include "found_phases.h"
#include "heap_choice.h"
#include "ledger_instants.h"
#include "models.h"
#include "oom_answers.h"
#include "replay_as_run.h"
#include "report_check.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CONTRIBUTIONS 8
#define MAX_HOLDERS       12
/* Snapshots are bounded by the rows that they may hold in all. */
#define MAX_SNAPSHOT_ROWS 2000000

/* ---- first reading ------------------------------------------------------- */

static void watch_anew(struct mt_analysis *analysis)
{
    mt_watch_release(&analysis->watch);
    analysis->watch.question = analysis->options->question;
}

static enum mt_status watch_and_survey(void *context, const struct mt_event *event,
                                       const struct mt_replay_view *view)
{
    struct mt_analysis *analysis = context;
    enum mt_status status = mt_watch_event(&analysis->watch, &analysis->survey, event);

    return status ? status : mt_survey_event(&analysis->survey, event, view);
}

static enum mt_status restart(void *context)
{
    struct mt_analysis *analysis = context;

    watch_anew(analysis);
    return mt_survey_restart(&analysis->survey);
}

static enum mt_status replay_as_run(struct mt_analysis *analysis,
                                    const struct mt_replay_observer *observer)
{
    struct mt_arena *arena = &analysis->report->arena;
    char difference[240];
    enum mt_status status;

    status = mt_replay_as_run(analysis->source, &analysis->options->replay, observer,
                              analysis->summary, difference, analysis->error);
    if (!status && *difference)
        analysis->report->pytorch_difference = mt_arena_text(arena, difference, strlen(difference));
    return status;
}

/* Without a wish as the run was. */
static enum mt_status read_once(struct mt_analysis *analysis)
{
    struct mt_replay_options options = analysis->options->replay;
    struct mt_replay_observer observer = {analysis, watch_and_survey, restart};
    enum mt_status status;

    status = mt_heap_view_choose(analysis->source, analysis->error);
    if (!status)
        status = mt_found_phases_lay(analysis->source, analysis->error);
    if (status)
        return status;
    mt_survey_init(&analysis->survey, &analysis->report->arena, analysis->source);
    analysis->survey.progress = analysis->options->progress;
    watch_anew(analysis);
    if (!options.policy)
        return replay_as_run(analysis, &observer);
    options.verify = true;
    return mt_replay_run(analysis->source, &options, &observer, analysis->summary, analysis->error);
}

/* ---- between ------------------------------------------------------------- */

static void want(struct mt_holders *holders, uint64_t event, uint16_t device)
{
    if (event != MT_PLAN_NOTHING)
        holders->snapshots[holders->snapshot_count++] =
            (struct mt_snapshot){.event = event, .device = device};
}

static void want_for_models(struct mt_analysis *analysis, uint32_t slot)
{
    uint64_t events[MT_MODELS_MAX];
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

/* Of a question only the allocated peak, and the instant itself. */
static void plan_answer(struct mt_analysis *analysis, uint32_t slot)
{
    struct mt_plan *plan = &analysis->plans[slot];
    struct mt_answer *answer = &analysis->answers[slot];

    plan->instant_count = 1;
    plan->explanation_count = 0;
    mt_question_resolve(&analysis->watch, &analysis->survey, slot, answer);
    if (!answer->missing)
        want(&analysis->holders, answer->instant.event, analysis->survey.devices[slot].device);
}

/* Fewer instants and explanations of a device with very many live blocks. */
static void shorten(struct mt_plan *plan, const struct mt_survey_device *device)
{
    uint64_t most = MAX_SNAPSHOT_ROWS / (device->live_blocks_peak + 1);

    if (most < 8)
        most = 8;
    if (plan->instant_count > most)
        plan->instant_count = (uint32_t)most;
    if (plan->explanation_count > most / 2)
        plan->explanation_count = (uint32_t)(most / 2);
}

static void watch_idle(struct mt_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->survey.device_count; i++)
        mt_idle_choose(&analysis->holders.devices[i].idle, &analysis->survey,
                       &analysis->survey.devices[i], analysis->is_main);
}

static enum mt_status make_plans(struct mt_analysis *analysis)
{
    struct mt_survey *survey = &analysis->survey;
    struct mt_holders *holders = &analysis->holders;
    struct mt_arena *arena = &analysis->report->arena;
    size_t most = (size_t)survey->device_count *
                  (MT_ARRAY_LEN(analysis->plans->instants) +
                   2 * MT_ARRAY_LEN(analysis->plans->explanations) + MT_MODELS_MAX + 1);

    if (analysis->options->question) {
        analysis->answers =
            mt_arena_array(arena, (size_t)survey->device_count + 1, sizeof *analysis->answers);
        if (!analysis->answers)
            return MT_ERR_MEMORY;
    }
    analysis->plans = calloc((size_t)survey->device_count + 1, sizeof *analysis->plans);
    holders->snapshots = mt_arena_array(arena, most + 1, sizeof *holders->snapshots);
    if (!analysis->plans || !holders->snapshots ||
        mt_plan_main_phases(arena, &survey->phases, &analysis->is_main))
        return MT_ERR_MEMORY;
    if (!analysis->options->question)
        watch_idle(analysis);
    for (uint32_t i = 0; i < survey->device_count; i++) {
        struct mt_plan *plan = &analysis->plans[i];

        mt_plan_make(plan, survey, &survey->devices[i], analysis->is_main);
        shorten(plan, &survey->devices[i]);
        if (analysis->answers)
            plan_answer(analysis, i);
        want_for_models(analysis, i);
        for (uint32_t j = 0; j < plan->instant_count; j++)
            want(holders, plan->instants[j].event, survey->devices[i].device);
        for (uint32_t j = 0; j < plan->explanation_count; j++) {
            want(holders, plan->from_events[j], survey->devices[i].device);
            want(holders, plan->to_events[j], survey->devices[i].device);
        }
        if (holders->devices[i].pins.wanted)
            want(holders, holders->devices[i].pins.event, survey->devices[i].device);
    }
    drop_duplicates(holders);
    return MT_OK;
}

/* ---- second reading ------------------------------------------------------ */

static enum mt_status hold(void *context, const struct mt_event *event,
                           const struct mt_replay_view *view)
{
    (void)view;
    return mt_holders_event(context, event);
}

/* The second reading, of which the trial is told, too. */
static enum mt_status read_with_trial(struct mt_analysis *analysis)
{
    struct mt_trial *trial = &analysis->trial;
    const struct mt_replay_options options = {.policy = trial->policy,
                                              .limit_bytes = trial->limit_bytes,
                                              .most_reserved_bytes = trial->most_reserved_bytes};
    const struct mt_replay_observer observer = {&analysis->holders, hold, NULL};
    enum mt_status status;

    trial->summary = calloc(1, sizeof *trial->summary);
    if (!trial->summary)
        return MT_ERR_MEMORY;
    mt_holders_begin(&analysis->holders, analysis->source);
    status = mt_replay_run(analysis->source, &options, &observer, trial->summary, analysis->error);
    return status ? status : mt_holders_finish(&analysis->holders);
}

static enum mt_status read_again(struct mt_analysis *analysis)
{
    enum mt_status status;
    uint32_t i;

    analysis->holders.arena = &analysis->report->arena;
    analysis->holders.survey = &analysis->survey;
    analysis->holders.devices =
        calloc((size_t)analysis->survey.device_count + 1, sizeof *analysis->holders.devices);
    if (!analysis->holders.devices)
        return MT_ERR_MEMORY;
    status = analysis->options->question ? MT_OK : mt_findings_begin(analysis);
    if (!status)
        status = make_plans(analysis);
    for (i = 0; i < analysis->survey.device_count && !status; i++)
        status = mt_models_begin(analysis, i, &analysis->holders.devices[i].models);
    if (!status)
        status = mt_source_rewind(analysis->source, analysis->error);
    if (status)
        return status;
    return analysis->trial.policy
               ? read_with_trial(analysis)
               : mt_holders_read(&analysis->holders, analysis->source, analysis->error);
}

/* ---- beside the framework ------------------------------------------------- */

/* A reading more, if a trace holds anything but the events of a framework. */
static enum mt_status read_beside(struct mt_analysis *analysis)
{
    const struct mt_heap_view *view = &analysis->source->view;
    struct mt_driver_ledger *ledger = &analysis->ledger;
    struct mt_survey *survey = &analysis->survey;
    enum mt_status status = MT_OK;

    if (analysis->options->question || (view->level == MT_VIEW_FRAMEWORK && !view->has_more))
        return MT_OK;
    ledger->arena = &analysis->report->arena;
    ledger->phases = &survey->phases;
    for (uint32_t i = 0; i < survey->device_count && !status; i++)
        if (view->level == MT_VIEW_FRAMEWORK)
            status = mt_driver_ledger_want(
                ledger, survey->devices[i].device,
                mt_highs_since(&survey->devices[i].high[MT_HIGH_ALLOCATED], 0)->event);
    return status ? status : mt_driver_ledger_read(ledger, analysis->source, analysis->error);
}

static enum mt_status run(struct mt_analysis *analysis)
{
    const char *why = "";
    enum mt_status status = read_once(analysis);

    if (!status)
        status = mt_watch_finish(&analysis->watch, &analysis->survey);
    if (!status)
        status = mt_survey_finish(&analysis->survey);
    if (!status)
        status = mt_fill_facts(analysis);
    if (!status)
        status = read_beside(analysis);
    if (!status)
        status = read_again(analysis);
    if (!status)
        status = mt_fill_report(analysis);
    if (!status)
        MT_ASSERT_SOUND(mt_report_is_sound(analysis->report, &why), why);
    if (!status && !analysis->options->question)
        status = mt_findings_fill(analysis);
    if (!status)
        status = mt_fill_oom_answers(analysis);
    return status;
}

enum mt_status mt_analyze(struct mt_source *source, const struct mt_analyze_options *options,
                          struct mt_report **report, struct mt_error *error)
{
    struct mt_analysis analysis = {.source = source, .options = options};
    struct mt_error unused;
    enum mt_status status = MT_ERR_MEMORY;

    *report = NULL;
    analysis.error = error ? error : &unused;
    memset(analysis.error, 0, sizeof *analysis.error);
    analysis.report = calloc(1, sizeof *analysis.report);
    analysis.summary = calloc(1, sizeof *analysis.summary);
    if (analysis.report && analysis.summary)
        status = run(&analysis);
    if (status && !analysis.error->status)
        (void)mt_fail(analysis.error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    mt_attribution_release(&analysis.attribution);
    mt_holders_release(&analysis.holders);
    mt_driver_ledger_release(&analysis.ledger);
    mt_survey_release(&analysis.survey);
    mt_watch_release(&analysis.watch);
    free(analysis.plans);
    free(analysis.summary);
    free(analysis.trial.summary);
    if (status == MT_OK)
        *report = analysis.report;
    else
        mt_report_release(analysis.report);
    return status;
}

void mt_report_release(struct mt_report *report)
{
    if (!report)
        return;
    mt_arena_release(&report->arena);
    free(report);
}
