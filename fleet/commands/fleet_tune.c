/* First plans which ranks to replay. If the trace of a rank is unusable, plans again without it, so
 * that another rank of the same cluster is replayed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cli.h"
#include "fleet_job.h"
#include "fleet_parts.h"
#include "fleet_traces.h"
#include "import.h"
#include "job_settings.h"
#include "process_memory.h"
#include "screen.h"
#include "setting_trial.h"

/* The traces that are replayed, and the results of the replays. */

/* Runs one trace with one setting. */
typedef enum mt_status setting_run(struct mt_source *source, const char *conf,
                                   struct mt_setting_trial *trial, struct mt_error *error);

/* A trace that is replayed. It is from one process, which may use several devices. */
struct tuned_trace {
    const char *path;
    const struct mt_rank_record *record; /* record of one of the devices */
    bool is_tuned, is_done;              /* is_done: the fields from `status` to `before` are set */
    enum mt_status status;               /* not MT_OK: the trace cannot be replayed */
    struct mt_error error;
    struct mt_tune_summary *tune; /* if is_tuned */
    struct mt_setting_trial before;
    struct mt_setting_trial *trials; /* one for each setting */
    bool *is_own;                    /* one for each setting: it was found by tuning this trace */
    uint64_t readings;
};

struct tune_work {
    const struct mt_job_report *report;
    uint64_t jobs; /* traces in parallel; 0 = the number of processors */
    struct mt_job_settings *settings;
    struct tuned_trace **traces; /* in the order of the plan */
    uint32_t trace_count;
    const char **confs;
    uint32_t setting_count;
    bool *is_listed; /* one for each setting: its limit is searched on all traces */
    struct mt_progress progress;
};

enum { WHAT_BYTES = 80 };

static enum mt_status measure(struct tuned_trace *trace, struct mt_source *source,
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
    struct tune_work *work = context;
    struct tuned_trace *trace = work->traces[index];
    struct mt_source *source = NULL;

    if (trace->is_done)
        return MT_OK;
    trace->error = (struct mt_error){.offset = MT_NO_OFFSET};
    trace->status = mt_fleet_trace_check(trace->path, trace->record, &trace->error);
    if (trace->status == MT_OK)
        trace->status = mt_import_open_any(trace->path, &source, &trace->error);
    if (trace->status == MT_OK)
        trace->status = measure(trace, source, share);
    if (source)
        trace->readings += source->readings;
    mt_source_close(source);
    trace->is_done = true;
    return trace->status == MT_ERR_INTERNAL ? MT_ERR_INTERNAL : MT_OK;
}

static bool is_searched(const struct tune_work *work, const struct tuned_trace *trace,
                        uint32_t setting)
{
    return work->is_listed[setting] || trace->is_own[setting];
}

