#include "fit.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cards.h"
#include "check.h"
#include "fit_trials.h"
#include "policy_options.h"
#include "process_memory.h"
#include "replay.h"
#include "source.h"
#include "util.h"

/* In MiB. Distances from an answer at which its neighbors are tried: segments come in steps of 2
 * MiB. */
static const uint64_t distances[] = {2, 4, 6, 8, 16, 32};

enum {
    FIRST_STEP = 64,   /* upwards, if the peak without a limit does not suffice */
    MAX_ROUNDS = 16,   /* searches for one answer, if limits contradict each other */
    MAX_GUESSES = 3,   /* of one search before a reading */
    MAX_LIMIT_LOG = 40 /* no limit above 2^40 MiB is tried */
};
#define MAX_LIMIT ((uint64_t)1 << MAX_LIMIT_LOG)

/* For one device. It runs again after each reading, until every outcome that it needs is known.
 * Until then it continues with guesses, so that one reading answers for many of its limits. */
struct search {
    struct mt_fit_trials *trials;
    struct mt_fit_result *result;
    struct mt_fit_result start;            /* *result when a run of the search begins */
    struct mt_replay_options replay;       /* with the order of addresses that is searched */
    struct mt_replay_options limit_failed; /* with the first order in which the given limit fails */
    uint64_t unplaced;     /* blocks of the initial state that fail without a limit */
    uint64_t likely_bytes; /* guess of the answer in the order that is searched */
    bool addresses_matter; /* in some replay so far */
    bool recorded;         /* recorded addresses are used where possible */
    bool ties_recorded;    /* they decided */
    bool is_complete;      /* no outcome was guessed */
    uint32_t guesses;      /* in this order, that decided which limits come next */
};

static struct mt_fit_subject subject_of(const struct search *search)
{
    return (struct mt_fit_subject){search->result->device, search->replay.blind,
                                   search->replay.order};
}

static bool has_fit(struct search *search, const struct mt_fit_trial *trial, uint64_t limit_bytes)
{
    search->addresses_matter |= trial->address_ties > 0;
    search->recorded |= trial->recorded_addresses;
    return trial->has_events && !trial->failed && trial->unplaced <= search->unplaced &&
           limit_bytes >= trial->start_reserved_bytes;
}

/* Guesses that this limit and larger ones fit. */
static uint64_t likely_bytes(const struct search *search)
{
    const struct mt_fit_subject subject = subject_of(search);

    return mt_min_u64(mt_fit_trials_smallest(search->trials, &subject), search->likely_bytes);
}

/* Requests the outcome from the next reading. MT_END: that is full. */
static enum mt_status want(struct search *search, uint64_t limit_bytes)
{
    const struct mt_fit_subject subject = subject_of(search);

    search->is_complete = false;
    return mt_fit_trials_want(search->trials, &subject, limit_bytes) ? MT_OK : MT_END;
}

/* *fits is a guess if this returns false. */
static bool knows(struct search *search, uint64_t limit_bytes, bool *fits)
{
    const struct mt_fit_subject subject = subject_of(search);
    const struct mt_fit_trial *trial = mt_fit_trials_find(search->trials, &subject, limit_bytes);

    *fits = trial ? has_fit(search, trial, limit_bytes) : limit_bytes >= likely_bytes(search);
    return trial;
}

static enum mt_status try_bytes(struct search *search, uint64_t limit_bytes, bool *fits)
{
    return knows(search, limit_bytes, fits) ? MT_OK : want(search, limit_bytes);
}

/* Replays under the first and the last of the unknown limits: the others probably have the same
 * outcomes. MT_END: they are the neighbors of a guess that is probably wrong. */
static enum mt_status try_neighbors(struct search *search, const uint64_t *limits, size_t count,
                                    bool *fits)
{
    const bool is_first_order = !search->result->order_count;
    uint64_t first = 0, last = 0;
    enum mt_status status = MT_OK;

    if (search->guesses && is_first_order)
        return MT_END;
    search->result->limits_tried += count;
    for (size_t i = 0; i < count; i++) {
        if (knows(search, limits[i] * MT_MIB, &fits[i]))
            continue;
        first = first ? first : limits[i];
        last = limits[i];
    }
    if (first)
        status = want(search, first * MT_MIB);
    return last == first || status != MT_OK ? status : want(search, last * MT_MIB);
}

