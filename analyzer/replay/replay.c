#include "replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "heap_choice.h"
#include "lane.h"
#include "limit_infer.h"
#include "pool_search.h"
#include "pytorch_config.h"
#include "util.h"
#include "verify.h"
#include "window.h"

struct replay {
    const struct mt_replay_options *options;
    const struct mt_replay_observer *observer;
    struct mt_replay_summary *summary;
    struct mt_source *source;
    struct mt_window window;
    struct mt_policy_text policy;
    const struct mt_foresight *foresight;  /* NULL = none is wanted */
    bool as_recorded;                      /* options and limit of the recorded run */
    struct mt_limit_watch *watch;          /* evidence of limits, NULL = not wanted */
    bool watching;                         /* it is being collected, and no limit is known */
    bool stopped;                          /* an observed run, where a limit showed */
    struct mt_lane *lanes[MT_MAX_DEVICES]; /* by device */
    const struct mt_lost_pools *pools;     /* NULL = those of the trace */
    bool watches_pools;                    /* compares, to see if pools were lost */
    uint64_t allocations; /* so far: all of the trace, also those that no lane simulates */
    uint64_t left_out[(UINT16_MAX + 1) / 64]; /* bits: devices from MT_MAX_DEVICES on */
    uint64_t left_out_count;                  /* bits that are set */
    bool restoring;
};

/* ---- the policy's name ------------------------------------------------------ */

static bool is_driver_level(const struct replay *replay)
{
    return replay->source->view.level == MT_VIEW_DRIVER;
}

static enum mt_status find_policy(struct replay *replay, struct mt_error *error)
{
    const char *unasked = is_driver_level(replay) ? "recorded" : "pytorch";
    const char *asked = replay->options->policy ? replay->options->policy : unasked;
    struct mt_policy_text *policy = &replay->policy;
    enum mt_status status = mt_policy_text_parse(asked, policy, error);

    if (status != MT_OK)
        return status;
    replay->as_recorded = policy->ops->follows_recording && !policy->options && !*policy->pools &&
                          (!is_driver_level(replay) || policy->ops->follow_segment);
    return MT_OK;
}

/* ---- the limit --------------------------------------------------------------- */

/* Only the recorded options explain the recorded refusals: other options are
 * replayed without a limit unless one is given. */
static bool limit_is_wanted(const struct replay *replay)
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
    enum mt_status status;

    if (!search->summary)
        search->summary = malloc(sizeof *search->summary);
    if (!search->summary)
        return MT_ERR_MEMORY;
    options.verify = true;
    options.blind = false;
    options.no_inferred_pools = true;
    options.limit_bytes = limit_bytes;
    status = mt_replay_run(search->source, &options, NULL, search->summary, error);
    *compared = search->summary->device_count > 0;
    *verify = search->summary->devices[0].verify;
    return status == MT_OK ? mt_source_rewind(search->source, error) : status;
}

/* What was collected as garbage shows a limit of PyTorch's alone. */
static enum mt_status search_limit(struct replay *replay, struct mt_error *error)
{
    struct limit_search search = {replay->source, replay->options, NULL};
    const struct mt_limit_trial trial = {&search, try_limit};
    enum mt_status status;

    if (replay->policy.ops != &mt_policy_pytorch)
        return MT_OK;
    status = mt_limit_search(replay->watch, &trial, error);
    free(search.summary);
    return status;
}

static uint64_t limit_of(const struct replay *replay, uint16_t device,
                         struct mt_replay_result *result)
{
    const struct mt_limit_evidence *evidence;
    uint64_t limit;

    if (replay->options->limit_bytes)
        return replay->options->limit_bytes;
    if (replay->watching)
        return 0;
    if (!replay->watch)
        return replay->options->no_inferred_limit || !replay->as_recorded
                   ? 0
                   : replay->source->header.memory_limit_bytes;
    evidence = &replay->watch->devices[device];
    limit = mt_limit_choose(evidence);
    if (limit) {
        result->limit_inferred = true;
        result->limit_low_bytes = evidence->low_bytes;
        result->limit_high_bytes = evidence->high_bytes;
    }
    return limit;
}

/* ---- lanes -------------------------------------------------------------------- */

/* What the driver did is nothing to compare another allocator with. */
static bool is_comparable(const struct replay *replay)
{
    return !is_driver_level(replay) || replay->policy.ops->follow_segment;
}

