/* An analysis: its passes, in the order of run_passes. Most of them read the source; the number of
 * readings depends on the run, and MEMTRACE_DEBUG=passes prints it. */
#include "analysis.h"
#include "analyze.h"
#include "check.h"
#include "choose_wanted.h"
#include "fill_report.h"
#include "findings.h"
#include "found_phases.h"
#include "ledger_instants.h"
#include "needs.h"
#include "oom_answers.h"
#include "peak_orders.h"
#include "process_memory.h"
#include "read_again.h"
#include "read_arenas.h"
#include "replay.h"
#include "report_check.h"
#include "source.h"

#include <stdlib.h>
#include <string.h>

/* Chooses the heaps in view, and inserts inferred steps and phases if the program did not name
 * them. */
static enum mt_status read_ranges(struct mt_analysis *analysis)
{
    enum mt_status status = mt_heap_view_choose(analysis->source, analysis->error);

    return status ? status : mt_found_phases_lay(analysis->source, analysis->error);
}

static void restart_watch(struct mt_analysis *analysis)
{
    mt_watch_release(&analysis->watch);
    analysis->watch.question = analysis->options->question;
}

static enum mt_status watch_and_survey(void *context, const struct mt_event *event,
                                       const struct mt_replay_view *view)
{
    struct mt_analysis *analysis = context;

    mt_watch_event(&analysis->watch, &analysis->survey, event);
    mt_survey_event(&analysis->survey, event, view);
    return MT_OK;
}

static enum mt_status restart(void *context)
{
    struct mt_analysis *analysis = context;

    restart_watch(analysis);
    mt_survey_restart(&analysis->survey);
    return MT_OK;
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

/* Replays the run for the survey and the question: as it was, unless the options request something
 * else. A replay that searches for a limit or for lost pools restarts. */
static enum mt_status read_run(struct mt_analysis *analysis)
{
    struct mt_replay_options options = analysis->options->replay;
    const struct mt_replay_observer observer = {analysis, watch_and_survey, restart};
    enum mt_status status;

    mt_survey_init(&analysis->survey, &analysis->report->arena, analysis->source);
    analysis->survey.progress = analysis->options->progress;
    restart_watch(analysis);
    options.verify = true;
    status = options.policy ? mt_replay_run(analysis->source, &options, &observer,
                                            analysis->summary, analysis->error)
                            : replay_as_run(analysis, &observer);
    if (status)
        return status;
    mt_watch_finish(&analysis->watch, &analysis->survey);
    mt_survey_finish(&analysis->survey);
    mt_readings_hold(&analysis->readings, mt_alloc_log_bytes(&analysis->survey.log));
    return MT_OK;
}

/* Whether the trace has events other than those of a framework. */
static bool has_driver_events(const struct mt_analysis *analysis)
{
    const struct mt_heap_view *view = &analysis->source->view;

    return view->level != MT_VIEW_FRAMEWORK || view->has_more;
}

static enum mt_status receive_driver(void *context, struct mt_event *event)
{
    mt_driver_ledger_event(context, event);
    return MT_OK;
}

/* Reads all heaps, and measures the memory that the process took from the driver. */
static enum mt_status read_driver(struct mt_analysis *analysis)
{
    struct mt_driver_ledger *ledger = &analysis->ledger;
    const struct mt_survey *survey = &analysis->survey;
    struct mt_heap_view *view = &analysis->source->view;
    const enum mt_view_level level = view->level;
    enum mt_status status;

    ledger->arena = &analysis->report->arena;
    ledger->phases = &analysis->survey.phases;
    mt_driver_ledger_begin(ledger, analysis->source);
    for (uint32_t i = 0; i < survey->device_count && ledger->has_framework; i++) {
        const struct mt_high *peak = mt_highs_since(&survey->devices[i].high[MT_HIGH_ALLOCATED], 0);

        mt_driver_ledger_want(ledger, survey->devices[i].device, peak->event, peak->t_ns);
    }
    view->level = MT_VIEW_EVERYTHING;
    status = mt_read_events(analysis, ledger, receive_driver);
    view->level = level;
    if (status)
        return status;
    mt_driver_ledger_finish(ledger);
    mt_readings_hold(&analysis->readings, mt_driver_ledger_bytes(ledger));
    return MT_OK;
}

static enum mt_status receive_block(void *context, const struct mt_event *event)
{
    mt_holders_event(context, event);
    return MT_OK;
}

/* Replays the run under the settings of the trials, and passes the events on. */
static enum mt_status replay_trials(struct mt_analysis *analysis,
                                    const struct mt_replay_listener *listener)
{
    struct mt_replay_options options[MT_MAX_TRIALS];
    struct mt_replay_job jobs[MT_MAX_TRIALS];

    for (uint32_t i = 0; i < analysis->trial_count && i < MT_MAX_TRIALS; i++) {
        struct mt_trial *trial = &analysis->trials[i];

        trial->summary = mt_memory_zeroed(1, sizeof *trial->summary);
        options[i] = (struct mt_replay_options){.policy = trial->policy,
                                                .limit_bytes = trial->limit_bytes,
                                                .most_reserved_bytes = trial->most_reserved_bytes};
        jobs[i] = (struct mt_replay_job){&options[i], NULL, trial->summary};
    }
    return mt_replay_run_together(analysis->source, jobs, analysis->trial_count, listener,
                                  analysis->error);
}

/* Follows live blocks, and simultaneously replays the trials. */
static enum mt_status read_blocks(struct mt_analysis *analysis)
{
    struct mt_holders *holders = &analysis->holders;
    const struct mt_replay_listener listener = {holders, receive_block};
    struct mt_event_batch batch;
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);

