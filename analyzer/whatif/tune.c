/* The grid is small enough to be tried completely: expandable segments, the largest block that is
 * split, and rounding interact, so changing one option at a time can miss the best. Options that
 * matter only with a good setting (the size of segments, garbage collection) are tried only on the
 * front. */
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "policy_options.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "replay.h"
#include "sorted.h"
#include "util.h"

enum {
    MAX_ROWS = 1024,
    MAX_FIT_ROWS = 6,         /* on the front: each costs a search (fit.h) */
    TOGETHER = 4,             /* settings in one reading, in two threads */
    LARGE_SEGMENT_SINCE = 211 /* PyTorch 2.11 */
};

/* Older releases of PyTorch reject 20, the size of a segment. */
static const uint64_t split_mib[] = {0, 21, 32, 64, 128, 256, 512, 1024};
static const uint64_t divisions[] = {0, 2, 4, 8, 16};
static const uint64_t segment_mib[] = {12, 16, 32, 64, 128};
static const double gc_thresholds[] = {0.6, 0.8, 0.9};

struct row {
    struct mt_pytorch_config config;
    struct mt_tune_row result;
    char policy[MT_TUNE_CONF_BYTES + 16];
    unsigned option_count;
    bool in_orders;                   /* tried with addresses in other orders */
    struct mt_replay_summary *replay; /* a whole one, if no row beat this one then; or NULL */
};

struct search {
    struct mt_source *source;
    const struct mt_tune_options *options;
    struct mt_replay_summary *replay;
    struct mt_error *error;
    struct row *rows;
    size_t count, expected; /* expected: total number of replays, for progress */
    size_t waiting;         /* rows after the first `count` that were not replayed yet */
    size_t replays;
    uint64_t refused;   /* requests that fail without any limit, not due to a setting */
    bool stopped;       /* the last reading did not reach the end */
    struct row current; /* the run's own setting; no replay under a given limit */
};

/* A replay of a new row. It stops when a finished row beats it. */
struct attempt {
    const struct search *search;
    struct row *row;
    struct mt_replay_options options;
    struct mt_replay_observer observer;
    uint64_t calls[MT_MAX_DEVICES];
    bool stopped;
};

static void show_progress(struct search *search)
{
    search->replays++;
    if (search->options->progress)
        search->options->progress(search->options->context,
                                  (double)mt_min_u64(search->replays, search->expected) /
                                      (double)search->expected);
}

static void add_device(struct mt_tune_row *row, const struct mt_replay_result *result)
{
    const struct mt_counters *counters = &result->counters;

    row->reserved_peak_bytes = mt_max_u64(row->reserved_peak_bytes, counters->reserved.peak);
    row->device_allocs += counters->device_allocs;
    row->device_frees += counters->device_frees;
    row->retries += counters->retries;
    row->address_ties += result->address_ties;
}

static uint64_t calls(const struct row *row)
{
    return row->result.device_allocs + row->result.device_frees;
}

/* Whether `a` is at least as good in every respect, and better in one. */
static bool beats(const struct row *a, const struct row *b)
{
    uint64_t peak_a = a->result.reserved_peak_bytes, peak_b = b->result.reserved_peak_bytes;

    if (peak_a > peak_b || calls(a) > calls(b))
        return false;
    return peak_a < peak_b || calls(a) < calls(b) || a->option_count < b->option_count ||
           (a->option_count == b->option_count && a < b); /* the first among equals */
}

static bool is_beaten(const struct search *search, const struct row *row)
{
    for (size_t i = 0; i < search->count; i++)
        if (&search->rows[i] != row && search->rows[i].result.serves &&
            beats(&search->rows[i], row))
            return true;
    return false;
}

static bool is_on_front(const struct search *search, const struct row *row)
{
    return row->result.serves && !is_beaten(search, row);
}

/* Peaks and calls only grow, so a row that is beaten stays beaten. The events of a call come before
 * the request that caused it. */
