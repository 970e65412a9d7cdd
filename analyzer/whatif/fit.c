#include "fit.h"

#include <stdlib.h>
#include <string.h>

#include "heap_choice.h"
#include "process_memory.h"
#include "replay_orders.h"
#include "policy.h"
#include "policy_options.h"
#include "check.h"
#include "util.h"

/* In MiB. Distances from an answer at which its neighbors are tried: segments come in steps of 2
 * MiB. */
static const uint64_t distances[] = {2, 4, 6, 8, 16, 32};

enum {
    FIRST_STEP = 64,   /* upwards, if the peak without a limit does not suffice */
    MAX_ROUNDS = 16,   /* searches for one answer, if limits contradict each other */
    MAX_LIMIT_LOG = 40 /* no limit above 2^40 MiB is tried */
};
#define MAX_LIMIT ((uint64_t)1 << MAX_LIMIT_LOG)

struct search {
    struct mt_source *source;
    struct mt_replay_options replay;
    struct mt_replay_summary *trial;
    struct mt_replay_summary *fitting; /* for the last limit that fits, among those tried alone */
    uint64_t fitting_bytes;            /* that limit, 0 = none so far */
    struct mt_arena *arena;
    struct mt_error *error;
    struct mt_fit_result *result;
    uint16_t device;
    uint64_t unplaced;     /* blocks of the initial state that fail without a limit */
    bool addresses_matter; /* in some replay so far */
    bool recorded;         /* recorded addresses are used where possible */
    struct mt_analyze_progress progress;
    uint32_t orders;
};

/* A trial of one limit. */
struct attempt {
    struct search *search;
    struct mt_replay_options replay;
    struct mt_replay_observer observer;
    struct mt_replay_summary *summary;
    uint64_t limit_bytes, unplaced;
    bool failed;
};

/* One answer takes about 30 replays, and about 15 for each further order; if it needs more,
 * progress waits at the end. */
static void tell_progress(const struct search *search)
{
    const double expected = 30 + 15 * (double)(search->orders ? search->orders - 1 : 0);
    const double share = (double)search->result->limits_tried / expected;

    if (search->progress.tell)
        search->progress.tell(search->progress.context, "searching for the smallest limit",
                              share < 1 ? share : 1);
}

static enum mt_status stop_at_failure(void *context, const struct mt_event *event,
                                      const struct mt_replay_view *view)
{
    struct attempt *attempt = context;

    if (event->device != attempt->search->device || view->block_bytes || view->is_left_out)
        return MT_OK;
    if (mt_fit_is_failure(event, view, attempt->search->result->died_at)) {
        attempt->failed = true;
        return MT_END;
    }
    if (event->kind == MT_EVENT_ALLOC)
        attempt->unplaced++;
    return MT_OK;
}

static void prepare(struct search *search, uint64_t limit_bytes, struct mt_replay_summary *summary,
                    struct attempt *attempt)
{
    *attempt = (struct attempt){.search = search,
                                .replay = search->replay,
                                .observer = {attempt, stop_at_failure, NULL},
                                .summary = summary,
                                .limit_bytes = limit_bytes};
    attempt->replay.limit_bytes = mt_max_u64(limit_bytes, 1); /* 0 would mean no limit */
}

static const struct mt_replay_result *result_of(const struct search *search,
                                                const struct mt_replay_summary *summary)
{
    size_t i;

    for (i = 0; i < summary->device_count; i++) {
        if (summary->devices[i].device == search->device)
            return &summary->devices[i];
    }
    return NULL;
}

static bool has_fit(const struct attempt *attempt)
{
    struct search *search = attempt->search;
    const struct mt_replay_result *found = result_of(search, attempt->summary);

    search->addresses_matter |= found && found->address_ties;
    search->recorded |= found && found->recorded_addresses;
    return found && !attempt->failed && attempt->unplaced <= search->unplaced &&
           attempt->limit_bytes >= search->result->initial_bytes;
}

static enum mt_status try_bytes(struct search *search, uint64_t limit_bytes, bool *fits)
{
    struct attempt attempt;
    enum mt_status status = mt_source_rewind(search->source, search->error);

