/* An analysis: its passes, in the order of run_passes. Most of them read the source; the number of
 * readings depends on the run, and MEMTRACE_DEBUG=passes prints it. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "analyze.h"
#include "analyze_options.h"
#include "check.h"
#include "driver_ledger.h"
#include "finding.h"
#include "inferred_phases.h"
#include "model_feed.h"
#include "module_table.h"
#include "needs.h"
#include "process_memory.h"
#include "relay.h"
#include "replay.h"
#include "report.h"
#include "report_parts.h"
#include "source.h"
#include "status.h"
#include "util.h"

/* Whole-structure check of a report: its tables agree with the counters of the replay, which come
 * from another pass over the trace. */

static bool sums_to_peak(const struct mt_device_report *device, const char **why)
{
    uint64_t sites = 0, roles = 0, ties = 0;

    for (uint32_t i = 0; i < device->peak_site_count; i++) {
        sites += device->peak_sites[i].bytes;
        MT_SOUND(why, !i || device->peak_sites[i - 1].bytes >= device->peak_sites[i].bytes);
    }
    for (uint32_t i = 0; i < MT_ROLE_COUNT; i++) {
        roles += device->peak_role_bytes[i];
        MT_SOUND(why, device->peak_recorded_role_bytes[i] <= device->peak_role_bytes[i]);
    }
    for (uint32_t i = 0; i < MT_TIE_COUNT; i++)
        ties += device->tie_peak_bytes[i];
    MT_SOUND(why, sites == device->allocated_peak.bytes);
    MT_SOUND(why, roles == device->allocated_peak.bytes);
    MT_SOUND(why, device->peak_start_role_bytes <= device->tie_peak_bytes[MT_TIE_BEFORE]);
    MT_SOUND(why, ties == device->frameless_peak_bytes);
    return true;
}

/* For the peak, or the instant of a question. */
static bool modules_are_sound(const struct mt_device_report *device, const char **why)
{
    const struct mt_modules *modules = device->modules;
    uint64_t bytes = 0, whole = device->answer ? device->answer->instant.bytes.allocated
                                               : device->allocated_peak.bytes;

    for (uint32_t i = 0; modules && i < modules->row_count; i++) {
        uint64_t roles = 0;

        for (uint32_t role = 0; role < MT_ROLE_COUNT; role++)
            roles += modules->rows[i].role_bytes[role];
        MT_SOUND(why, roles == modules->rows[i].bytes);
        MT_SOUND(why, (modules->rows[i].layer != MT_NO_LAYER) == (i < modules->layer_count));
        bytes += roles;
    }
    MT_SOUND(why, !modules || bytes == whole);
    return true;
}

static bool parts_close(const struct mt_device_report *device, const char **why)
{
    uint64_t sum = 0;

    for (int i = 0; device->device_parts && i < MT_DEVICE_PART_COUNT; i++)
        sum += device->device_parts->parts[i];
    MT_SOUND(why, !device->device_parts || sum == device->device_parts->total_bytes);
    return true;
}

static bool instant_is_sound(const struct mt_instant *instant, const char **why)
{
    uint64_t held = 0;
    int64_t told = 0;

    for (uint32_t i = 0; i < instant->holding_count; i++)
        held += instant->holdings[i].bytes;
    for (uint32_t i = 0; i < instant->holder_count; i++)
        told += instant->holders[i].bytes;
    MT_SOUND(why, held == instant->bytes.allocated);
    MT_SOUND(why, !instant->holders || told == (int64_t)instant->bytes.allocated);
    return true;
}

/* The pools sum to the device. */
static bool pools_are_sound(const struct mt_device_report *device, const char **why)
{
    uint64_t allocated = 0;

    for (uint32_t i = 0; i < device->pool_count; i++) {
        const struct mt_pool_use *pool = &device->pools[i];

        MT_SOUND(why, pool->allocated_bytes <= pool->allocated_peak_bytes);
        MT_SOUND(why, pool->reserved_bytes <= pool->reserved_peak_bytes);
        allocated += pool->allocated_bytes;
    }
    MT_SOUND(why, !device->pool_count || allocated == device->end.allocated);
    return true;
}

static bool device_is_sound(const struct mt_device_report *device, const char **why)
{
    MT_SOUND(why, device->allocated_peak.bytes == device->allocated_peak.then.allocated);
    MT_SOUND(why, device->reserved_peak.bytes == device->reserved_peak.then.reserved);
    MT_SOUND(why, device->allocated_peak.bytes <= device->active_peak.bytes);
    MT_SOUND(why, device->reserved_peak.then.allocated <= device->reserved_peak.bytes);
    for (uint32_t i = 0; i < device->instant_count; i++)
        if (!instant_is_sound(&device->instants[i], why))
            return false;
    return modules_are_sound(device, why) && pools_are_sound(device, why) &&
           sums_to_peak(device, why) && parts_close(device, why);
}

/* Checks that every table of the allocated peak sums to that peak, and that each peak equals the
 * memory at its instant. If not, *why is the violated rule. Cost: linear in the tables. */