static enum mt_status stop_if_beaten(void *context, const struct mt_event *event,
                                     const struct mt_replay_view *view)
{
    struct attempt *attempt = context;
    struct mt_tune_row *row = &attempt->row->result;
    uint64_t *before, now;

    if (event->kind != MT_EVENT_ALLOC || event->device >= MT_MAX_DEVICES)
        return MT_OK;
    before = &attempt->calls[event->device];
    now = view->counters->device_allocs + view->counters->device_frees;
    if (now == *before)
        return MT_OK;
    row->reserved_peak_bytes = mt_max_u64(row->reserved_peak_bytes, view->counters->reserved.peak);
    row->device_allocs += now - *before;
    *before = now;
    attempt->stopped = is_beaten(attempt->search, attempt->row);
    return attempt->stopped ? MT_END : MT_OK;
}

/* Sets *row to the results of a replay. */
static void note_replay(struct search *search, const struct mt_replay_summary *replay,
                        struct mt_tune_row *row, uint64_t *failed)
{
    row->reserved_peak_bytes = row->device_allocs = 0;
    *failed = 0;
    for (size_t i = 0; i < replay->device_count; i++) {
        add_device(row, &replay->devices[i]);
        *failed += replay->devices[i].failed_requests;
    }
    show_progress(search);
}

static enum mt_status replay(struct search *search, const char *policy, uint64_t limit_bytes,
                             struct mt_tune_row *row, uint64_t *failed)
{
    const struct mt_replay_options options = {.policy = policy, .limit_bytes = limit_bytes};
    enum mt_status status = mt_source_rewind(search->source, search->error);

    if (status == MT_OK)
        status = mt_replay_run(search->source, &options, NULL, search->replay, search->error);
    if (status == MT_OK)
        note_replay(search, search->replay, row, failed);
    return status;
}

/* Replays rows in one reading. Under a limit all replays go to the end: see keep_sure. */
static enum mt_status try_rows(struct search *search, struct row *const *rows, size_t count)
{
    struct attempt attempts[TOGETHER];
    struct mt_replay_job jobs[TOGETHER];
    const uint64_t limit = search->options->limit_bytes;
    enum mt_status status;

    for (size_t i = 0; i < count; i++) {
        struct attempt *new = &attempts[i];

        *new = (struct attempt){.search = search, .row = rows[i]};
        new->options = (struct mt_replay_options){.policy = rows[i]->policy, .limit_bytes = limit};
        new->observer = (struct mt_replay_observer){new, stop_if_beaten, NULL};
        rows[i]->replay = mt_memory_new(sizeof *rows[i]->replay);
        jobs[i] =
            (struct mt_replay_job){&new->options, limit ? NULL : &new->observer, rows[i]->replay};
    }
    status = mt_source_rewind(search->source, search->error);
    if (status == MT_OK)
        status = mt_replay_run_together(search->source, jobs, count, NULL, search->error);
    search->stopped = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t failed = 0;

        if (status == MT_OK)
            note_replay(search, rows[i]->replay, &rows[i]->result, &failed);
        rows[i]->result.serves = !attempts[i].stopped && failed <= search->refused;
        search->stopped &= attempts[i].stopped;
        if (is_on_front(search, rows[i]))
            continue;
        free(rows[i]->replay);
        rows[i]->replay = NULL;
    }
    return status;
}

/* First the settings that beat most others: they split every block, have expandable segments, and
 * round sizes not at all or little. Neighbors in this order stop at about the same time. */
MT_DEFINE_POINTER_ORDER(by_promise, struct row,
                        MT_DESCENDING(config.max_split_bytes) ||
                            MT_DESCENDING(config.expandable_segments) ||
                            MT_DESCENDING(config.divisions[0] - 1) || MT_BY_PLACE)