    prepare(search, limit_bytes, search->trial, &attempt);
    if (status == MT_OK)
        status = mt_replay_run(search->source, &attempt.replay, &attempt.observer, search->trial,
                               search->error);
    if (status != MT_OK)
        return status;
    *fits = has_fit(&attempt);
    if (*fits) { /* kept for measure */
        search->trial = search->fitting;
        search->fitting = attempt.summary;
        search->fitting_bytes = limit_bytes;
    }
    return MT_OK;
}

/* Tries independent limits in one pass. */
static enum mt_status try_limits(struct search *search, const uint64_t *limits, size_t count,
                                 bool *fits)
{
    struct attempt attempts[MT_ARRAY_LEN(distances)];
    struct mt_replay_job jobs[MT_ARRAY_LEN(distances)];
    struct mt_replay_summary *summaries;
    enum mt_status status;
    size_t i;

    MT_ASSERT(count <= MT_ARRAY_LEN(distances));
    if (!count)
        return MT_OK;
    summaries = mt_memory_new(count * sizeof *summaries);
    for (i = 0; i < count; i++) {
        prepare(search, limits[i] * MT_MIB, &summaries[i], &attempts[i]);
        jobs[i] = (struct mt_replay_job){&attempts[i].replay, &attempts[i].observer, &summaries[i]};
    }
    search->result->limits_tried += (uint32_t)count;
    status = mt_source_rewind(search->source, search->error);
    if (status == MT_OK)
        status = mt_replay_run_together(search->source, jobs, count, NULL, search->error);
    for (i = 0; status == MT_OK && i < count; i++)
        fits[i] = has_fit(&attempts[i]);
    free(summaries);
    return status;
}

static enum mt_status try_limit(struct search *search, uint64_t limit, bool *fits)
{
    search->result->limits_tried++;
    tell_progress(search);
    return try_bytes(search, limit * MT_MIB, fits);
}

/* Memory at the peak under the answer: the search usually ended with a replay of it. */
static enum mt_status measure(struct search *search)
{
    const struct mt_replay_result *found;
    enum mt_status status = MT_OK;

    if (search->fitting_bytes != search->result->fit_bytes)
        status = try_bytes(search, search->result->fit_bytes, &search->result->fits);
    if (status != MT_OK || !search->result->fits)
        return status;
    found = result_of(search, search->fitting);
    search->result->fit_reserved_bytes = found->counters.reserved.peak;
    search->result->address_ties = found->address_ties;
    return MT_OK;
}

/* From *high upwards to the first limit that fits; *fits is false if there is none. */
static enum mt_status ascend(struct search *search, uint64_t *low, uint64_t *high, bool *fits)
{
    enum mt_status status;
    uint64_t step = FIRST_STEP;

    while ((status = try_limit(search, *high, fits)) == MT_OK && !*fits && *high < MAX_LIMIT) {
        *low = *high;
        *high = mt_min_u64(*high + step, MAX_LIMIT);
        step *= 2;
    }
    return status;
}

/* From *low downwards to the first limit that fails; 0 fails without a trial. */
static enum mt_status descend(struct search *search, uint64_t *low, uint64_t *high)
{
    enum mt_status status = MT_OK;
    uint64_t step = FIRST_STEP;
    bool fits = true;

    while (status == MT_OK && fits && *low > 0) {
        status = try_limit(search, *low, &fits);
        if (status == MT_OK && fits) {
            *high = *low;
            *low -= mt_min_u64(step, *low);
            step *= 2;
        }
    }
    return status;
}

/* low fails, high fits: until they are adjacent. */
static enum mt_status bisect(struct search *search, uint64_t *low, uint64_t *high)
{
    enum mt_status status = MT_OK;
    bool fits = false;

    MT_ASSERT(*low < *high);
    while (status == MT_OK && *high - *low > 1) {
        uint64_t middle = *low + (*high - *low) / 2;
        status = try_limit(search, middle, &fits);
        *(fits ? high : low) = middle;
    }
    return status;
}