static bool report_is_sound(const struct mt_report *report, const char **why)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (!device_is_sound(&report->devices[i], why))
            return false;
    return true;
}

/* Chooses the outputs of the pass over live blocks: snapshots, models of charts, lives and pins of
 * findings, trials. */

struct mt_analysis;

/* Limits all snapshots together to this many rows. */
#define MAX_SNAPSHOT_ROWS 2000000

static void want(struct mt_live_blocks *holders, uint64_t event, uint16_t device)
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

static void drop_duplicates(struct mt_live_blocks *holders)
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
    if (answer->missing)
        return;
    want(&analysis->holders, answer->instant.event, analysis->survey.devices[slot].device);
    if (analysis->options->by_segment)
        analysis->holders.devices[slot].pins =
            (struct mt_pins){.wanted = true, .all = true, .event = answer->instant.event};
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
    struct mt_live_blocks *holders = &analysis->holders;
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

static enum mt_status choose_wanted(struct mt_analysis *analysis)
{
    struct mt_live_blocks *holders = &analysis->holders;
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

/* Chooses the heaps in view, and inserts inferred steps and phases if the program did not name
 * them. */
static enum mt_status read_ranges(struct mt_analysis *analysis)
{
    enum mt_status status = mt_heap_view_choose(analysis->source, analysis->error);

    if (!status)
        status = mt_inferred_phases_insert(analysis->source, analysis->error);
    return status ? status : mt_source_complete_symbols(analysis->source, analysis->error);
}

static void restart_watch(struct mt_analysis *analysis)
{
    mt_watch_release(&analysis->watch);
    analysis->watch.question = analysis->options->question;
}

static void watch_and_survey(struct mt_analysis *analysis, const struct mt_event *event,
                             const struct mt_replay_view *view)
{
    mt_watch_event(&analysis->watch, &analysis->survey, event);
    mt_survey_event(&analysis->survey, event, view);
}

/* The survey of the run, in a thread of its own, while the replay goes on in this one. The state at
 * the start stays in this thread: there, the survey looks at the counters of the replay. */

/* An event, and what the survey reads of its view. */
struct row {
    struct mt_event event;
    struct mt_replay_view view; /* without counters */
    struct mt_bytes bytes;
    uint64_t retries;
};

struct surveyor {
    struct mt_analysis *analysis;
    struct mt_relay relay; /* of rows */
    bool may_relay;
};

static void survey_rows(void *context, const void *taken, uint32_t count)
{
    struct mt_counters counters = {.retries = 0};
    const struct row *rows = taken;

    for (uint32_t i = 0; i < count; i++) {
        struct mt_replay_view view = rows[i].view;

        counters.requested.now = rows[i].bytes.requested;
        counters.allocated.now = rows[i].bytes.allocated;
        counters.active.now = rows[i].bytes.active;
        counters.reserved.now = rows[i].bytes.reserved;
        counters.retries = rows[i].retries;
        view.counters = &counters;
        watch_and_survey(context, &rows[i].event, &view);
    }
}

static enum mt_status survey(void *context, const struct mt_event *event,
                             const struct mt_replay_view *view)
{
    struct surveyor *surveyor = context;

    if (mt_relay_has_begun(&surveyor->relay)) {
        *(struct row *)mt_relay_next(&surveyor->relay) =
            (struct row){*event, *view, mt_counters_bytes(view->counters), view->counters->retries};
        return MT_OK;
    }
    watch_and_survey(surveyor->analysis, event, view);
    if (surveyor->may_relay && surveyor->analysis->survey.begun)
        mt_relay_begin(&surveyor->relay);
    return MT_OK;
}

static enum mt_status restart(void *context)
{
    struct surveyor *surveyor = context;

    mt_relay_finish(&surveyor->relay);
    restart_watch(surveyor->analysis);
    mt_survey_restart(&surveyor->analysis->survey);
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
    mt_relay_finish(&((struct surveyor *)observer->context)->relay); /* it allocates in the arena */
    if (!status && *difference)
        analysis->report->pytorch_difference = mt_arena_text(arena, difference, strlen(difference));
    return status;
}

/* Replays the run for the survey and the question: as it was, unless the options request something
 * else. A replay that searches for a limit or for lost pools restarts. */
static enum mt_status read_run(struct mt_analysis *analysis)
{
    struct mt_replay_options options = analysis->options->replay;
    struct surveyor surveyor = {
        .analysis = analysis,
        .relay = {.row_bytes = sizeof(struct row), .context = analysis, .take = survey_rows},
        .may_relay = analysis->source->symbols_complete};
    const struct mt_replay_observer observer = {&surveyor, survey, restart};
    enum mt_status status;

    mt_survey_init(&analysis->survey, &analysis->report->arena, analysis->source);
    restart_watch(analysis);
    options.verify = true;
    status = options.policy ? mt_replay_run(analysis->source, &options, &observer,
                                            analysis->summary, analysis->error)
                            : replay_as_run(analysis, &observer);
    mt_relay_finish(&surveyor.relay);
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
        const struct mt_high *peak =
            mt_peak_windows_since(&survey->devices[i].high[MT_HIGH_ALLOCATED], 0);