/* After a few guesses, the answers are worth more than further guesses. */
static enum mt_status try_limit(struct search *search, uint64_t limit, bool *fits)
{
    enum mt_status status = MT_OK;

    search->result->limits_tried++;
    if (knows(search, limit * MT_MIB, fits))
        return MT_OK;
    if (!search->guesses++ && likely_bytes(search) > MT_MIB)
        status = want(search, mt_round_up(likely_bytes(search), MT_MIB) - MT_MIB);
    if (search->guesses > MAX_GUESSES)
        return MT_END;
    return status == MT_OK ? want(search, limit * MT_MIB) : status;
}

/* Memory at the peak under the answer. */
static void measure(struct search *search)
{
    const struct mt_fit_subject subject = subject_of(search);
    const struct mt_fit_trial *trial =
        mt_fit_trials_find(search->trials, &subject, search->result->fit_bytes);

    if (!trial)
        return; /* a guess */
    search->result->fit_reserved_bytes = trial->reserved_peak_bytes;
    search->result->initial_bytes = trial->start_reserved_bytes;
    search->result->address_ties = trial->address_ties;
    search->ties_recorded = trial->ties_recorded;
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
    bool fits[MT_ARRAY_LEN(distances)] = {false};
    enum mt_status status;
    size_t i;

    *fails = 0;
    for (i = 0; i < MT_ARRAY_LEN(distances); i++)
        limits[i] = fit + distances[i];
    status = try_neighbors(search, limits, MT_ARRAY_LEN(distances), fits);
    for (i = 0; status == MT_OK && i < MT_ARRAY_LEN(distances); i++)
        *fails = fits[i] ? *fails : limits[i];
    return status;
}

/* The smallest fitting limit a little below `fit`. */
static enum mt_status look_below(struct search *search, uint64_t fit)
{
    uint64_t limits[MT_ARRAY_LEN(distances)];
    bool fits[MT_ARRAY_LEN(distances)] = {false};
    enum mt_status status;
    size_t i, count = 0;

    while (count < MT_ARRAY_LEN(distances) && fit > distances[count]) {
        limits[count] = fit - distances[count];
        count++;
    }
    status = try_neighbors(search, limits, count, fits);
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
    measure(search);
    return look_below(search, answer.fits);
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

/* Whether the limit in question suffices in this order. */
static enum mt_status try_given_limit(struct search *search, uint64_t limit_bytes)
{
    struct mt_fit_result *result = search->result;
    bool fits = true;
    enum mt_status status = limit_bytes ? try_bytes(search, limit_bytes, &fits) : MT_OK;

    if (status != MT_OK || fits)
        return status;
    result->limit_fits = false;
    if (!result->limit_fail_count++)
        search->limit_failed = search->replay;
    return MT_OK;
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
    search->addresses_matter |=
        status == MT_OK && (!fits || (!search->is_complete && search->ties_recorded)); /* a guess */
    mt_replay_use_order(&search->replay, 0, true);
    return status;
}

/* In one order after the first. */
static enum mt_status try_order(struct search *search, uint32_t index, uint64_t limit_bytes)
{
    struct answer answer;
    enum mt_status status;

    search->guesses = 0;
    status = search_order(search, &answer);
    if (status == MT_OK)
        status = try_given_limit(search, limit_bytes);
    if (status == MT_OK)
        widen(search, index, &answer);
    return status == MT_END ? MT_OK : status; /* the next order can be tried in the same reading */
}

/* Answers with other addresses. An order in which no limit suffices leaves the range unchanged: it
 * requires more than any device has. */
static enum mt_status search_orders(struct search *search, const struct mt_fit_options *options)
{
    struct mt_fit_result *result = search->result;
    const bool recorded = search->recorded;
    enum mt_status status = MT_OK;

