/* Replays a source with a simulated allocator; orders of addresses to replay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "counters.h"
#include "device_model.h"
#include "foresight.h"
#include "one_replay.h"
#include "policy_options.h"
#include "pool_search.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "replay.h"
#include "replay_result.h"
#include "source.h"
#include "util.h"

/* Infers the rule by which the run's allocator chose among equal free blocks, if the trace does not
 * name the version of PyTorch. It is the rule whose replay agrees with the recorded addresses for
 * the longest time. */

/* A replay of the run by the rule in source->header.free_order. */
struct free_order_trial {
    void *context;
    enum mt_status (*run)(void *context, struct mt_pool_reach *reach, struct mt_error *error);
};

/* `lowest` is the result of the replay with MT_FREE_LOWEST. Makes two more trials, and sets
 * source->header.free_order to the rule whose replay agreed longest. */
static enum mt_status free_order_search(struct mt_source *source, struct mt_pool_reach lowest,
                                        const struct free_order_trial *trial,
                                        struct mt_error *error)
{
    static const enum mt_free_order others[] = {MT_FREE_OLDEST_SEGMENT, MT_FREE_OLDEST_BLOCK};
    enum mt_free_order best = MT_FREE_LOWEST;
    struct mt_pool_reach most = lowest, reach;
    enum mt_status status = MT_OK;

    for (size_t i = 0; status == MT_OK && i < MT_ARRAY_LEN(others); i++) {
        source->header.free_order = others[i];
        status = trial->run(trial->context, &reach, error);
        if (status != MT_OK || !mt_pool_reach_is_further(reach, most))
            continue;
        most = reach;
        best = others[i];
    }
    source->header.free_order = best;
    return status;
}

static enum mt_status find_policy(struct mt_one_replay *replay, struct mt_error *error)
{
    const char *why = mt_header_why_only_recorded(&replay->source->header);
    const char *default_policy = why || mt_one_replay_is_driver_level(replay)
                                     ? "recorded"
                                     : mt_policy_of_run(&replay->source->header);
    const char *asked = replay->options->policy ? replay->options->policy : default_policy;
    struct mt_policy_text *policy = &replay->policy;
    enum mt_status status = mt_policy_text_parse(asked, policy, error);

    if (status != MT_OK)
        return status;
    if (why && !policy->ops->follow_segment)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "only what was recorded can be replayed: %s", why);
    bool follows_recording = policy->ops->follows_recording ||
                             mt_policy_recorded_options(&replay->source->header, policy->ops->name);
    replay->as_recorded = follows_recording && !policy->options && !*policy->pools &&
                          (!mt_one_replay_is_driver_level(replay) || policy->ops->follow_segment);
    return MT_OK;
}

/* Only the recorded options explain the recorded refusals, so other options are replayed without a
 * limit unless one is given. */
static bool limit_is_wanted(const struct mt_one_replay *replay)
{
    return !replay->options->limit_bytes && !replay->options->no_inferred_limit &&
           replay->as_recorded && !replay->source->header.memory_limit_bytes &&
           !replay->source->header.never_refused;
}

struct limit_search {
    struct mt_source *source;
    const struct mt_replay_options *options;
    struct mt_replay_summary *summary; /* of the last trial, NULL before the first */
};

static enum mt_status try_limit(void *context, uint64_t limit_bytes, bool *compared,
                                struct mt_replay_verify *verify, struct mt_error *error)
{
    struct limit_search *search = context;
    struct mt_replay_options options = *search->options;

    if (!search->summary)
        search->summary = mt_memory_new(sizeof *search->summary);
    options.verify = true;
    options.blind = false;
    options.no_inferred_pools = true;
    options.limit_bytes = limit_bytes;
    enum mt_status status = mt_replay_run(search->source, &options, NULL, search->summary, error);
    *compared = search->summary->device_count > 0;
    *verify = search->summary->devices[0].verify;
    return status == MT_OK ? mt_source_rewind(search->source, error) : status;
}