/* Replays the waiting rows. */
static enum mt_status try_waiting(struct search *search)
{
    struct row **rows = mt_memory_new(MAX_ROWS * sizeof *rows);
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < search->waiting; i++)
        rows[i] = &search->rows[search->count + i];
    qsort(rows, search->waiting, sizeof *rows, by_promise);
    search->count += search->waiting;
    for (size_t i = 0; status == MT_OK && i < search->waiting; i += TOGETHER)
        status = try_rows(search, rows + i, mt_min_u64(search->waiting - i, TOGETHER));
    search->waiting = 0;
    free(rows);
    return status;
}

static unsigned count_options(const char *conf)
{
    unsigned count = *conf != '\0';

    for (; *conf; conf++)
        count += *conf == ','; /* lists in brackets are not used here */
    return count;
}

static bool is_known(const struct search *search, const char *conf)
{
    for (size_t i = 0; i < search->count + search->waiting; i++)
        if (!strcmp(search->rows[i].result.conf, conf))
            return true;
    return false;
}

static void add_config(struct search *search, const struct mt_pytorch_config *config)
{
    struct row row = {.config = *config};

    if (search->count + search->waiting == MAX_ROWS)
        return;
    mt_pytorch_config_spell(config, row.result.conf, sizeof row.result.conf);
    if (is_known(search, row.result.conf))
        return;
    (void)snprintf(row.policy, sizeof row.policy, "pytorch:%s", row.result.conf);
    row.option_count = count_options(row.result.conf);
    search->rows[search->count + search->waiting++] = row;
}

/* The defaults without a limit, which were replayed to learn what fails: the first row. */
static void keep_defaults(struct search *search, const struct mt_tune_row *result)
{
    struct mt_pytorch_config config;

    mt_pytorch_config_defaults(&config);
    add_config(search, &config);
    search->rows[0].result = *result;
    search->rows[0].result.serves = true;
    search->count++;
    search->waiting--;
}

static void set_divisions(struct mt_pytorch_config *config, uint64_t value)
{
    for (size_t i = 0; i < MT_PYTORCH_DIVISIONS; i++)
        config->divisions[i] = value;
}

static enum mt_status try_grid(struct search *search)
{
    struct mt_pytorch_config config;

    for (size_t expandable = 0; expandable < 2; expandable++)
        for (size_t split = 0; split < MT_ARRAY_LEN(split_mib); split++)
            for (size_t division = 0; division < MT_ARRAY_LEN(divisions); division++) {
                mt_pytorch_config_defaults(&config);
                config.expandable_segments = expandable;
                if (split_mib[split])
                    config.max_split_bytes = split_mib[split] * MT_MIB;
                set_divisions(&config, divisions[division]);
                add_config(search, &config);
            }
    return try_waiting(search);
}

/* PyTorch requires the largest block that is split to be no smaller than a segment. */
static bool is_legal(const struct mt_pytorch_config *config)
{
    return config->max_split_bytes >= config->large_segment_bytes;
}

static void refine(struct search *search, const struct mt_pytorch_config *of)
{
    struct mt_pytorch_config config;

    for (size_t i = 0; i < MT_ARRAY_LEN(segment_mib); i++) {
        config = *of;
        config.large_segment_bytes = segment_mib[i] * MT_MIB;
        config.max_non_split_rounding_bytes = config.large_segment_bytes;
        if (mt_pytorch_version(&search->source->header) >= LARGE_SEGMENT_SINCE && is_legal(&config))
            add_config(search, &config);
    }
    for (size_t i = 0; search->options->limit_bytes && i < MT_ARRAY_LEN(gc_thresholds); i++) {
        config = *of;
        config.gc_threshold = gc_thresholds[i];
        add_config(search, &config);
    }
}

MT_DEFINE_POINTER_ORDER(by_peak, struct row,
                        MT_ASCENDING(result.reserved_peak_bytes) || MT_BY_PLACE)

/* Rows of the front, by peak; at most `room`. */
static size_t find_front(struct search *search, struct row *front[], size_t room)
{
    size_t count = 0, i;

    for (i = 0; i < search->count && count < room; i++)
        if (is_on_front(search, &search->rows[i]))
            front[count++] = &search->rows[i];
    qsort(front, count, sizeof(struct row *), by_peak);
    return count;
}