        mt_driver_ledger_want(ledger, survey->devices[i].device, peak->event, peak->t_ns);
    }
    view->level = MT_VIEW_EVERYTHING;
    status = mt_read_again_events(analysis, ledger, receive_driver);
    view->level = level;
    if (status)
        return status;
    mt_driver_ledger_finish(ledger);
    mt_readings_hold(&analysis->readings, mt_driver_ledger_bytes(ledger));
    return MT_OK;
}

static enum mt_status receive_block(void *context, const struct mt_event *event)
{
    mt_live_blocks_event(context, event);
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
    struct mt_live_blocks *holders = &analysis->holders;
    const struct mt_replay_listener listener = {holders, receive_block};
    struct mt_event_batch batch;
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);

    mt_live_blocks_begin(holders, analysis->source);
    if (!status && analysis->trial_count)
        status = replay_trials(analysis, &listener);
    while (!status && !analysis->trial_count && !mt_live_blocks_are_known(holders)) {
        status = mt_source_next(analysis->source, &batch, analysis->error);
        for (size_t i = 0; !status && i < batch.count; i++)
            mt_live_blocks_event(holders, &batch.events[i]);
    }
    if (status && status != MT_END)
        return status;
    mt_live_blocks_finish(holders);
    mt_readings_hold(&analysis->readings, mt_live_blocks_bytes(holders));
    return MT_OK;
}

static enum mt_status fill_report(struct mt_analysis *analysis)
{
    enum mt_status status = mt_report_fill(analysis);
    const char *why = "";

    if (!status)
        MT_ASSERT_SOUND(report_is_sound(analysis->report, &why), why);
    return status;
}

/* A pass that reads the input again may do so any number of times. */
static void tell_progress(void *context, const struct mt_source *source)
{
    const struct mt_analysis *analysis = context;
    const bool is_again = source->readings > analysis->readings.readings + 1;

    analysis->options->progress.tell(analysis->options->progress.context, analysis->activity,
                                     is_again ? -1 : mt_source_share(source));
}

static enum mt_status run_pass(struct mt_analysis *analysis, const char *name,
                               enum mt_status (*pass)(struct mt_analysis *analysis))
{
    const uint32_t outer = mt_readings_enter(&analysis->readings, name);
    enum mt_status status;
    const char *why = "";

    mt_source_read_ahead(analysis->source, true);
    status = pass(analysis);
    mt_source_read_ahead(analysis->source, false);
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
    analysis->activity = "finding steps";
    PASS("ranges", true, read_ranges);

    /* peaks, phases, steps; block sizes and roles */
    analysis->activity = "replaying";
    PASS("run", true, read_run);
    PASS("facts", true, mt_report_fill_facts);

    /* memory outside of the framework */
    PASS("driver", (is_whole || options->driver) && has_driver_events(analysis), read_driver);

    /* live blocks at the instants of interest; models, lives, pins; the run under other settings */
    analysis->activity = "following blocks";
    PASS("wanted", true, choose_wanted);
    PASS(analysis->trial_count ? "trials, blocks" : "blocks", true, read_blocks);
    PASS("report", true, fill_report);

    /* limits that would have served the run, and that it needs */
    analysis->activity = "searching for the smallest limit";
    PASS("answers", true, mt_oom_answers_fill);
    PASS("needs", mt_needs_are_wanted(analysis), mt_needs_fill);

    /* peaks of a dry run under other orders of addresses */
    PASS("orders", mt_peak_orders_are_wanted(analysis), mt_needs_fill_peak_orders);

    /* the arena of XLA itself */
    PASS("arenas", mt_arenas_are_wanted(analysis), mt_report_fill_arenas);

    analysis->activity = "searching for savings";
    PASS("findings", is_whole && !options->no_findings, mt_findings_fill);
    return status;
}

enum mt_status mt_analyze(struct mt_source *source, const struct mt_analyze_options *options,
                          struct mt_report **report, struct mt_error *error)
{
    struct mt_analysis analysis = {.source = source, .options = options};
    const struct mt_source_watch watch = source->watch;
    struct mt_error unused;
    enum mt_status status;

    *report = NULL;
    analysis.error = error ? error : &unused;
    memset(analysis.error, 0, sizeof *analysis.error);
    analysis.report = mt_memory_zeroed(1, sizeof *analysis.report);
    analysis.summary = mt_memory_zeroed(1, sizeof *analysis.summary);
    if (options->progress.tell)
        source->watch = (struct mt_source_watch){tell_progress, &analysis};
    status = run_passes(&analysis);
    if (!status) /* the last reading may have ended early */
        mt_source_leave(source);
    source->watch = watch;
    if (status && !analysis.error->status)
        (void)mt_fail(analysis.error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    mt_attribution_release(&analysis.attribution);
    mt_live_blocks_release(&analysis.holders);
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