/* Garbage collection is evidence only of PyTorch's limit. */
static enum mt_status search_limit(struct mt_one_replay *replay, struct mt_error *error)
{
    struct limit_search search = {replay->source, replay->options, NULL};
    const struct mt_limit_trial trial = {&search, try_limit};

    if (replay->policy.ops != &mt_policy_pytorch)
        return MT_OK;
    enum mt_status status = mt_limit_search(replay->watch, &trial, error);
    free(search.summary);
    return status;
}

/* Tries a run without a limit, which suffices for most runs: they were never refused anything. */
static enum mt_status try_unlimited(struct mt_one_replay *replay, bool *done,
                                    struct mt_error *error)
{
    replay->watching = true;
    enum mt_status status = mt_one_replay_run(replay, error);
    replay->watching = false;
    *done = status != MT_OK || (!replay->stopped && !mt_limit_matters(replay->watch));
    if (*done)
        return status;
    if (replay->observer)
        status = replay->observer->restart(replay->observer->context);
    return status == MT_OK ? mt_source_rewind(replay->source, error) : status;
}

/* Reads all events before a run that cannot be tried, or whose trial stopped early. */
static enum mt_status run_with_limit(struct mt_one_replay *replay, struct mt_error *error)
{
    bool may_try = replay->policy.ops == &mt_policy_pytorch &&
                   (!replay->observer || replay->observer->restart);
    enum mt_status status = MT_OK;
    bool done = false;

    replay->watch = mt_limit_watch_new(&replay->source->header);
    if (may_try)
        status = try_unlimited(replay, &done, error);
    if (status != MT_OK || done)
        return status;
    if (!may_try || replay->stopped) {
        mt_limit_watch_restart(replay->watch);
        status = mt_limit_watch_source(replay->watch, replay->source, error);
    }
    if (status == MT_OK)
        status = search_limit(replay, error);
    return status == MT_OK ? mt_one_replay_run(replay, error) : status;
}

/* Whether to run again if the replay differs from the trace. A run that agrees costs only the
 * comparison. */
static bool is_repairable(const struct mt_one_replay *replay)
{
    return replay->policy.ops == &mt_policy_pytorch && replay->as_recorded &&
           !mt_one_replay_is_driver_level(replay) && !replay->options->blind &&
           !replay->options->no_inferred_pools && (!replay->observer || replay->observer->restart);
}

static bool pools_are_watched(const struct mt_one_replay *replay)
{
    return is_repairable(replay) && !replay->source->header.never_refused;
}

/* Whether neither the version nor an earlier replay determines which of several equal free blocks
 * is used first. */
static bool order_is_open(const struct mt_one_replay *replay)
{
    const struct mt_trace_header *header = &replay->source->header;

    return replay->policy.ops == &mt_policy_pytorch && !mt_one_replay_is_driver_level(replay) &&
           header->free_order == MT_FREE_ORDER_UNKNOWN && !mt_pytorch_version(header) &&
           !strcmp(mt_policy_of_run(header), mt_policy_pytorch.name);
}

static bool order_is_watched(const struct mt_one_replay *replay)
{
    return is_repairable(replay) && order_is_open(replay);
}

static struct mt_pool_reach reach_of(const struct mt_replay_summary *summary)
{
    struct mt_pool_reach reach = {UINT64_MAX, 0};

    for (uint16_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_verify *verify = &summary->devices[i].verify;
        reach.exact += verify->addresses_exact + verify->segment_events_exact;
        if (verify->first_difference[0] && !verify->actions_exact)
            reach.event = mt_min_u64(reach.event, verify->first_difference_event);
    }
    return reach;
}

/* Replays with these pools, without the observer. */
static enum mt_status try_pools(void *context, const struct mt_lost_pools *pools,
                                struct mt_pool_reach *reach, struct mt_error *error)
{
    struct mt_one_replay trial = *(const struct mt_one_replay *)context;
    enum mt_status status = mt_source_rewind(trial.source, error);

    trial.pools = pools;
    trial.observer = NULL;
    trial.summary = mt_memory_new(sizeof *trial.summary);
    if (status == MT_OK)
        status = mt_one_replay_run(&trial, error);
    if (status == MT_OK)
        *reach = reach_of(trial.summary);
    free(trial.summary);
    return status;
}