    note_order(search, 0, result->fit_bytes);
    result->low_bytes = result->high_bytes = search->likely_bytes = result->fit_bytes;
    result->high_fails_at_bytes = result->fails_at_bytes;
    if (!result->fits || options->orders < 2)
        return MT_OK;
    status = look_without_recorded(search);
    if (status != MT_OK || !search->addresses_matter)
        return status;
    for (uint32_t i = 1; status == MT_OK && i < options->orders && i < MT_BASE_ORDERS; i++) {
        mt_replay_use_order(&search->replay, i, recorded);
        status = try_order(search, i, options->limit_bytes);
    }
    return status;
}

/* Sets search->is_complete if it is. */
static enum mt_status search_device(struct search *search, const struct mt_fit_options *options)
{
    struct mt_fit_result *result = search->result;
    enum mt_status status;

    *result = search->start;
    result->limit_fits = options->limit_bytes > 0;
    search->is_complete = true;
    if (!result->reserved_peak_bytes && !result->requested_peak_bytes) {
        result->fits = result->limit_fits = true; /* there were no requests */
        return MT_OK;
    }
    search->replay = search->trials->replay;
    search->likely_bytes = result->reserved_peak_bytes;
    search->addresses_matter = search->recorded = false;
    search->guesses = 0;
    status = search_fit(search);
    if (status == MT_OK)
        status = try_given_limit(search, options->limit_bytes);
    if (status == MT_OK)
        status = search_orders(search, options);
    return status == MT_END ? MT_OK : status;
}

struct fit {
    const struct mt_fit_options *options;
    struct mt_fit_summary *summary;
    struct mt_fit_trials trials;
    struct mt_replay_summary *scratch; /* of replays that are not trials */
    struct mt_error *error;
};

/* Facts about the trace, by device: first those from a replay without a limit, then those from a
 * replay of the run. */
struct baseline {
    uint64_t ooms[MT_MAX_DEVICES];
    uint64_t died_at[MT_MAX_DEVICES], died_bytes[MT_MAX_DEVICES]; /* unless it continued */
    uint64_t impossible_bytes[MT_MAX_DEVICES];
    uint64_t unplaced[MT_MAX_DEVICES];
    bool has_failed[MT_MAX_DEVICES]; /* a request that no limit can serve */
    uint64_t retries[MT_MAX_DEVICES], lost_segments[MT_MAX_DEVICES];
    /* The replay of the run had a limit, or tried requests that the run was refused. */
    bool needs_replay;
};

/* The run ended with the refusals after which it made no requests. */
static void watch_refusals(struct baseline *baseline, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_ALLOC)
        baseline->died_at[event->device] = MT_FIT_NOT_DIED;
    if (event->kind != MT_EVENT_OOM)
        return;
    if (mt_card_exceeds_all(event->size_bytes)) {
        baseline->impossible_bytes[event->device] = event->size_bytes;
    } else if (baseline->died_at[event->device] == MT_FIT_NOT_DIED) {
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
    if ((event->flags & MT_EVENT_INITIAL) && event->kind == MT_EVENT_ALLOC && !view->block_bytes)
        baseline->unplaced[event->device]++;
    else if (event->kind == MT_EVENT_ALLOC && !view->block_bytes)
        baseline->has_failed[event->device] = true;
    return MT_OK;
}

/* Keeps the outcome of the replay without a limit for the limits that change nothing. Not if the
 * run was refused a request: a replay under a limit tries it. */
static void keep_unlimited(struct mt_fit_trials *trials, const struct baseline *baseline,
                           const struct mt_replay_result *result)
{
    const uint16_t device = result->device;

    if (result->same_until_bytes == UINT64_MAX && !result->limit_bytes && !baseline->ooms[device] &&
        !baseline->has_failed[device])
        mt_fit_trials_keep(trials, result, baseline->unplaced[device]);
}

static enum mt_status begin_again(void *context)
{
    struct baseline *baseline = context;