/* What a policy doubts by its rules, or because of the run that it follows. */
static enum mt_status make_policy(struct replay *replay, struct mt_lane *lane,
                                  struct mt_error *error)
{
    const struct mt_policy_ops *ops = replay->policy.ops;
    struct mt_replay_result *result = lane->result;
    enum mt_status status = ops->create(
        replay->policy.options, &replay->source->header, &replay->source->symbols, &lane->device,
        &lane->policy, replay->summary->policy, sizeof replay->summary->policy, error);

    if (!status && !result->policy_doubt && ops->own_doubt)
        result->policy_doubt = ops->own_doubt(lane->policy);
    result->policy_exact = !result->policy_doubt;
    return status;
}

/* State at the start of the trace. That the cache was emptied is none, whatever its flags say. */
static bool is_initial(const struct mt_event *event)
{
    return (event->flags & MT_EVENT_INITIAL) && event->kind != MT_EVENT_EMPTY_CACHE;
}

static enum mt_status open_lane(struct replay *replay, const struct mt_event *first,
                                struct mt_error *error)
{
    uint16_t device = first->device;
    const struct mt_symbols *symbols = &replay->source->symbols;
    struct mt_lane *lane = calloc(1, sizeof *lane);
    struct mt_replay_result *result;
    bool verify = replay->options->verify && is_comparable(replay);
    uint64_t memory =
        device < symbols->device_count ? symbols->devices[device].total_memory_bytes : 0;

    MT_ASSERT(!replay->lanes[device] && replay->summary->device_count < MT_MAX_DEVICES);
    if (!lane)
        return MT_ERR_MEMORY;
    replay->lanes[device] = lane;
    lane->is_restored = !is_initial(first);
    result = &replay->summary->devices[replay->summary->device_count++];
    result->device = device;
    result->has_events = true;
    result->policy_exact = !replay->policy.ops->doubt;
    result->policy_doubt = replay->policy.ops->doubt;
    result->recorded_addresses = !replay->options->blind && (replay->as_recorded || verify);
    result->verify.wanted = verify || replay->watches_pools;
    result->pools_inferred = replay->pools ? mt_lost_pools_count(replay->pools, device) : 0;
    lane->result = result;
    lane->ops = replay->policy.ops;
    lane->follows_options = replay->as_recorded;
    lane->pools = replay->pools;
    lane->foresight = replay->foresight;
    result->pool_count = replay->foresight ? replay->foresight->routes.pool_count : 0;
    lane->completes_at_request = !replay->source->header.has_free_completed;
    mt_device_init(&lane->device, limit_of(replay, device, result), memory,
                   result->recorded_addresses);
    mt_lane_let_complete(lane);
    lane->watches_reserved = replay->options->most_reserved_bytes != NULL;
    if (lane->watches_reserved)
        lane->most_reserved_bytes = replay->options->most_reserved_bytes[device];
    if (replay->foresight)
        lane->device.plan = &replay->foresight->plan.devices[device];
    return make_policy(replay, lane, error);
}

/* A deduced limit that never turned a request away explains nothing: what
 * looked like a flush before a request was an empty_cache(). */
static void forget_idle_limit(struct mt_lane *lane)
{
    struct mt_replay_result *result = lane->result;

    if (!result->limit_inferred || lane->device.refusals || lane->ops->follow_segment ||
        result->limit_low_bytes + 1 == result->limit_high_bytes)
        return;
    result->limit_inferred = false;
    result->limit_low_bytes = result->limit_high_bytes = 0;
    lane->device.limit_bytes = 0;
}

static void close_lane(struct mt_lane *lane)
{
    if (!lane)
        return;
    forget_idle_limit(lane);
    if (lane->policy) {
        lane->result->counters = *lane->ops->counters(lane->policy);
        lane->ops->destroy(lane->policy);
    }
    lane->result->given_up = lane->given_up;
    lane->result->limit_bytes = lane->device.limit_bytes;
    lane->result->address_ties = mt_device_open_ties(&lane->device);
    mt_lane_tell_plan(lane);
    mt_verify_finish(&lane->result->verify);
    mt_device_release(&lane->device);
    mt_live_release(&lane->live);
    free(lane);
}

/* ---- events ------------------------------------------------------------------- */

/* Looks ahead for the group that begins with `event` (or right behind it, if
 * that is EMPTY_CACHE) and lets the lane serve it. `event` is copied first:
 * looking ahead may move the window. */