static enum mt_status run_settings(struct tune_work *work, uint32_t index,
                                   const struct mt_fleet_share *share, setting_run *run)
{
    struct tuned_trace *trace = work->traces[index];
    struct mt_source *source = NULL;

    trace->error = (struct mt_error){.offset = MT_NO_OFFSET};
    trace->status = mt_import_open_any(trace->path, &source, &trace->error);
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

static int run_all(struct tune_work *work, const char *what, mt_fleet_item *item)
{
    const struct mt_worker_pool pool = {.count = work->trace_count,
                                        .threads = mt_fleet_threads(work->jobs),
                                        .what = what,
                                        .progress = &work->progress,
                                        .run = item,
                                        .context = work};
    uint32_t failed;
    enum mt_status status = mt_worker_pool_run(&pool, &failed);

    if (status == MT_OK)
        return MT_EXIT_OK;
    struct tuned_trace *trace = work->traces[failed];
    trace->error.status = status;
    return mt_report_error(trace->path, &trace->error);
}

/* This function and the next two print the error that ends the work and return enum mt_exit.
 *
 * Processes each trace that is not done. Checks that it is the trace of its record, tunes it if
 * is_tuned is set, and finds the memory that the recorded run needs. If a trace cannot be replayed,
 * sets its `status` and prints nothing. */
static int tune_traces(struct tune_work *work)
{
    uint32_t tuned = 0;
    char what[WHAT_BYTES];

    for (uint32_t i = 0; i < work->trace_count; i++)
        tuned += work->traces[i]->is_tuned && !work->traces[i]->is_done;
    (void)snprintf(what, sizeof what, "tuning %u of %u traces", (unsigned)tuned,
                   (unsigned)work->trace_count);
    return run_all(work, what, tune_trace);
}

/* Replays each trace with each setting. */
static int tune_replay_settings(struct tune_work *work)
{
    char what[WHAT_BYTES];

    (void)snprintf(what, sizeof what, "replaying %u settings on %u traces",
                   (unsigned)work->setting_count, (unsigned)work->trace_count);
    return run_all(work, what, replay_settings);
}

/* Searches the smallest limits of the settings in is_listed on every trace, and of the settings in
 * is_own on their trace. */
static int tune_search_limits(struct tune_work *work)
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

enum {
    MAX_PLANS = 8,        /* later plans replace ranks whose traces cannot be replayed */
    SETTINGS_A_TRACE = 6, /* the settings with the smallest peaks, and the recommended one */
    MAX_TRACES = MT_JOB_TUNED + MT_JOB_WORST,
    /* All traces of a plan may have been tuned: an earlier plan may have tuned a trace for a device
     * that cannot be replayed, and a later plan may use the trace for another device. */
    MAX_SETTINGS = MAX_TRACES * (SETTINGS_A_TRACE + 1)
};

struct search {
    const struct mt_fleet_tuning *asked;
    struct tune_work work;
    struct mt_fleet_traces files;
    const char **paths; /* trace of each row of the report; NULL if there is none */
    bool *can_replay;   /* one for each row */
    struct tuned_trace *known[MAX_PLANS * MAX_TRACES]; /* the traces of all plans */
    uint32_t known_count;
    uint32_t check_count;
    uint32_t *trace_of; /* one for each check: index into work.traces */
};

#define ARRAY(search, count, type)                                                                 \
    ((type *)mt_arena_array(&(search)->work.settings->arena, (size_t)(count) + 1, sizeof(type)))

static void find_traces(struct search *search)
{
    const struct mt_job_report *report = search->work.report;
    struct mt_job_settings *settings = search->work.settings;

    mt_fleet_traces_find(search->asked->files, &search->files);
    search->paths = ARRAY(search, report->row_count, const char *);
    search->can_replay = ARRAY(search, report->row_count, bool);
    settings->reasons = ARRAY(search, report->row_count, const char *);
    settings->states = ARRAY(search, report->row_count, enum mt_job_row_check);
    for (uint32_t i = 0; i < report->row_count; i++) {
        const char *reason;

        search->paths[i] = mt_fleet_trace_of(&search->files, report->rows[i].record, &reason);
        search->can_replay[i] = search->paths[i] != NULL;
        if (!search->paths[i])
            settings->reasons[i] = reason;
    }
}

static struct tuned_trace *known_trace(struct search *search, uint32_t row)
{
    for (uint32_t i = 0; i < search->known_count; i++)
        if (search->known[i]->path == search->paths[row])
            return search->known[i];
    struct tuned_trace *trace = ARRAY(search, 1, struct tuned_trace);
    MT_ASSERT(search->known_count < MT_ARRAY_LEN(search->known));
    trace->path = search->paths[row];
    trace->record = search->work.report->rows[row].record;
    search->known[search->known_count++] = trace;
    return trace;
}

/* A trace that an earlier plan only replayed may be tuned later. */
static void want_tune(struct search *search, struct tuned_trace *trace)
{
    if (trace->is_tuned)
        return;
    trace->tune = ARRAY(search, 1, struct mt_tune_summary);
    trace->is_tuned = true;
    trace->is_done = false;
}

/* Makes the list of the traces of all checks, in their order, without duplicates. */
static void use_plan(struct search *search, const struct mt_job_check *checks)
{
    struct tune_work *work = &search->work;

    work->trace_count = 0;
    for (uint32_t i = 0; i < search->check_count; i++) {
        struct tuned_trace *trace = known_trace(search, checks[i].row);
        uint32_t at = 0;

        while (at < work->trace_count && work->traces[at] != trace)
            at++;
        if (at == work->trace_count)
            work->traces[work->trace_count++] = trace;
        search->trace_of[i] = at;
        if (checks[i].is_tuned)
            want_tune(search, trace);
    }
}

static void plan(struct search *search)
{
    struct mt_job_settings *settings = search->work.settings;

    mt_job_settings_plan(search->work.report, search->can_replay, &settings->arena,
                         &settings->checks, &search->check_count);
    search->trace_of = ARRAY(search, search->check_count, uint32_t);
    search->work.traces = ARRAY(search, search->check_count, struct tuned_trace *);
    use_plan(search, settings->checks);
}

/* Returns why the row cannot be replayed; NULL if it can. */
static const char *reason_of(const struct tuned_trace *trace, uint16_t device)
{
    const struct mt_setting_device *before = mt_setting_device_of(&trace->before, device);

    if (trace->status != MT_OK)
        return *trace->error.text ? trace->error.text : "the trace cannot be read";
    if (!before)
        return "the trace has no request on this device";
    return before->serves ? NULL : "no allocator limit is enough for the run";
}

/* Excludes rows of the plan that cannot be replayed. Sets *is_changed if there are any. */
static void leave_out(struct search *search, bool *is_changed)
{
    const struct mt_job_report *report = search->work.report;
    struct mt_job_settings *settings = search->work.settings;

    *is_changed = false;
    for (uint32_t i = 0; i < search->check_count; i++) {
        const struct tuned_trace *trace = search->work.traces[search->trace_of[i]];
        uint32_t row = settings->checks[i].row;
        const char *reason = reason_of(trace, report->rows[row].record->device);

        if (!reason)
            continue;
        settings->reasons[row] = mt_arena_text(&settings->arena, reason, strlen(reason));
        search->can_replay[row] = false;
        *is_changed = true;
    }
}

/* Keeps the rows of the last plan except those that cannot be replayed. */
static void keep_rest(struct search *search)
{
    struct mt_job_settings *settings = search->work.settings;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < search->check_count; i++)
        if (search->can_replay[settings->checks[i].row])
            settings->checks[kept++] = settings->checks[i];
    search->check_count = kept;
    use_plan(search, settings->checks);
}