/* The largest failing limit a little above `fit`, 0 = none. */
static enum mt_status look_above(struct search *search, uint64_t fit, uint64_t *fails)
{
    uint64_t limits[MT_ARRAY_LEN(distances)];
    bool fits[MT_ARRAY_LEN(distances)];
    enum mt_status status;
    size_t i;

    *fails = 0;
    for (i = 0; i < MT_ARRAY_LEN(distances); i++)
        limits[i] = fit + distances[i];
    status = try_limits(search, limits, MT_ARRAY_LEN(distances), fits);
    for (i = 0; status == MT_OK && i < MT_ARRAY_LEN(distances); i++)
        *fails = fits[i] ? *fails : limits[i];
    return status;
}

/* The smallest fitting limit a little below `fit`. */
static enum mt_status look_below(struct search *search, uint64_t fit)
{
    uint64_t limits[MT_ARRAY_LEN(distances)];
    bool fits[MT_ARRAY_LEN(distances)];
    enum mt_status status;
    size_t i, count = 0;

    while (count < MT_ARRAY_LEN(distances) && fit > distances[count]) {
        limits[count] = fit - distances[count];
        count++;
    }
    status = try_limits(search, limits, count, fits);
    for (i = 0; status == MT_OK && i < count; i++)
        if (fits[i])
            search->result->smaller_fit_bytes = limits[i] * MT_MIB;
    return status;
}

/* The first interval: a policy can hardly serve anything below the peak of requested bytes, and
 * nearly always can with its reserved peak without a limit. */
static enum mt_status enclose(struct search *search, uint64_t *low, uint64_t *high)
{
    const struct mt_fit_result *result = search->result;
    enum mt_status status;

    *high = mt_round_up(mt_min_u64(result->reserved_peak_bytes, MAX_LIMIT), MT_MIB) / MT_MIB;
    *high = mt_max_u64(*high, 1);
    *low = mt_min_u64(result->requested_peak_bytes / MT_MIB, *high - 1);
    status = ascend(search, low, high, &search->result->fits);
    return status == MT_OK && result->fits ? descend(search, low, high) : status;
}

/* For an order of addresses, in MiB. */
struct answer {
    uint64_t fits, fails; /* adjacent */
    uint64_t larger_fail, smaller_fit;
};

/* From an interval whose lower end fails. Every answer is checked against larger limits; if one of
 * those fails, the search continues above it. */
static enum mt_status search_between(struct search *search, uint64_t low, uint64_t high,
                                     struct answer *answer)
{
    struct mt_fit_result *result = search->result;
    uint64_t fails = 0, smaller = 0;
    enum mt_status status = MT_OK;
    size_t round;

    for (round = 0; status == MT_OK && result->fits; round++) {
        status = bisect(search, &low, &high);
        if (status == MT_OK)
            status = look_above(search, high, &fails);
        if (status != MT_OK || !fails || round == MAX_ROUNDS)
            break;
        smaller = smaller ? smaller : high;
        low = fails;
        high = fails + 1;
        status = ascend(search, &low, &high, &result->fits);
    }
    *answer = (struct answer){high, low, fails, smaller};
    MT_ASSERT(status != MT_OK || !result->fits || low + 1 == high);
    return status;
}

static enum mt_status search_fit(struct search *search)
{
    struct mt_fit_result *result = search->result;
    struct answer answer = {0};
    uint64_t low, high;
    enum mt_status status = enclose(search, &low, &high);

    if (status == MT_OK && result->fits)
        status = search_between(search, low, high, &answer);
    if (status != MT_OK || !result->fits)
        return status;
    result->fit_bytes = answer.fits * MT_MIB;
    result->fails_at_bytes = answer.fails * MT_MIB;
    result->larger_fail_bytes = answer.larger_fail * MT_MIB;
    result->smaller_fit_bytes = answer.smaller_fit * MT_MIB;
    status = look_below(search, answer.fits);
    return status == MT_OK ? measure(search) : status;
}