static enum mt_status resolve_group(struct replay *replay, struct mt_lane *lane,
                                    const struct mt_event *first, struct mt_error *error)
{
    struct mt_event event = *first;
    const struct mt_event *trigger = NULL;
    enum mt_status status = MT_OK;
    size_t ahead;

    mt_lane_open_group(lane);
    if (mt_event_is_segment(&event))
        status = mt_lane_offer(lane, &event);
    for (ahead = 0; status == MT_OK && !trigger; ahead++) {
        const struct mt_event *next = mt_window_peek(&replay->window, ahead, &status, error);
        if (!next)
            break;
        if (next->device != event.device || is_initial(next))
            continue;
        if (mt_event_is_segment(next))
            status = mt_lane_offer(lane, next);
        else if (mt_event_is_memory(next) || next->kind == MT_EVENT_EMPTY_CACHE)
            trigger = next;
    }
    if (status == MT_END)
        status = MT_OK;
    if (status != MT_OK)
        return status;
    return mt_lane_resolve_group(lane, event.seq, trigger, event.kind == MT_EVENT_EMPTY_CACHE);
}

static enum mt_status finish_restoring(struct replay *replay)
{
    enum mt_status status = MT_OK;
    size_t i;

    replay->restoring = false;
    for (i = 0; status == MT_OK && i < MT_MAX_DEVICES; i++) {
        if (replay->lanes[i] && replay->lanes[i]->restoring)
            status = mt_lane_restored(replay->lanes[i]);
    }
    return status;
}

/* Memory events that are not of a block of the run. */
static enum mt_status replay_memory(struct replay *replay, struct mt_event *event,
                                    struct mt_lane *lane, struct mt_replay_view *view,
                                    struct mt_error *error)
{
    if (is_initial(event)) {
        replay->restoring = true;
        return mt_lane_restore(lane, event,
                               event->kind == MT_EVENT_ALLOC ? replay->allocations - 1 : 0, view);
    }
    if (mt_event_is_segment(event)) {
        if (!lane->group_open) {
            enum mt_status status = resolve_group(replay, lane, event, error);
            if (status != MT_OK)
                return status;
        }
        return mt_lane_segment(lane, event, view);
    }
    if (event->kind == MT_EVENT_OOM)
        return mt_lane_oom(lane, event, view);
    view->counters = lane->ops->counters(lane->policy);
    return MT_OK;
}

/* Most events: a block begins or ends. */
static inline bool is_block(const struct mt_event *event)
{
    return event->kind <= MT_EVENT_FREE_COMPLETED && !(event->flags & MT_EVENT_INITIAL);
}

static inline enum mt_status replay_block(struct replay *replay, const struct mt_event *event,
                                          struct mt_lane *lane, struct mt_replay_view *view)
{
    return event->kind == MT_EVENT_ALLOC ? mt_lane_alloc(lane, event, replay->allocations - 1, view)
                                         : mt_lane_free(lane, event, view);
}

/* Where a limit shows, a run without one is over for those who observe it. */
static bool watch_limit(struct replay *replay, const struct mt_event *event)
{
    const struct mt_lane *lane = replay->lanes[event->device];

    if (!mt_limit_watch_event(replay->watch, event) || !replay->observer || !lane)
        return false;
    replay->watch->tested_bytes[event->device] = lane->device.most_tested_bytes;
    replay->stopped = mt_limit_matters_on(replay->watch, event->device);
    return replay->stopped;
}

/* What the event does to the simulated device. Looking ahead moves the window: then
 * *event becomes `copy`. */
static enum mt_status simulate(struct replay *replay, struct mt_event **event,
                               struct mt_event *copy, struct mt_replay_view *view,
                               struct mt_error *error)
{
    struct mt_lane *lane = replay->lanes[(*event)->device];
    enum mt_status status = MT_OK;
    bool is_flush = (*event)->kind == MT_EVENT_EMPTY_CACHE;

    if (!lane) {
        status = open_lane(replay, *event, error);
        lane = replay->lanes[(*event)->device];
    }
    if (status != MT_OK || lane->given_up)
        return status;
    if (is_block(*event))
        return replay_block(replay, *event, lane, view);
    if (is_flush || (mt_event_is_segment(*event) && !lane->group_open)) {
        *copy = **event;
        *event = copy;
    }
    if (!is_flush)
        return replay_memory(replay, *event, lane, view, error);
    view->counters = &lane->before_group;
    return resolve_group(replay, lane, *event, error);
}

/* Counts a device whose number is too large for a lane, so that commands can say so. A replay that
 * stops early sees fewer of them: the source keeps the largest count. */