static int choose_rows(struct search *search)
{
    bool is_changed = true;

    for (int i = 0; i < MAX_PLANS && is_changed; i++) {
        plan(search);
        int code = tune_traces(&search->work);

        if (code != MT_EXIT_OK)
            return code;
        leave_out(search, &is_changed);
    }
    if (is_changed)
        keep_rest(search);
    return MT_EXIT_OK;
}

/* Returns the index of a setting, and adds the setting if it is new. */
static uint32_t setting_of(struct tune_work *work, const char *conf)
{
    uint32_t i = 0;

    while (i < work->setting_count && strcmp(work->confs[i], conf) != 0)
        i++;
    if (i == work->setting_count) {
        MT_ASSERT(i < MAX_SETTINGS);
        work->confs[work->setting_count++] = conf;
    }
    return i;
}

/* Prints why no rank can be replayed. */
static int say_nothing_to_replay(const struct search *search)
{
    const struct mt_job_report *report = search->work.report;

    for (uint32_t i = 0; i < report->row_count; i++)
        if (search->paths[i] && search->work.settings->reasons[i]) {
            mt_message("fleet: --tune cannot replay any rank; '%s': %s", search->paths[i],
                       search->work.settings->reasons[i]);
            return MT_EXIT_INPUT;
        }
    mt_message("fleet: --tune replays traces, but no rank has a trace beside its summary; copy the "
               "traces there, or omit --tune");
    return MT_EXIT_INPUT;
}

static void add_settings(struct tune_work *work, struct tuned_trace *trace);

static void collect_settings(struct search *search)
{
    struct tune_work *work = &search->work;

    work->confs = ARRAY(search, MAX_SETTINGS, const char *);
    work->is_listed = ARRAY(search, MAX_SETTINGS, bool);
    for (uint32_t t = 0; t < work->trace_count; t++) {
        work->traces[t]->is_own = ARRAY(search, MAX_SETTINGS, bool);
        if (work->traces[t]->is_tuned)
            add_settings(work, work->traces[t]);
    }
    for (uint32_t t = 0; t < work->trace_count; t++)
        work->traces[t]->trials = ARRAY(search, work->setting_count, struct mt_setting_trial);
}

/* Makes a trial, whose numbers are filled in later. */
static void make_trial(struct search *search, uint64_t **beside, struct mt_job_cell **before,
                       struct mt_job_cell **cells)
{
    uint32_t rows = search->check_count;

    *beside = ARRAY(search, rows, uint64_t);
    *before = ARRAY(search, rows, struct mt_job_cell);
    *cells = ARRAY(search, (size_t)rows * search->work.setting_count, struct mt_job_cell);
    search->work.settings->own_confs = ARRAY(search, rows, const char *);
    search->work.settings->trial =
        (struct mt_job_trial){.row_count = rows,
                              .beside_bytes = *beside,
                              .before = *before,
                              .setting_count = search->work.setting_count,
                              .confs = search->work.confs,
                              .cells = *cells};
}

static struct mt_job_cell cell_of(const struct mt_rank_record *record,
                                  const struct mt_setting_trial *trial, bool is_searched)
{
    const struct mt_setting_device *device = mt_setting_device_of(trial, record->device);

    if (!device)
        return (struct mt_job_cell){.is_searched = is_searched};
    return (struct mt_job_cell){.peak_bytes = device->peak_bytes,
                                .driver_calls = device->driver_calls,
                                .is_searched = is_searched,
                                .serves = device->serves,
                                .is_exact = device->is_exact && record->needed_is_known &&
                                            record->is_complete,
                                .limit_bytes = device->limit_bytes,
                                .need_bytes = device->need_bytes};
}