/* With addresses in another order; the search starts at the answer of the driver's order. */
static enum mt_status search_order(struct search *search, struct answer *answer)
{
    struct mt_fit_result *result = search->result;
    uint64_t high = result->fit_bytes / MT_MIB, low = high - 1;
    bool fits = false;
    enum mt_status status = ascend(search, &low, &high, &fits);

    *answer = (struct answer){0};
    if (status != MT_OK || !fits)
        return status;
    status = descend(search, &low, &high);
    if (status == MT_OK)
        status = search_between(search, low, high, answer);
    if (!result->fits)
        answer->fits = 0;
    result->fits = true;
    return status;
}

static enum mt_status explain(struct search *search, uint64_t limit_bytes,
                              struct mt_fit_failure *failure)
{
    search->replay.limit_bytes = mt_max_u64(limit_bytes, 1);
    return mt_fit_failure_find(search->source, &search->replay, search->device,
                               search->result->died_at, search->trial, search->arena, failure,
                               search->error);
}

/* Whether the limit in question suffices in this order. */
static enum mt_status try_given_limit(struct search *search, uint64_t limit_bytes)
{
    struct mt_fit_result *result = search->result;
    bool fits = true;
    enum mt_status status = limit_bytes ? try_bytes(search, limit_bytes, &fits) : MT_OK;

    if (status != MT_OK || fits)
        return status;
    result->limit_fits = false;
    return result->limit_fail_count++ ? MT_OK
                                      : explain(search, limit_bytes, &result->limit_failure);
}

static void note_order(struct search *search, uint32_t index, uint64_t fit_bytes)
{
    const struct mt_replay_options *replay = &search->replay;

    search->result->orders[index] = (struct mt_fit_order){
        replay->blind || !search->recorded ? mt_address_rule_name(replay->order.rule) : "recorded",
        replay->order, fit_bytes};
    search->result->order_count = index + 1;
}

static void widen(struct search *search, uint32_t index, const struct answer *answer)
{
    struct mt_fit_result *result = search->result;
    uint64_t fit_bytes = answer->fits * MT_MIB;

    note_order(search, index, fit_bytes);
    if (!fit_bytes)
        return;
    result->low_bytes = mt_min_u64(result->low_bytes, fit_bytes);
    result->larger_fail_bytes = mt_max_u64(result->larger_fail_bytes, answer->larger_fail * MT_MIB);
    if (fit_bytes <= result->high_bytes)
        return;
    result->high_bytes = fit_bytes;
    result->high_fails_at_bytes = answer->fails * MT_MIB;
}

/* The run's own addresses decided in that run. The next run gets others, so a replay without them
 * shows whether they matter. */
static enum mt_status look_without_recorded(struct search *search)
{
    bool fits;
    enum mt_status status;

    if (!search->recorded || search->addresses_matter)
        return MT_OK;
    mt_replay_use_order(&search->replay, 1, true);
    status = try_bytes(search, search->result->fit_bytes, &fits);
    search->addresses_matter |= status == MT_OK && !fits;
    mt_replay_use_order(&search->replay, 0, true);
    return status;
}

/* Answers with other addresses. An order in which no limit suffices leaves the range unchanged: it
 * requires more than any device has. */
static enum mt_status search_orders(struct search *search, const struct mt_fit_options *options)
{
    struct mt_fit_result *result = search->result;
    const bool recorded = search->recorded;
    enum mt_status status = MT_OK;

    note_order(search, 0, result->fit_bytes);
    result->low_bytes = result->high_bytes = result->fit_bytes;
    result->high_fails_at_bytes = result->fails_at_bytes;
    if (!result->fits || options->orders < 2)
        return MT_OK;
    status = look_without_recorded(search);
    if (status != MT_OK || !search->addresses_matter)
        return status;
    for (uint32_t i = 1; status == MT_OK && i < options->orders && i < MT_BASE_ORDERS; i++) {
        struct answer answer;

        mt_replay_use_order(&search->replay, i, recorded);
        status = search_order(search, &answer);
        if (status == MT_OK)
            status = try_given_limit(search, options->limit_bytes);
        if (status == MT_OK)
            widen(search, i, &answer);
    }
    mt_replay_use_order(&search->replay, 0, recorded);
    return status;
}

