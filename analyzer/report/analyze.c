/* The passes of an analysis, in order. A pass starts when its inputs are known. Passes that receive
 * events and can start together share one pass over the source (schedule.h). The total number of
 * passes over the source depends on the run: MEMTRACE_DEBUG=passes prints it. */
#include "analysis.h"
#include "analyze.h"
#include "check.h"
#include "fill_report.h"
#include "findings.h"
#include "choose_wanted.h"
#include "needs.h"
#include "peak_orders.h"
#include "oom_answers.h"
#include "process_memory.h"
#include "read_arenas.h"
#include "read_blocks.h"
#include "read_driver.h"
#include "read_run.h"
#include "report_check.h"
#include "schedule.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

/* Results that are available, one bit each. */
enum {
    RANGES = 1,   /* heaps in view; inferred steps and phases */
    RUN = 2,      /* history: peaks, phases, steps; block sizes and roles */
    FACTS = 4,    /* the results of RUN in the report */
    DRIVER = 8,   /* memory outside of the framework */
    WANTED = 16,  /* requested instants, models, lives, pins and trials */
    TRIALS = 32,  /* the run under other settings */
    BLOCKS = 64,  /* holders of the memory at those instants; models; lives; pins */
    REPORT = 128, /* the report, except the parts below */
    FINDINGS = 256,
    ANSWERS = 512, /* to fatal OOMs */
    NEEDS = 1024,  /* memory that the devices need */
    ARENAS = 2048, /* the arena of XLA itself */
    ORDERS = 4096  /* peaks of a dry run under other orders of addresses */
};

static enum mt_status fill_report(struct mt_analysis *analysis)
{
    enum mt_status status = mt_fill_report(analysis);
    const char *why = "";

    if (!status)
        MT_ASSERT_SOUND(mt_report_is_sound(analysis->report, &why), why);
    return status;
}

static bool is_whole_report(const struct mt_analysis *analysis)
{
    return !analysis->options->question;
}

static const struct mt_pass passes[] = {
    {.name = "ranges", .gives = RANGES, .begin = mt_read_ranges},
    {.name = "run",
     .needs = RANGES,
     .gives = RUN,
     .begin = mt_read_run,
     .end = mt_finish_run,
     .memory_bytes = mt_run_memory_bytes},
    {.name = "facts", .needs = RUN, .gives = FACTS, .begin = mt_fill_facts},
    {.name = "driver",
     .needs = RUN,
     .gives = DRIVER,
     .is_wanted = mt_driver_is_wanted,
     .begin = mt_begin_driver,
     .batch = mt_receive_driver,
     .hears_all_heaps = true,
     .end = mt_finish_driver,
     .memory_bytes = mt_driver_memory_bytes},
    {.name = "wanted", .needs = FACTS, .gives = WANTED, .begin = mt_choose_wanted},
    {.name = "trials",
     .needs = WANTED,
     .gives = TRIALS,
     .is_wanted = mt_trials_are_wanted,
     .drive = mt_replay_trials},
    {.name = "blocks",
     .needs = WANTED,
     .gives = BLOCKS,
     .begin = mt_begin_blocks,
     .batch = mt_receive_blocks,
     .end = mt_finish_blocks,
     .memory_bytes = mt_blocks_memory_bytes},
    {.name = "report", .needs = DRIVER | BLOCKS, .gives = REPORT, .begin = fill_report},
    {.name = "answers", .needs = REPORT, .gives = ANSWERS, .begin = mt_fill_oom_answers},
    {.name = "needs",
     .needs = REPORT,
     .gives = NEEDS,
     .is_wanted = mt_needs_are_wanted,
     .begin = mt_fill_needs},
    {.name = "orders",
     .needs = REPORT,
     .gives = ORDERS,
     .is_wanted = mt_peak_orders_are_wanted,
     .begin = mt_fill_peak_orders},
    {.name = "arenas",
     .needs = REPORT,
     .gives = ARENAS,
     .is_wanted = mt_arenas_are_wanted,
     .begin = mt_fill_arenas},
    {.name = "findings",
     .needs = REPORT | TRIALS | ANSWERS | NEEDS,
     .gives = FINDINGS,
     .is_wanted = is_whole_report,
     .begin = mt_findings_fill},
};

static enum mt_status run(struct mt_analysis *analysis)
{
    enum mt_status status;
    const char *why = "";

    mt_readings_begin(&analysis->readings, analysis->source, &analysis->report->passes);
    status = mt_schedule_run(passes, MT_ARRAY_LEN(passes), analysis);
    MT_ASSERT_SOUND(mt_readings_is_sound(&analysis->readings, &why), why);
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
    analysis.report = mt_memory_zeroed(1, sizeof *analysis.report);
    analysis.summary = mt_memory_zeroed(1, sizeof *analysis.summary);
    status = run(&analysis);
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