/* After a first run that differs: looks for pools that remove or delay the difference, and replays
 * with them. */
static enum mt_status replay_with_pools(struct mt_one_replay *replay, struct mt_error *error)
{
    struct mt_pool_reach before = reach_of(replay->summary), best;
    struct mt_pool_trial trial = {replay, try_pools};
    struct mt_pool_evidence evidence;
    struct mt_lost_pools pools;
    enum mt_status status = mt_pool_search(replay->source, &trial, &evidence, &pools, &best, error);

    if (status == MT_OK && best.event > before.event) {
        replay->pools = &pools;
        if (replay->observer)
            status = replay->observer->restart(replay->observer->context);
        if (status == MT_OK)
            status = mt_source_rewind(replay->source, error);
        if (status == MT_OK)
            status = mt_one_replay_run(replay, error);
        replay->pools = NULL;
    }
    mt_lost_pools_release(&pools);
    mt_pool_evidence_release(&evidence);
    return status;
}

static enum mt_status run_once(struct mt_one_replay *replay, struct mt_error *error)
{
    free(replay->watch);
    replay->watch = NULL;
    return limit_is_wanted(replay) ? run_with_limit(replay, error)
                                   : mt_one_replay_run(replay, error);
}

static enum mt_status try_order(void *context, struct mt_pool_reach *reach, struct mt_error *error)
{
    return try_pools(context, NULL, reach, error);
}

/* Whether another order of free blocks may explain the difference. It moves blocks, and does not
 * change driver requests before that. */
static bool may_be_the_order(const struct mt_replay_summary *summary)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].verify.first_is_address)
            return true;
    return false;
}

/* After a replay with the lowest address that compared. */
static enum mt_status find_order(struct mt_one_replay *replay, struct mt_error *error)
{
    const struct free_order_trial trial = {replay, try_order};

    if (may_be_the_order(replay->summary))
        return free_order_search(replay->source, reach_of(replay->summary), &trial, error);
    replay->source->header.free_order = MT_FREE_LOWEST;
    return MT_OK;
}

/* After a first run: determines the order of free blocks, and replays with it if it is another. */
static enum mt_status settle_order(struct mt_one_replay *replay, struct mt_error *error)
{
    enum mt_status status = find_order(replay, error);

    if (status != MT_OK || replay->source->header.free_order == MT_FREE_LOWEST)
        return status;
    if (replay->observer)
        status = replay->observer->restart(replay->observer->context);
    if (status == MT_OK)
        status = mt_source_rewind(replay->source, error);
    return status == MT_OK ? run_once(replay, error) : status;
}

/* A replay with options that the run did not have cannot be compared with it. Learns the order from
 * a replay of the run itself. */
static enum mt_status learn_order(const struct mt_one_replay *replay, struct mt_error *error)
{
    const struct mt_replay_options options = {
        .policy = "pytorch", .verify = true, .no_inferred_limit = true, .no_inferred_pools = true};
    struct mt_one_replay run = {.options = &options, .source = replay->source};

    run.summary = mt_memory_zeroed(1, sizeof *run.summary);
    enum mt_status status = find_policy(&run, error);
    if (status == MT_OK)
        status = mt_one_replay_run(&run, error);
    if (status == MT_OK)
        status = find_order(&run, error);
    if (status == MT_OK)
        status = mt_source_rewind(run.source, error);
    free(run.summary);
    return status;
}

/* Removes results of a comparison that the caller did not request. */
static void forget_comparison(struct mt_replay_summary *summary)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        memset(&summary->devices[i].verify, 0, sizeof summary->devices[i].verify);
}

/* Returns the caller's foresight, or a new one, also in *made. */
static enum mt_status foresee(struct mt_one_replay *replay, struct mt_foresight **made,
                              struct mt_error *error)
{
    if (!mt_foresight_is_wanted(&replay->policy))
        return MT_OK;
    replay->foresight = replay->options->foresight;
    if (replay->foresight)
        return MT_OK;
    *made = mt_memory_new(sizeof **made);
    enum mt_status status = mt_foresight_make(replay->source, &replay->policy, *made, error);
    replay->foresight = *made;
    return status;
}