static void fill_rows(struct search *search, uint64_t *beside, struct mt_job_cell *before)
{
    const struct tune_work *work = &search->work;

    for (uint32_t c = 0; c < search->check_count; c++) {
        const struct tuned_trace *trace = work->traces[search->trace_of[c]];
        const struct mt_rank_record *record =
            work->report->rows[work->settings->checks[c].row].record;

        beside[c] = mt_sub_or_0_u64(record->needed_bytes, record->allocator_need_bytes);
        before[c] = cell_of(record, &trace->before, true);
        if (work->settings->checks[c].is_tuned)
            work->settings->own_confs[c] = trace->tune->current.conf;
    }
}

static void fill_cells(struct search *search, struct mt_job_cell *cells, bool has_limits)
{
    const struct tune_work *work = &search->work;

    for (uint32_t i = 0; i < work->setting_count; i++)
        for (uint32_t c = 0; c < search->check_count; c++) {
            const struct tuned_trace *trace = work->traces[search->trace_of[c]];
            uint32_t row = work->settings->checks[c].row;

            cells[(size_t)i * search->check_count + c] =
                cell_of(work->report->rows[row].record, &trace->trials[i],
                        has_limits && (work->is_listed[i] || trace->is_own[i]));
        }
}

static int try_settings(struct search *search)
{
    struct mt_job_settings *settings = search->work.settings;
    struct mt_job_cell *before, *cells;
    uint64_t *beside;

    collect_settings(search);
    make_trial(search, &beside, &before, &cells);
    fill_rows(search, beside, before);
    int code = tune_replay_settings(&search->work);
    if (code != MT_EXIT_OK)
        return code;
    fill_cells(search, cells, false);
    mt_job_trial_shortlist(&settings->trial, MT_JOB_SHORTLIST, search->work.is_listed);
    code = tune_search_limits(&search->work);
    if (code != MT_EXIT_OK)
        return code;
    fill_cells(search, cells, true);
    mt_job_trial_choose(&settings->trial, &settings->choice);
    return MT_EXIT_OK;
}

static int tune(struct search *search)
{
    struct mt_job_settings *settings = search->work.settings;
    find_traces(search);
    int code = choose_rows(search);

    if (code == MT_EXIT_OK && !search->check_count)
        return say_nothing_to_replay(search);
    if (code == MT_EXIT_OK)
        code = try_settings(search);
    if (code == MT_EXIT_OK)
        mt_job_settings_states(search->work.report, settings->checks, search->check_count,
                               &settings->arena, settings->states);
    settings->trace_count = search->work.trace_count;
    for (uint32_t i = 0; i < search->known_count; i++)
        settings->readings += search->known[i]->readings;
    return code;
}

/* Adds the first settings of the front, which are sorted by peak. */
static void add_settings(struct tune_work *work, struct tuned_trace *trace)
{
    const struct mt_tune_summary *tune = trace->tune;

    for (size_t i = 0; i < tune->front_count; i++)
        if (i < SETTINGS_A_TRACE || i == tune->best)
            trace->is_own[setting_of(work, tune->front[i].conf)] = true;
    work->settings->tune_settings += tune->tried;
    work->settings->tuned_count++;
}

/* Names the traces that could not be read, and counts them for the exit status. */
static void say_unreadable(const struct search *search)
{
    for (uint32_t i = 0; i < search->known_count; i++) {
        const struct tuned_trace *trace = search->known[i];

        if (trace->status != MT_ERR_IO)
            continue;
        mt_message("cannot read '%s': %s", trace->path, trace->error.text);
        search->work.settings->unreadable_count++;
    }
}

int mt_fleet_tune(const struct mt_fleet_tuning *tuning, struct mt_job_settings **settings)
{
    struct search *search = mt_memory_zeroed(1, sizeof *search);

    *settings = mt_memory_zeroed(1, sizeof **settings);
    search->asked = tuning;
    search->work =
        (struct tune_work){.report = tuning->report, .jobs = tuning->jobs, .settings = *settings};
    mt_progress_start(&search->work.progress, tuning->common->quiet);
    int code = tune(search);
    mt_progress_end(&search->work.progress);
    if (code == MT_EXIT_OK)
        say_unreadable(search);
    mt_fleet_traces_release(&search->files);
    free(search);
    return code;
}