static enum mt_status try_around_front(struct search *search)
{
    struct row *front[MT_MAX_TUNE_FRONT];
    size_t count = find_front(search, front, MT_MAX_TUNE_FRONT), i;

    for (i = 0; i < count; i++)
        refine(search, &front[i]->config);
    return try_waiting(search);
}

static enum mt_status find_fit(struct search *search, struct row *row)
{
    const struct mt_fit_options options = {.policy = row->policy,
                                           .orders = MT_BASE_ORDERS,
                                           .run = search->current.replay,
                                           .unlimited =
                                               row == &search->current ? NULL : row->replay,
                                           .limits_only = true};
    struct mt_fit_summary *fit = mt_memory_zeroed(1, sizeof *fit);
    enum mt_status status = mt_source_rewind(search->source, search->error);

    if (status == MT_OK)
        status = mt_fit_run(search->source, &options, fit, search->error);
    for (size_t i = 0; status == MT_OK && i < fit->device_count; i++)
        if (fit->devices[i].fits)
            row->result.fit_bytes = mt_max_u64(row->result.fit_bytes, fit->devices[i].high_bytes);
    mt_fit_release(fit);
    free(fit);
    show_progress(search);
    return status;
}

/* The peak with addresses in other orders, if they decided anything; and whether every request is
 * served in all of them. */
static enum mt_status try_orders(struct search *search, struct row *row)
{
    const struct mt_replay_options options = {.policy = row->policy,
                                              .limit_bytes = search->options->limit_bytes};
    struct mt_replay_summary *replay = row->replay ? row->replay : search->replay;
    enum mt_status status = MT_OK;
    uint64_t failed = 0;

    if (!row->result.address_ties || !row->result.serves)
        return MT_OK;
    if (!row->replay && (status = mt_source_rewind(search->source, search->error)) == MT_OK)
        status = mt_replay_run(search->source, &options, NULL, replay, search->error);
    if (status == MT_OK)
        status = mt_replay_orders(search->source, &options, MT_BASE_ORDERS, replay, search->error);
    for (uint16_t i = 0; status == MT_OK && i < replay->device_count; i++) {
        const struct mt_replay_result *result = &replay->devices[i];

        row->result.reserved_high_bytes =
            mt_max_u64(row->result.reserved_high_bytes, result->reserved_high_bytes);
        failed += result->most_failed_requests;
    }
    row->result.serves &= failed <= search->refused;
    show_progress(search);
    return status;
}

/* Under a limit a setting counts only if it serves in every order of addresses, as for `fit`.
 * Dropping one may return settings that it had beaten to the front. */
static enum mt_status keep_sure(struct search *search)
{
    struct row *front[MT_MAX_TUNE_FRONT];
    enum mt_status status = MT_OK;
    bool again = search->options->limit_bytes > 0;

    while (status == MT_OK && again) {
        size_t count = find_front(search, front, MT_MAX_TUNE_FRONT);

        again = false;
        for (size_t i = 0; status == MT_OK && i < count; i++) {
            if (front[i]->in_orders)
                continue;
            front[i]->in_orders = true;
            status = try_orders(search, front[i]);
            again |= !front[i]->result.serves;
        }
    }
    return status;
}

/* Whether `a` is the better recommendation. */
static bool is_better(const struct search *search, const struct mt_tune_row *a,
                      const struct mt_tune_row *b)
{
    uint64_t calls_a = a->device_allocs + a->device_frees;
    uint64_t calls_b = b->device_allocs + b->device_frees;

    if (a->serves != b->serves)
        return a->serves;
    if (search->options->limit_bytes && calls_a != calls_b)
        return calls_a < calls_b;
    if (a->reserved_peak_bytes != b->reserved_peak_bytes)
        return a->reserved_peak_bytes < b->reserved_peak_bytes;
    return calls_a < calls_b;
}