/* Completes the spelling of what was simulated: the policy's own spelling, and the pools. */
static void finish_spelling(const struct mt_one_replay *replay)
{
    char *text = replay->summary->policy;
    size_t room = sizeof replay->summary->policy;

    if (!text[0])
        snprintf(text, room, "%s", replay->policy.ops ? replay->policy.ops->name : "");
    size_t used = strlen(text);
    if (replay->foresight)
        snprintf(text + used, room - used, "%s", replay->policy.pools);
}

/* Decides what is simulated. *made: foresight for this replay only, NULL = none; the caller owns it
 * even after a failure. */
static enum mt_status open_replay(struct mt_one_replay *replay, struct mt_source *source,
                                  const struct mt_replay_job *job, struct mt_foresight **made,
                                  struct mt_error *error)
{
    memset(job->summary, 0, sizeof *job->summary);
    *replay = (struct mt_one_replay){.options = job->options,
                                     .observer = job->observer,
                                     .summary = job->summary,
                                     .source = source};
    *made = NULL;
    enum mt_status status = mt_heap_view_choose(source, error);
    if (status == MT_OK)
        status = find_policy(replay, error);
    if (status == MT_OK && order_is_open(replay) && !order_is_watched(replay))
        status = learn_order(replay, error);
    return status == MT_OK ? foresee(replay, made, error) : status;
}

static void close_replay(struct mt_one_replay *replay, struct mt_foresight *made)
{
    if (!replay->options->verify)
        forget_comparison(replay->summary);
    free(replay->watch);
    finish_spelling(replay);
    mt_foresight_release(made);
    free(made);
}

enum mt_status mt_replay_run(struct mt_source *source, const struct mt_replay_options *options,
                             const struct mt_replay_observer *observer,
                             struct mt_replay_summary *summary, struct mt_error *error)
{
    const struct mt_replay_job job = {options, observer, summary};
    struct mt_one_replay replay;
    struct mt_foresight *made;

    if (error)
        *error = (struct mt_error){MT_OK, MT_NO_OFFSET, ""};
    enum mt_status status = open_replay(&replay, source, &job, &made, error);
    if (status == MT_OK) {
        replay.compares = pools_are_watched(&replay) || order_is_watched(&replay);
        status = run_once(&replay, error);
    }
    if (status == MT_OK && order_is_watched(&replay))
        status = settle_order(&replay, error);
    if (status == MT_OK && pools_are_watched(&replay) && reach_of(summary).event != UINT64_MAX)
        status = replay_with_pools(&replay, error);
    close_replay(&replay, made);
    return status;
}

/* Whether no further replays are needed to find something out: one pass suffices. */
static bool is_plain(const struct mt_one_replay *replay)
{
    return !limit_is_wanted(replay) && !pools_are_watched(replay) && !order_is_watched(replay);
}

static enum mt_status check_plain(const struct mt_one_replay *replay, struct mt_error *error)
{
    MT_CHECK(error, is_plain(replay));
    return MT_OK;
}

/* How many of the replays run in this thread, beside the listener, which costs as much as one. The
 * others run in a second one, unless reading the source may still change the symbols. A leader and
 * its followers cost about as much as one replay. */
static size_t count_own(const struct mt_one_replay *replays, size_t count, bool listens)
{
    size_t leaders = 0, own = 0, i;

    if (!replays->source->symbols_complete)
        return count;
    for (i = 0; i < count; i++)
        leaders += !replays[i].leader;
    for (i = 0; i < count && own <= (leaders + !listens) / 2; i++)
        own += !replays[i].leader;
    return own > (leaders + !listens) / 2 ? i - 1 : count;
}