static void leave_out(struct replay *replay, uint16_t device)
{
    uint64_t bit = UINT64_C(1) << device % 64;

    if (replay->left_out[device / 64] & bit)
        return;
    replay->left_out[device / 64] |= bit;
    replay->left_out_count++;
    replay->source->devices_left_out =
        mt_max_u64(replay->source->devices_left_out, replay->left_out_count);
}

static enum mt_status replay_event(struct replay *replay, struct mt_event *event,
                                   struct mt_error *error)
{
    static const struct mt_counters nothing;
    struct mt_replay_view view = {&nothing, 0, 0, MT_NO_ALLOCATION};
    struct mt_event copy;
    enum mt_status status = MT_OK;

    if (event->kind == MT_EVENT_ALLOC) /* its number, also if no lane simulates it */
        view.allocation = replay->allocations++;
    if (replay->restoring && !is_initial(event))
        status = finish_restoring(replay);
    if (event->device >= MT_MAX_DEVICES && mt_event_is_memory(event))
        leave_out(replay, event->device);
    if (status == MT_OK && event->device < MT_MAX_DEVICES &&
        (mt_event_is_memory(event) || event->kind == MT_EVENT_EMPTY_CACHE)) {
        if (replay->watching && watch_limit(replay, event))
            return MT_END;
        status = simulate(replay, &event, &copy, &view, error);
    }
    if (status == MT_OK && replay->observer)
        status = replay->observer->event(replay->observer->context, event, &view);
    return status;
}

static enum mt_status run(struct replay *replay, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    while (status == MT_OK) {
        struct mt_event *event = mt_window_next(&replay->window, &status, error);
        if (event)
            status = replay_event(replay, event, error);
    }
    if (status == MT_END)
        status = replay->restoring ? finish_restoring(replay) : MT_OK;
    return status;
}

/* The whole trace, once. */
static enum mt_status run_once(struct replay *replay, struct mt_error *error)
{
    enum mt_status status;
    size_t i;

    memset(replay->summary, 0, sizeof *replay->summary);
    replay->summary->is_driver_level = is_driver_level(replay);
    replay->allocations = 0;
    replay->left_out_count = 0;
    memset(replay->left_out, 0, sizeof replay->left_out);
    replay->restoring = false;
    mt_window_init(&replay->window, replay->source);
    status = run(replay, error);
    mt_window_release(&replay->window);
    for (i = 0; i < MT_MAX_DEVICES; i++) {
        if (replay->lanes[i] && status == MT_OK)
            mt_lane_check(replay->lanes[i], true);
        if (replay->watching && replay->lanes[i])
            replay->watch->tested_bytes[i] = replay->lanes[i]->device.most_tested_bytes;
        close_lane(replay->lanes[i]);
        replay->lanes[i] = NULL;
    }
    for (i = 0; status == MT_OK && i < replay->summary->device_count; i++)
        MT_CHECK(error, mt_counters_agree(&replay->summary->devices[i].counters));
    return status;
}

/* Tries a run without a limit: most were never refused anything, and then that
 * was it. */
static enum mt_status try_unlimited(struct replay *replay, bool *done, struct mt_error *error)
{
    enum mt_status status;

    replay->watching = true;
    status = run_once(replay, error);
    replay->watching = false;
    *done = status != MT_OK || (!replay->stopped && !mt_limit_matters(replay->watch));
    if (*done)
        return status;
    if (replay->observer)
        status = replay->observer->restart(replay->observer->context);
    return status == MT_OK ? mt_source_rewind(replay->source, error) : status;
}

/* All events are looked through before a run that cannot be tried, or was not to its end. */
static enum mt_status run_with_limit(struct replay *replay, struct mt_error *error)
{
    bool may_try = replay->policy.ops == &mt_policy_pytorch &&
                   (!replay->observer || replay->observer->restart);
    enum mt_status status = MT_OK;
    bool done = false;

    replay->watch = mt_limit_watch_new(&replay->source->header);
    if (!replay->watch)
        return MT_ERR_MEMORY;
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
    return status == MT_OK ? run_once(replay, error) : status;
}

/* ---- lost pools --------------------------------------------------------------- */

/* A run that agrees with the trace costs nothing more than the comparison. */
static bool pools_are_watched(const struct replay *replay)
{
    return replay->policy.ops == &mt_policy_pytorch && replay->as_recorded &&
           !is_driver_level(replay) && !replay->options->blind &&
           !replay->options->no_inferred_pools && !replay->source->header.never_refused &&
           (!replay->observer || replay->observer->restart);
}