    memset(baseline, 0, offsetof(struct baseline, retries));
    memset(baseline->died_at, 0xff, sizeof baseline->died_at);
    baseline->needs_replay = true;
    return MT_OK;
}

static void note_retries(const struct mt_replay_summary *run, struct baseline *baseline)
{
    for (size_t i = 0; i < run->device_count; i++) {
        const struct mt_replay_result *result = &run->devices[i];

        baseline->retries[result->device] = result->counters.retries;
        baseline->lost_segments[result->device] = result->pools_inferred;
        baseline->needs_replay |= result->limit_bytes > 0 || baseline->ooms[result->device] > 0;
    }
}

/* Retries of the run: those of its own allocator under the recorded or inferred limit. A trace
 * whose options cannot be simulated has none. If there is neither a limit nor a lost pool, this is
 * also the replay without a limit of that allocator. */
static enum mt_status count_retries(struct fit *fit, struct baseline *baseline)
{
    struct mt_source *source = fit->trials.source;
    const struct mt_replay_options as_recorded = {.policy = mt_policy_of_run(&source->header)};
    const struct mt_replay_observer observer = {baseline, watch, begin_again};
    bool is_own = !strcmp(as_recorded.policy, fit->trials.replay.policy);
    enum mt_status status;

    (void)begin_again(baseline);
    if (source->header.never_refused)
        return MT_OK;
    if (fit->options->run) {
        note_retries(fit->options->run, baseline);
        return MT_OK;
    }
    baseline->needs_replay = !is_own;
    status =
        mt_replay_run(source, &as_recorded, is_own ? &observer : NULL, fit->scratch, fit->error);
    if (status == MT_OK)
        note_retries(fit->scratch, baseline);
    else if (status != MT_ERR_UNSUPPORTED && status != MT_ERR_USAGE)
        return status;
    baseline->needs_replay |= status != MT_OK;
    return baseline->needs_replay ? mt_source_rewind(source, fit->error) : MT_OK;
}

/* Whether a replay shows that `watch` would note nothing. */
static bool is_uneventful(const struct mt_replay_summary *replay)
{
    for (size_t i = 0; replay && i < replay->device_count; i++) {
        const struct mt_replay_result *result = &replay->devices[i];

        if (result->limit_bytes || result->starts_in_middle || result->ooms_not_asked ||
            result->failed_requests || result->restores.gaps_left_out)
            return false;
    }
    return replay;
}

static enum mt_status replay_unlimited(struct fit *fit, struct baseline *baseline)
{
    const struct mt_replay_observer observer = {baseline, watch, NULL};
    struct mt_fit_summary *summary = fit->summary;
    enum mt_status status = MT_OK;

    if (is_uneventful(fit->options->unlimited)) {
        *fit->scratch = *fit->options->unlimited;
    } else if (baseline->needs_replay) {
        (void)begin_again(baseline);
        status = mt_replay_run(fit->trials.source, &fit->trials.replay, &observer, fit->scratch,
                               fit->error);
    }
    memcpy(fit->trials.died_at, baseline->died_at, sizeof fit->trials.died_at);
    memcpy(summary->policy, fit->scratch->policy, sizeof summary->policy);
    for (size_t i = 0; status == MT_OK && i < fit->scratch->device_count; i++) {
        const struct mt_replay_result *from = &fit->scratch->devices[i];
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
        result->impossible_bytes = baseline->impossible_bytes[from->device];
        result->recorded_retries = baseline->retries[from->device];
        result->lost_segments = baseline->lost_segments[from->device];
        keep_unlimited(&fit->trials, baseline, from);
    }
    return status;
}

static enum mt_status search_all(struct fit *fit, struct search *searches)
{
    bool are_complete = false;
    enum mt_status status = MT_OK;

    while (status == MT_OK && !are_complete) {
        are_complete = true;
        for (size_t i = 0; status == MT_OK && i < fit->summary->device_count; i++) {
            if (!searches[i].is_complete)
                status = search_device(&searches[i], fit->options);
            are_complete &= searches[i].is_complete;
        }
        if (status != MT_OK || are_complete)
            break;
        status = mt_fit_trials_read(&fit->trials, fit->error);
    }
    return status;
}

/* Replays up to the first failure under a limit. */
static enum mt_status explain(struct fit *fit, const struct mt_replay_options *replay,
                              const struct mt_fit_result *result, uint64_t limit_bytes,
                              struct mt_fit_failure *failure)
{
    struct mt_replay_options with = *replay;