enum mt_status mt_replay_run_together(struct mt_source *source, const struct mt_replay_job *jobs,
                                      size_t count, const struct mt_replay_listener *listener,
                                      struct mt_error *error)
{
    struct mt_one_replay *replays = mt_memory_zeroed(count + 1, sizeof *replays);
    struct mt_foresight **made = mt_memory_zeroed(count + 1, sizeof *made);
    enum mt_status status = MT_OK;
    size_t opened = 0;

    if (error)
        *error = (struct mt_error){MT_OK, MT_NO_OFFSET, ""};
    for (; status == MT_OK && opened < count; opened++) {
        status = open_replay(&replays[opened], source, &jobs[opened], &made[opened], error);
        if (status == MT_OK)
            status = check_plain(&replays[opened], error);
        if (status == MT_OK && opened)
            mt_one_replay_follow(&replays[opened], &replays[opened - 1]);
    }
    if (status == MT_OK)
        status = mt_one_replay_run_all(replays, count, count_own(replays, count, listener != NULL),
                                       listener, error);
    for (size_t i = 0; i < opened; i++)
        close_replay(&replays[i], made[i]);
    free(replays);
    free(made);
    return status;
}

/* Every replay of a source has the devices in the same order. Whether one in another order of
 * addresses may differ. */
static bool begin(struct mt_replay_summary *summary, uint32_t orders)
{
    bool open = false;

    for (uint16_t i = 0; i < summary->device_count; i++) {
        struct mt_replay_result *result = &summary->devices[i];

        result->order_count = result->address_ties && result->any_order ? orders : 1;
        result->reserved_low_bytes = result->counters.reserved.peak;
        result->reserved_high_bytes = result->counters.reserved.peak;
        result->allocated_low_bytes = result->counters.allocated.peak;
        result->allocated_high_bytes = result->counters.allocated.peak;
        result->most_failed_requests = result->failed_requests;
        open |= result->address_ties && !result->any_order;
    }
    return open;
}

/* Runs replays that differ from `like` only in their orders of addresses. */
static enum mt_status run_orders(const struct mt_one_replay *like, const struct mt_replay_job *jobs,
                                 size_t count, struct mt_error *error)
{
    const size_t step = is_plain(like) ? count : 1;
    enum mt_status status = MT_OK;

    for (size_t i = 0; status == MT_OK && i < count; i += step) {
        status = mt_source_rewind(like->source, error);
        if (status == MT_OK)
            status = step > 1 ? mt_replay_run_together(like->source, jobs, count, NULL, error)
                              : mt_replay_run(like->source, jobs[i].options, NULL, jobs[i].summary,
                                              error);
    }
    return status;
}

static void widen_range(uint64_t *low, uint64_t *high, uint64_t peak)
{
    *low = mt_min_u64(*low, peak);
    *high = mt_max_u64(*high, peak);
}

static void widen(struct mt_replay_summary *summary, const struct mt_replay_summary *other)
{
    for (uint16_t i = 0; i < summary->device_count && i < other->device_count; i++) {
        struct mt_replay_result *result = &summary->devices[i];
        const struct mt_counters *counters = &other->devices[i].counters;

        if (!result->address_ties || result->any_order)
            continue;
        result->order_count++;
        widen_range(&result->reserved_low_bytes, &result->reserved_high_bytes,
                    counters->reserved.peak);
        widen_range(&result->allocated_low_bytes, &result->allocated_high_bytes,
                    counters->allocated.peak);
        result->most_failed_requests =
            mt_max_u64(result->most_failed_requests, other->devices[i].failed_requests);
    }
}

enum mt_status mt_replay_orders(struct mt_source *source, const struct mt_replay_options *options,
                                uint32_t orders, struct mt_replay_summary *summary,
                                struct mt_error *error)
{
    const uint32_t count = (uint32_t)mt_min_u64(mt_max_u64(orders, 1), MT_BASE_ORDERS);
    struct mt_one_replay like = {.options = options, .source = source};
    struct mt_replay_options with[MT_BASE_ORDERS];
    struct mt_replay_job jobs[MT_BASE_ORDERS];
    struct mt_replay_summary *others;
    struct mt_foresight *made = NULL;