static struct mt_pool_reach reach_of(const struct mt_replay_summary *summary)
{
    struct mt_pool_reach reach = {UINT64_MAX, 0};
    uint16_t i;

    for (i = 0; i < summary->device_count; i++) {
        const struct mt_replay_verify *verify = &summary->devices[i].verify;
        reach.exact += verify->addresses_exact + verify->segment_events_exact;
        if (verify->first_difference[0])
            reach.event = mt_min_u64(reach.event, verify->first_difference_event);
    }
    return reach;
}

/* Replays with these pools, unseen by the observer. */
static enum mt_status try_pools(void *context, const struct mt_lost_pools *pools,
                                struct mt_pool_reach *reach, struct mt_error *error)
{
    struct replay trial = *(const struct replay *)context;
    enum mt_status status = mt_source_rewind(trial.source, error);

    trial.pools = pools;
    trial.observer = NULL;
    trial.summary = malloc(sizeof *trial.summary);
    if (!trial.summary)
        return MT_ERR_MEMORY;
    if (status == MT_OK)
        status = run_once(&trial, error);
    if (status == MT_OK)
        *reach = reach_of(trial.summary);
    free(trial.summary);
    return status;
}

/* After a first run that differs: looks for pools with which it does not, or
 * later, and replays with them. */
static enum mt_status replay_with_pools(struct replay *replay, struct mt_error *error)
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
            status = run_once(replay, error);
        replay->pools = NULL;
    }
    mt_lost_pools_release(&pools);
    mt_pool_evidence_release(&evidence);
    return status;
}

/* What was compared for the pools' sake alone is not the caller's business. */
static void forget_comparison(struct mt_replay_summary *summary)
{
    uint16_t i;

    for (i = 0; i < summary->device_count; i++)
        memset(&summary->devices[i].verify, 0, sizeof summary->devices[i].verify);
}

/* ---- all of it ------------------------------------------------------------------ */

/* The caller's foresight, or a new one, in *made. */
static enum mt_status foresee(struct replay *replay, struct mt_foresight **made,
                              struct mt_error *error)
{
    enum mt_status status;

    if (!mt_foresight_is_wanted(&replay->policy))
        return MT_OK;
    replay->foresight = replay->options->foresight;
    if (replay->foresight)
        return MT_OK;
    *made = malloc(sizeof **made);
    if (!*made)
        return MT_ERR_MEMORY;
    status = mt_foresight_make(replay->source, &replay->policy, *made, error);
    replay->foresight = *made;
    return status;
}

/* What was really simulated: the policy's own spelling, and the pools. */
static void finish_spelling(const struct replay *replay)
{
    char *text = replay->summary->policy;
    size_t room = sizeof replay->summary->policy, used;

    if (!text[0])
        snprintf(text, room, "%s", replay->policy.ops ? replay->policy.ops->name : "");
    used = strlen(text);
    if (replay->foresight)
        snprintf(text + used, room - used, "%s", replay->policy.pools);
}

enum mt_status mt_replay_run(struct mt_source *source, const struct mt_replay_options *options,
                             const struct mt_replay_observer *observer,
                             struct mt_replay_summary *summary, struct mt_error *error)
{
    struct replay replay = {0};
    struct mt_foresight *made = NULL;
    enum mt_status status;

    memset(summary, 0, sizeof *summary);
    if (error)
        *error = (struct mt_error){MT_OK, MT_NO_OFFSET, ""};
    replay.options = options;
    replay.observer = observer;
    replay.summary = summary;
    replay.source = source;
    status = mt_heap_view_choose(source, error);
    if (status == MT_OK)
        status = find_policy(&replay, error);
    if (status == MT_OK)
        status = foresee(&replay, &made, error);
    if (status == MT_OK) {
        replay.watches_pools = pools_are_watched(&replay);
        status =
            limit_is_wanted(&replay) ? run_with_limit(&replay, error) : run_once(&replay, error);
    }
    if (status == MT_OK && replay.watches_pools && reach_of(summary).event != UINT64_MAX)
        status = replay_with_pools(&replay, error);
    if (!options->verify)
        forget_comparison(summary);
    free(replay.watch);
    finish_spelling(&replay);
    if (made)
        mt_foresight_release(made);
    free(made);
    if (status == MT_ERR_MEMORY && error && error->status == MT_OK)
        mt_fail(error, status, MT_NO_OFFSET, "out of host memory");
    return status;
}