static enum mt_status answer(struct search *search, struct mt_tune_summary *summary)
{
    struct row *front[MT_MAX_TUNE_FRONT];
    const struct row *best = &search->current;
    const bool fits = search->options->fits;
    enum mt_status status = keep_sure(search);

    if (status == MT_OK)
        status = try_orders(search, &search->current);
    if (status != MT_OK)
        return status;
    summary->tried = search->count;
    summary->front_count = find_front(search, front, MT_MAX_TUNE_FRONT);
    summary->best = MT_TUNE_CURRENT;
    for (size_t i = 0; i < summary->front_count; i++) {
        if (!is_better(search, &front[i]->result, &best->result))
            continue;
        best = front[i];
        summary->best = i;
    }
    if (summary->best != MT_TUNE_CURRENT && !search->options->limit_bytes)
        status = try_orders(search, front[summary->best]);
    if (status == MT_OK && fits)
        status = find_fit(search, &search->current);
    summary->current = search->current.result;
    for (size_t i = 0; status == MT_OK && i < summary->front_count; i++) {
        if (fits && (i < MAX_FIT_ROWS || i == summary->best))
            status = find_fit(search, front[i]);
        summary->front[i] = front[i]->result;
    }
    return status;
}

/* The run's own setting; requests that fail with it fail for other reasons than options. */
static enum mt_status measure_current(struct search *search, struct mt_tune_summary *summary)
{
    struct mt_pytorch_config config;
    struct mt_tune_row unlimited = {0}, *current = &search->current.result;
    uint64_t failed;
    enum mt_status status =
        mt_pytorch_config_recorded(&search->source->header, &config, search->error);

    if (status != MT_OK)
        return status;
    mt_pytorch_config_spell(&config, current->conf, sizeof current->conf);
    status = replay(search, "pytorch:", 0, &unlimited, &search->refused);
    for (uint16_t i = 0; status == MT_OK && i < search->replay->device_count; i++)
        summary->run_ooms += search->replay->devices[i].ooms_not_asked;
    if (status == MT_OK)
        status = replay(search, "pytorch", search->options->limit_bytes, current, &failed);
    if (status != MT_OK)
        return status;
    if (!search->options->limit_bytes) {
        search->current.replay = mt_array_copy(search->replay, 1, sizeof *search->replay);
        keep_defaults(search, &unlimited);
    }
    if (search->replay->is_driver_level ||
        strcmp(mt_policy_of_run(&search->source->header), "pytorch") != 0) {
        summary->is_not_pytorch = true;
        return mt_fail(search->error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "no request of this trace goes to PyTorch's allocator");
    }
    current->serves = failed <= search->refused;
    summary->devices = search->replay->device_count;
    return MT_OK;
}

static enum mt_status run(struct search *search, struct mt_tune_summary *summary)
{
    enum mt_status status = measure_current(search, summary);

    if (status == MT_OK)
        status = try_grid(search);
    if (status == MT_OK)
        status = try_around_front(search);
    if (search->stopped)
        mt_source_leave(search->source);
    return status == MT_OK ? answer(search, summary) : status;
}

enum mt_status mt_tune_run(struct mt_source *source, const struct mt_tune_options *options,
                           struct mt_tune_summary *summary, struct mt_error *error)
{
    struct search search = {
        .source = source, .options = options, .error = error, .current = {.policy = "pytorch"}};

    memset(summary, 0, sizeof *summary);
    search.expected = 2 * MT_ARRAY_LEN(split_mib) * MT_ARRAY_LEN(divisions) + 20;
    search.rows = mt_memory_zeroed(MAX_ROWS, sizeof *search.rows);
    search.replay = mt_memory_new(sizeof *search.replay);
    enum mt_status status = run(&search, summary);
    for (size_t i = 0; i < MAX_ROWS; i++)
        free(search.rows[i].replay);
    free(search.rows);
    free(search.replay);
    free(search.current.replay);
    return status;
}