static enum mt_status search_device(struct search *search, const struct mt_fit_options *options)
{
    struct mt_fit_result *result = search->result;
    enum mt_status status;

    result->limit_fits = options->limit_bytes > 0;
    if (!result->reserved_peak_bytes && !result->requested_peak_bytes) {
        result->fits = result->limit_fits = true; /* there were no requests */
        return MT_OK;
    }
    status = search_fit(search);
    if (status == MT_OK)
        status = explain(search, result->fits ? result->fails_at_bytes : MAX_LIMIT * MT_MIB,
                         &result->first_failure);
    if (status == MT_OK)
        status = try_given_limit(search, options->limit_bytes);
    return status == MT_OK ? search_orders(search, options) : status;
}

/* Facts about the trace from a replay without a limit, by device. */
struct baseline {
    uint64_t ooms[MT_MAX_DEVICES], retries[MT_MAX_DEVICES];
    uint64_t died_at[MT_MAX_DEVICES], died_bytes[MT_MAX_DEVICES]; /* unless it continued */
    uint64_t unplaced[MT_MAX_DEVICES], initial_bytes[MT_MAX_DEVICES];
    uint64_t lost_segments[MT_MAX_DEVICES];
};

/* The run ended with the refusals after which it made no requests. */
static void watch_refusals(struct baseline *baseline, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_ALLOC)
        baseline->died_at[event->device] = MT_FIT_NOT_DIED;
    if (event->kind != MT_EVENT_OOM)
        return;
    if (baseline->died_at[event->device] == MT_FIT_NOT_DIED) {
        baseline->died_at[event->device] = event->seq;
        baseline->died_bytes[event->device] = event->size_bytes;
    }
    baseline->ooms[event->device]++;
}

static enum mt_status watch(void *context, const struct mt_event *event,
                            const struct mt_replay_view *view)
{
    struct baseline *baseline = context;

    if (event->device >= MT_MAX_DEVICES)
        return MT_OK;
    watch_refusals(baseline, event);
    if (!(event->flags & MT_EVENT_INITIAL) || !mt_event_is_memory(event))
        return MT_OK;
    if (event->kind == MT_EVENT_ALLOC && !view->block_bytes)
        baseline->unplaced[event->device]++;
    baseline->initial_bytes[event->device] =
        mt_max_u64(baseline->initial_bytes[event->device], view->counters->reserved.now);
    return MT_OK;
}

/* Retries of the run: those of its own allocator under the recorded or inferred limit. A trace
 * whose options cannot be simulated has none. */
static enum mt_status count_retries(struct search *search, struct baseline *baseline)
{
    const struct mt_replay_options as_recorded = {.policy =
                                                      mt_policy_of_run(&search->source->header)};
    enum mt_status status;
    size_t i;

    if (search->source->header.never_refused)
        return MT_OK;
    status = mt_replay_run(search->source, &as_recorded, NULL, search->trial, search->error);
    if (status == MT_ERR_UNSUPPORTED || status == MT_ERR_USAGE)
        search->trial->device_count = 0;
    else if (status != MT_OK)
        return status;
    for (i = 0; i < search->trial->device_count; i++) {
        const struct mt_replay_result *result = &search->trial->devices[i];
        baseline->retries[result->device] = result->counters.retries;
        baseline->lost_segments[result->device] = result->pools_inferred;
    }
    return mt_source_rewind(search->source, search->error);
}

static enum mt_status replay_unlimited(struct search *search, struct baseline *baseline,
                                       struct mt_fit_summary *summary)
{
    const struct mt_replay_observer observer = {baseline, watch, NULL};
    enum mt_status status;
    size_t i;