    if (!begin(summary, count) || count < 2)
        return MT_OK;
    enum mt_status status = mt_source_rewind(source, error);
    if (status == MT_OK)
        status = find_policy(&like, error);
    if (status == MT_OK)
        status = foresee(&like, &made, error);
    others = mt_memory_new(count * sizeof *others);
    for (uint32_t i = 1; i < count; i++) {
        with[i] = *options;
        with[i].foresight = like.foresight;
        mt_replay_use_order(&with[i], i, summary->devices[0].recorded_addresses);
        jobs[i] = (struct mt_replay_job){&with[i], NULL, &others[i]};
    }
    like.options = &with[1];
    if (status == MT_OK)
        status = run_orders(&like, jobs + 1, count - 1, error);
    for (uint32_t i = 1; status == MT_OK && i < count; i++)
        widen(summary, &others[i]);
    free(others);
    mt_foresight_release(made);
    free(made);
    return status;
}

bool mt_replay_is_exact(const struct mt_replay_summary *summary)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].has_events && !summary->devices[i].verify.exact)
            return false;
    return true;
}

/* Other levels at the end than the recorded ones come from the state at the start, which no other
 * policy knows better. */
static bool rules_hold(const struct mt_replay_summary *summary)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].has_events && !summary->devices[i].verify.actions_exact)
            return false;
    return true;
}

static void note_difference(const struct mt_replay_summary *summary, char difference[240])
{
    strcpy(difference, "events differ");
    for (size_t i = summary->device_count; i > 0; i--) {
        const struct mt_replay_result *device = &summary->devices[i - 1];

        if (!device->verify.exact && *device->verify.first_difference)
            memcpy(difference, device->verify.first_difference, 240);
    }
}

/* By device; both replays have the same ones. */
static void note_rule_shares(const struct mt_replay_summary *summary,
                             struct mt_rule_share shares[MT_MAX_DEVICES])
{
    for (uint16_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_verify *verify = &summary->devices[i].verify;

        shares[summary->devices[i].device] = (struct mt_rule_share){
            true, verify->addresses_exact, verify->segment_events, verify->segment_events_exact};
    }
}

static void fill_rule_shares(struct mt_replay_summary *summary,
                             const struct mt_rule_share shares[MT_MAX_DEVICES])
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        summary->devices[i].by_rule = shares[summary->devices[i].device];
}

static enum mt_status run_verified(struct mt_source *source,
                                   const struct mt_replay_options *options, const char *policy,
                                   const struct mt_replay_observer *observer,
                                   struct mt_replay_summary *summary, struct mt_error *error)
{
    struct mt_replay_options with = *options;

    with.policy = policy;
    with.verify = true;
    memset(summary, 0, sizeof *summary);
    return mt_replay_run(source, &with, observer, summary, error);
}

enum mt_status mt_replay_as_run(struct mt_source *source, const struct mt_replay_options *options,
                                const struct mt_replay_observer *observer,
                                struct mt_replay_summary *summary, char difference[240],
                                struct mt_error *error)
{
    struct mt_rule_share shares[MT_MAX_DEVICES] = {{0}};
    const char *why = mt_header_why_only_recorded(&source->header);
    enum mt_status status = mt_heap_view_choose(source, error);

    if (!why && source->view.level != MT_VIEW_DRIVER)
        why = mt_header_why_no_rules(&source->header);
    snprintf(difference, 240, "%s", why ? why : "");
    if (status)
        return status;
    if (why || source->view.level == MT_VIEW_DRIVER)
        return run_verified(source, options, "recorded", observer, summary, error);
    status =
        run_verified(source, options, mt_policy_of_run(&source->header), observer, summary, error);
    if (status || rules_hold(summary) || options->limit_bytes || options->blind)
        return status;
    note_difference(summary, difference);
    note_rule_shares(summary, shares);
    status = observer->restart(observer->context);
    if (!status)
        status = mt_source_rewind(source, error);
    if (!status)
        status = run_verified(source, options, "recorded", observer, summary, error);
    fill_rule_shares(summary, shares);
    return status;
}
