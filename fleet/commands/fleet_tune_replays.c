#include "fleet_tune_replays.h"

#include <stdio.h>
#include <string.h>

#include "fleet_crew.h"
#include "fleet_job.h"
#include "fleet_traces.h"
#include "import.h"

enum { WHAT_BYTES = 80 };

static enum mt_status measure(struct mt_tuned_trace *trace, struct mt_source *source,
                              const struct mt_fleet_share *share)
{
    const struct mt_tune_options options = {.progress = share->show, .context = share->context};
    enum mt_status status = MT_OK;

    if (trace->is_tuned)
        status = mt_tune_run(source, &options, trace->tune, &trace->error);
    if (status == MT_OK)
        status = mt_setting_replay(source, NULL, &trace->before, &trace->error);
    if (status == MT_OK)
        status = mt_setting_search(source, NULL, &trace->before, &trace->error);
    return status;
}

/* Fails only if an invariant is broken. After other errors, the work continues, because other
 * traces may succeed. */
static enum mt_status tune_trace(void *context, uint32_t index, const struct mt_fleet_share *share)
{
    struct mt_tune_work *work = context;
    struct mt_tuned_trace *trace = work->traces[index];
    struct mt_source *source = NULL;

    if (trace->is_done)
        return MT_OK;
    trace->error = (struct mt_error){.offset = MT_NO_OFFSET};
    trace->status = mt_fleet_trace_check(trace->path, trace->record, &trace->error);
    if (trace->status == MT_OK)
        trace->status = mt_open_any(trace->path, &source, &trace->error);
    if (trace->status == MT_OK)
        trace->status = measure(trace, source, share);
    if (source)
        trace->readings += source->readings;
    mt_source_close(source);
    trace->is_done = true;
    return trace->status == MT_ERR_INTERNAL ? MT_ERR_INTERNAL : MT_OK;
}

/* Runs one trace with one setting. */
typedef enum mt_status setting_run(struct mt_source *source, const char *conf,
                                   struct mt_setting_trial *trial, struct mt_error *error);

static bool is_searched(const struct mt_tune_work *work, const struct mt_tuned_trace *trace,
                        uint32_t setting)
{
    return work->is_listed[setting] || trace->is_own[setting];
}

static enum mt_status run_settings(struct mt_tune_work *work, uint32_t index,
                                   const struct mt_fleet_share *share, setting_run *run)
{
    struct mt_tuned_trace *trace = work->traces[index];
    struct mt_source *source = NULL;

    trace->error = (struct mt_error){.offset = MT_NO_OFFSET};
    trace->status = mt_open_any(trace->path, &source, &trace->error);
    for (uint32_t i = 0; trace->status == MT_OK && i < work->setting_count; i++) {
        if (run == mt_setting_search && !is_searched(work, trace, i))
            continue;
        trace->status = run(source, work->confs[i], &trace->trials[i], &trace->error);
        if (share->show)
            share->show(share->context, (double)(i + 1) / work->setting_count);
    }
    if (source)
        trace->readings += source->readings;
    mt_source_close(source);
    return trace->status;
}

static enum mt_status replay_settings(void *context, uint32_t index,
                                      const struct mt_fleet_share *share)
{
    return run_settings(context, index, share, mt_setting_replay);
}

static enum mt_status search_limits(void *context, uint32_t index,
                                    const struct mt_fleet_share *share)
{
    return run_settings(context, index, share, mt_setting_search);
}

static int run_all(struct mt_tune_work *work, const char *what, mt_fleet_item *item)
{
    const struct mt_fleet_crew crew = {.count = work->trace_count,
                                       .threads = mt_fleet_threads(work->jobs),
                                       .what = what,
                                       .progress = &work->progress,
                                       .run = item,
                                       .context = work};
    struct mt_tuned_trace *trace;
    uint32_t failed;
    enum mt_status status = mt_fleet_crew_run(&crew, &failed);

    if (status == MT_OK)
        return MT_EXIT_OK;
    trace = work->traces[failed];
    trace->error.status = status;
    return mt_report_error(trace->path, &trace->error);
}

int mt_tune_traces(struct mt_tune_work *work)
{
    uint32_t tuned = 0;
    char what[WHAT_BYTES];

    for (uint32_t i = 0; i < work->trace_count; i++)
        tuned += work->traces[i]->is_tuned && !work->traces[i]->is_done;
    (void)snprintf(what, sizeof what, "tuning %u of %u traces", (unsigned)tuned,
                   (unsigned)work->trace_count);
    return run_all(work, what, tune_trace);
}

int mt_tune_replay_settings(struct mt_tune_work *work)
{
    char what[WHAT_BYTES];

    (void)snprintf(what, sizeof what, "replaying %u settings on %u traces",
                   (unsigned)work->setting_count, (unsigned)work->trace_count);
    return run_all(work, what, replay_settings);
}

int mt_tune_search_limits(struct mt_tune_work *work)
{
    uint64_t searches = 0;
    char what[WHAT_BYTES];

    for (uint32_t t = 0; t < work->trace_count; t++)
        for (uint32_t i = 0; i < work->setting_count; i++)
            searches += is_searched(work, work->traces[t], i);
    (void)snprintf(what, sizeof what, "searching %llu smallest limits",
                   (unsigned long long)searches);
    return run_all(work, what, search_limits);
}