    status =
        mt_replay_run(search->source, &search->replay, &observer, search->trial, search->error);
    memcpy(summary->policy, search->trial->policy, sizeof summary->policy);
    for (i = 0; status == MT_OK && i < search->trial->device_count; i++) {
        const struct mt_replay_result *from = &search->trial->devices[i];
        struct mt_fit_result *result = &summary->devices[summary->device_count++];
        result->device = from->device;
        memcpy(result->pools, from->pools, sizeof result->pools);
        result->policy_exact = from->policy_exact;
        result->policy_doubt = from->policy_doubt;
        result->starts_in_middle = from->starts_in_middle;
        result->reserved_peak_bytes = from->counters.reserved.peak;
        result->requested_peak_bytes = from->counters.requested.peak;
        result->allocated_peak_bytes = from->counters.allocated.peak;
        result->requests = from->counters.allocations;
        result->gaps_left_out = from->restores.gaps_left_out;
        result->recorded_ooms = baseline->ooms[from->device];
        result->died_at = baseline->died_at[from->device];
        result->died_bytes = baseline->died_bytes[from->device];
        result->recorded_retries = baseline->retries[from->device];
        result->lost_segments = baseline->lost_segments[from->device];
        result->initial_bytes = baseline->initial_bytes[from->device];
    }
    return status;
}

/* Damage of the input is known only after a complete pass, and the last replay may have stopped
 * before. */
static enum mt_status read_to_the_end(struct search *search)
{
    struct mt_event_batch batch;
    enum mt_status status = mt_source_rewind(search->source, search->error);

    while (status == MT_OK)
        status = mt_source_next(search->source, &batch, search->error);
    return status == MT_END ? MT_OK : status;
}

static enum mt_status run(struct search *search, const struct mt_fit_options *options,
                          struct mt_fit_summary *summary)
{
    struct baseline baseline = {0};
    enum mt_status status = count_retries(search, &baseline);
    size_t i;

    for (i = 0; i < MT_MAX_DEVICES; i++)
        baseline.died_at[i] = MT_FIT_NOT_DIED;

    if (status == MT_OK)
        status = replay_unlimited(search, &baseline, summary);
    for (i = 0; status == MT_OK && i < summary->device_count; i++) {
        search->result = &summary->devices[i];
        search->device = search->result->device;
        search->fitting_bytes = 0;
        search->unplaced = baseline.unplaced[search->device];
        search->addresses_matter = search->recorded = false;
        status = search_device(search, options);
    }
    return status == MT_OK ? read_to_the_end(search) : status;
}

/* A program that calls the driver for each block would also do so on a smaller device. */
static const char *usual_policy(const struct mt_source *source)
{
    return source->view.level == MT_VIEW_DRIVER ? "none" : mt_policy_of_run(&source->header);
}

enum mt_status mt_fit_run(struct mt_source *source, const struct mt_fit_options *options,
                          struct mt_fit_summary *summary, struct mt_error *error)
{
    struct search search = {.source = source,
                            .error = error,
                            .arena = &summary->arena,
                            .progress = options->progress,
                            .orders = options->orders};
    struct mt_foresight *foresight;
    struct mt_policy_text policy;
    enum mt_status status;

    memset(summary, 0, sizeof *summary);
    status = mt_heap_view_choose(source, error);
    if (status != MT_OK)
        return status;
    search.replay.policy = options->policy ? options->policy : usual_policy(source);
    search.replay.no_inferred_limit = true;
    search.replay.no_inferred_pools =
        true; /* inference compares with the recording, and limits differ */
    status = mt_policy_text_parse(search.replay.policy, &policy, error);
    if (status == MT_OK && policy.ops->follow_segment)
        status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                         "simulates nothing, so it has no smallest limit");
    if (status != MT_OK)
        return status;
    foresight = mt_memory_zeroed(1, sizeof *foresight);
    search.trial = mt_memory_new(sizeof *search.trial);
    search.fitting = mt_memory_new(sizeof *search.fitting);
    search.replay.foresight = foresight;
    status = mt_foresight_make(source, &policy, foresight, error);
    if (status == MT_OK)
        status = run(&search, options, summary);
    mt_foresight_release(foresight);
    free(foresight);
    free(search.trial);
    free(search.fitting);
    return status;
}

void mt_fit_release(struct mt_fit_summary *summary)
{
    mt_arena_release(&summary->arena);
}