    mt_holders_begin(holders, analysis->source);
    if (!status && analysis->trial_count)
        status = replay_trials(analysis, &listener);
    while (!status && !analysis->trial_count) {
        status = mt_source_next(analysis->source, &batch, analysis->error);
        for (size_t i = 0; !status && i < batch.count; i++)
            mt_holders_event(holders, &batch.events[i]);
    }
    if (status && status != MT_END)
        return status;
    mt_holders_finish(holders);
    mt_readings_hold(&analysis->readings, mt_holders_bytes(holders));
    return MT_OK;
}

static enum mt_status fill_report(struct mt_analysis *analysis)
{
    enum mt_status status = mt_fill_report(analysis);
    const char *why = "";

    if (!status)
        MT_ASSERT_SOUND(mt_report_is_sound(analysis->report, &why), why);
    return status;
}

static enum mt_status run_pass(struct mt_analysis *analysis, const char *name,
                               enum mt_status (*pass)(struct mt_analysis *analysis))
{
    const uint32_t outer = mt_readings_enter(&analysis->readings, name);
    const enum mt_status status = pass(analysis);
    const char *why = "";

    mt_readings_leave(&analysis->readings, outer);
    MT_ASSERT_SOUND(mt_readings_is_sound(&analysis->readings, &why), why);
    return status;
}

/* Runs a pass if it is wanted and all earlier ones succeeded. */
#define PASS(name, wanted, function)                                                               \
    status = !status && (wanted) ? run_pass(analysis, name, function) : status

static enum mt_status run_passes(struct mt_analysis *analysis)
{
    const struct mt_analyze_options *options = analysis->options;
    const bool is_whole = !options->question;
    enum mt_status status = MT_OK;

    mt_readings_begin(&analysis->readings, analysis->source, &analysis->report->passes);

    /* heaps in view; inferred steps and phases */
    PASS("ranges", true, read_ranges);

    /* peaks, phases, steps; block sizes and roles */
    PASS("run", true, read_run);
    PASS("facts", true, mt_fill_facts);

    /* memory outside of the framework */
    PASS("driver", is_whole && has_driver_events(analysis), read_driver);

    /* live blocks at the instants of interest; models, lives, pins; the run under other settings */
    PASS("wanted", true, mt_choose_wanted);
    PASS(analysis->trial_count ? "trials, blocks" : "blocks", true, read_blocks);
    PASS("report", true, fill_report);

    /* limits that would have served the run, and that it needs */
    PASS("answers", true, mt_fill_oom_answers);
    PASS("needs", mt_needs_are_wanted(analysis), mt_fill_needs);

    /* peaks of a dry run under other orders of addresses */
    PASS("orders", mt_peak_orders_are_wanted(analysis), mt_fill_peak_orders);

    /* the arena of XLA itself */
    PASS("arenas", mt_arenas_are_wanted(analysis), mt_fill_arenas);

    PASS("findings", is_whole && !options->no_findings, mt_findings_fill);
    return status;
}

enum mt_status mt_analyze(struct mt_source *source, const struct mt_analyze_options *options,
                          struct mt_report **report, struct mt_error *error)
{
    struct mt_analysis analysis = {.source = source, .options = options};
    struct mt_error unused;
    enum mt_status status;

    *report = NULL;
    analysis.error = error ? error : &unused;
    memset(analysis.error, 0, sizeof *analysis.error);
    analysis.report = mt_memory_zeroed(1, sizeof *analysis.report);
    analysis.summary = mt_memory_zeroed(1, sizeof *analysis.summary);
    status = run_passes(&analysis);
    if (status && !analysis.error->status)
        (void)mt_fail(analysis.error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    mt_attribution_release(&analysis.attribution);
    mt_holders_release(&analysis.holders);
    mt_driver_ledger_release(&analysis.ledger);
    mt_survey_release(&analysis.survey);
    mt_watch_release(&analysis.watch);
    free(analysis.instants);
    free(analysis.summary);
    for (uint32_t i = 0; i < analysis.trial_count; i++)
        free(analysis.trials[i].summary);
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