    with.limit_bytes = mt_max_u64(limit_bytes, 1);
    return mt_fit_failure_find(fit->trials.source, &with, result->device, result->died_at,
                               fit->scratch, &fit->summary->arena, failure, fit->error);
}

static enum mt_status explain_failures(struct fit *fit, const struct search *search)
{
    struct mt_fit_result *result = search->result;
    enum mt_status status;

    if (!result->reserved_peak_bytes && !result->requested_peak_bytes)
        return MT_OK;
    status =
        explain(fit, &fit->trials.replay, result,
                result->fits ? result->fails_at_bytes : MAX_LIMIT * MT_MIB, &result->first_failure);
    if (status == MT_OK && result->limit_fail_count)
        status = explain(fit, &search->limit_failed, result, fit->options->limit_bytes,
                         &result->limit_failure);
    return status;
}

static enum mt_status run_searches(struct fit *fit, struct search *searches,
                                   const struct baseline *baseline)
{
    enum mt_status status;

    for (size_t i = 0; i < fit->summary->device_count; i++) {
        struct mt_fit_result *result = &fit->summary->devices[i];

        searches[i] = (struct search){.trials = &fit->trials,
                                      .result = result,
                                      .start = *result,
                                      .unplaced = baseline->unplaced[result->device]};
    }
    status = search_all(fit, searches);
    for (size_t i = 0; i < fit->summary->device_count && status == MT_OK; i++)
        if (!fit->options->limits_only)
            status = explain_failures(fit, &searches[i]);
    return status;
}

static enum mt_status run(struct fit *fit)
{
    struct baseline *baseline = mt_memory_zeroed(1, sizeof *baseline);
    struct search *searches = mt_memory_zeroed(MT_MAX_DEVICES, sizeof *searches);
    enum mt_status status;

    fit->scratch = mt_memory_new(sizeof *fit->scratch);
    status = count_retries(fit, baseline);
    if (status == MT_OK)
        status = replay_unlimited(fit, baseline);
    if (status == MT_OK)
        status = run_searches(fit, searches, baseline);
    if (status == MT_OK) /* the last reading may have ended early */
        mt_source_leave(fit->trials.source);
    free(fit->scratch);
    free(searches);
    free(baseline);
    return status;
}

/* A program that calls the driver for each block would also do so on a smaller device. */
static const char *usual_policy(const struct mt_source *source)
{
    return source->view.level == MT_VIEW_DRIVER ? "none" : mt_policy_of_run(&source->header);
}

enum mt_status mt_fit_run(struct mt_source *source, const struct mt_fit_options *options,
                          struct mt_fit_summary *summary, struct mt_error *error)
{
    struct fit fit = {
        .options = options, .summary = summary, .error = error, .trials = {.source = source}};
    struct mt_replay_options *replay = &fit.trials.replay;
    struct mt_foresight *foresight;
    struct mt_policy_text policy;
    enum mt_status status;

    memset(summary, 0, sizeof *summary);
    status = mt_heap_view_choose(source, error);
    if (status != MT_OK)
        return status;
    replay->policy = options->policy ? options->policy : usual_policy(source);
    if (!options->policy && strcmp(replay->policy, "recorded") == 0)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "%s: choose some with -p",
                       mt_header_why_no_rules(&source->header));
    replay->no_inferred_limit = true;
    replay->no_inferred_pools = true; /* inference compares with the recording, and limits differ */
    status = mt_policy_text_parse(replay->policy, &policy, error);
    if (status == MT_OK && policy.ops->follow_segment)
        status = mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                         "simulates nothing, so it has no smallest limit");
    if (status != MT_OK)
        return status;
    foresight = mt_memory_zeroed(1, sizeof *foresight);
    replay->foresight = foresight;
    status = mt_foresight_make(source, &policy, foresight, error);
    if (status == MT_OK)
        status = run(&fit);
    mt_fit_trials_release(&fit.trials);
    mt_foresight_release(foresight);
    free(foresight);
    return status;
}

void mt_fit_release(struct mt_fit_summary *summary)
{
    mt_arena_release(&summary->arena);
}
