/* One replay of a source from its start to its end, or several side by side. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lane.h"
#include "limit.h"
#include "lost_pools.h"
#include "one_replay.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "replay.h"
#include "source.h"
#include "util.h"
#include "verify.h"

/* For functions called in both loops over events, of one replay and of several: without it, the
 * calls cost analyze 1% to 2% of its instructions. */
#define INLINE inline __attribute__((always_inline))

bool mt_one_replay_is_driver_level(const struct mt_one_replay *replay)
{
    return replay->source->view.level == MT_VIEW_DRIVER;
}

static uint64_t limit_of(const struct mt_one_replay *replay, uint16_t device,
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

/* The driver's actions cannot be compared with those of another allocator. */
static bool is_comparable(const struct mt_one_replay *replay)
{
    return !mt_one_replay_is_driver_level(replay) || replay->policy.ops->follow_segment;
}

/* Collects a policy's doubts, from its rules or from the run that it follows. */
static enum mt_status make_policy(struct mt_one_replay *replay, struct mt_lane *lane,
                                  struct mt_error *error)
{
    const struct mt_policy_ops *ops = replay->policy.ops;
    struct mt_replay_result *result = lane->result;
    const struct mt_policy_setup setup = {replay->policy.options,   &replay->source->header,
                                          &replay->source->symbols, &lane->device,
                                          replay->summary->policy,  sizeof replay->summary->policy};
    enum mt_status status = mt_policy_create(ops, &setup, &lane->policy, error);

    if (!status && !result->policy_doubt && ops->own_doubt)
        result->policy_doubt = ops->own_doubt(lane->policy);
    result->policy_exact = !result->policy_doubt;
    return status;
}

/* State at the start of the trace. An EMPTY_CACHE event is never such state, whatever its flags
 * are. */
static bool is_initial(const struct mt_event *event)
{
    return (event->flags & MT_EVENT_INITIAL) && event->kind != MT_EVENT_EMPTY_CACHE;
}

/* Whether frees complete exactly where the recording completes them. */
static bool follows_completions(const struct mt_one_replay *replay)
{
    return replay->as_recorded && replay->source->header.has_free_completed &&
           (replay->options->verify || !replay->options->limit_bytes);
}

static enum mt_status open_lane(struct mt_one_replay *replay, const struct mt_event *first,
                                struct mt_error *error)
{
    uint16_t device = first->device;
    const struct mt_symbols *symbols = &replay->source->symbols;
    struct mt_lane *lane = mt_memory_zeroed(1, sizeof *lane);
    struct mt_replay_result *result;
    bool verify = replay->options->verify && is_comparable(replay);
    uint64_t memory =
        device < symbols->device_count ? symbols->devices[device].total_memory_bytes : 0;

    MT_ASSERT(!replay->lanes[device] && replay->summary->device_count < MT_MAX_DEVICES);
    replay->lanes[device] = lane;
    lane->is_restored = !is_initial(first);
    result = &replay->summary->devices[replay->summary->device_count++];
    result->device = device;
    result->has_events = true;
    result->policy_exact = !replay->policy.ops->doubt;
    result->policy_doubt = replay->policy.ops->doubt;
    result->recorded_addresses = !replay->options->blind && (replay->as_recorded || verify);
    result->is_taken_over = replay->policy.ops->follow_segment != NULL;
    result->verify.wanted = verify || replay->compares;
    if (replay->policy.ops == &mt_policy_pytorch) {
        result->free_order = mt_pytorch_free_order(&replay->source->header);
        result->free_order_found = !mt_pytorch_version(&replay->source->header);
    }
    result->pools_inferred = replay->pools ? mt_lost_pools_count(replay->pools, device) : 0;
    lane->result = result;
    lane->ops = replay->policy.ops;
    lane->follows_options = replay->as_recorded;
    lane->pools = replay->pools;
    lane->foresight = replay->foresight;
    result->pool_count = replay->foresight ? replay->foresight->routes.pool_count : 0;
    lane->completes_at_request = !replay->source->header.has_free_completed;
    lane->frees_are_requested = replay->source->header.has_free_requested;
    mt_device_init(&lane->device, limit_of(replay, device, result), memory,
                   result->recorded_addresses);
    mt_device_order_addresses(&lane->device, replay->options->order);
    if (!follows_completions(replay))
        mt_lane_let_complete(lane);
    lane->watches_reserved = replay->options->most_reserved_bytes != NULL;
    if (lane->watches_reserved)
        lane->most_reserved_bytes = replay->options->most_reserved_bytes[device];
    if (replay->foresight)
        lane->device.plan = &replay->foresight->plan.devices[device];
    return make_policy(replay, lane, error);
}

/* An inferred limit that never refused a request explains nothing: what looked like a flush before
 * a request was an empty_cache(). */
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

/* Whether a replay without a limit equals those under large limits, except that it skips requests
 * that the run refused. Under other options, a limit also decides what a flush is (lane.c). */
static bool is_like_large_limits(const struct mt_lane *lane)
{
    return lane->ops == &mt_policy_pytorch && lane->follows_options;
}

static void note_equal_limits(struct mt_lane *lane)
{
    const struct mt_device_model *device = &lane->device;
    struct mt_replay_result *result = lane->result;

    result->same_from_bytes = device->limit_bytes;
    result->same_until_bytes = device->limit_bytes + 1;
    if (!device->only_compares || (!device->limit_bytes && !is_like_large_limits(lane)))
        return;
    result->same_from_bytes = mt_max_u64(device->most_accepted_bytes, 1);
    result->same_until_bytes = device->least_refused_bytes;
    MT_ASSERT(!device->limit_bytes || (result->same_from_bytes <= device->limit_bytes &&
                                       result->same_until_bytes > device->limit_bytes));
}

static void close_lane(const struct mt_one_replay *replay, struct mt_lane *lane)
{
    if (!lane)
        return;
    forget_idle_limit(lane);
    if (lane->policy)
        lane->result->counters = *lane->ops->counters(lane->policy);
    lane->result->given_up = lane->given_up;
    lane->result->limit_bytes = lane->device.limit_bytes;
    note_equal_limits(lane);
    lane->result->address_ties = mt_device_open_ties(&lane->device);
    lane->result->restores.segments_unwatched = lane->tracks.segments_left_out;
    mt_lane_set_plan(lane);
    lane->result->any_order = lane->device.any_order && !replay->watch;
    lane->result->ties_recorded =
        !lane->result->any_order && lane->device.address_ties > lane->result->address_ties;
    if (replay->window->at_end)
        lane->result->verify.events_missing = replay->source->integrity.events_dropped;
    mt_verify_finish(&lane->result->verify, &replay->source->header);
    mt_one_replay_free_lane(lane);
}

/* Whether this allocation, `ahead` events before the next event, begins a restore. */
static enum mt_status find_restore(struct mt_one_replay *replay, struct mt_lane *lane,
                                   const struct mt_event *first, size_t ahead, bool *found,
                                   struct mt_error *error)
{
    enum mt_status status = MT_OK;
    bool more = mt_lane_may_restore(lane, first);

    *found = false;
    if (!more)
        return MT_OK;
    for (; more && status == MT_OK; ahead++) {
        const struct mt_event *next = mt_window_peek(replay->window, ahead, &status, error);
        if (!next)
            break;
        more = mt_lane_scan(lane, next);
    }
    if (status == MT_OK || status == MT_END)
        *found = mt_lane_settle(lane);
    return status == MT_END ? MT_OK : status;
}

/* Decides how the request behind a group of segment events relates to the group: a restore and a
 * given address cause no segment events, so such a group is a flush. Stores the request in `copy`,
 * since lookahead may move the window. */
static enum mt_status judge_trigger(struct mt_one_replay *replay, struct mt_lane *lane,
                                    const struct mt_event **trigger, struct mt_event *copy,
                                    size_t ahead, struct mt_error *error)
{
    bool is_restore;
    enum mt_status status;

    if (!*trigger)
        return MT_OK;
    *copy = **trigger;
    *trigger = copy;
    if (copy->kind != MT_EVENT_ALLOC)
        return MT_OK;
    if (copy->flags & (MT_EVENT_GAP | MT_EVENT_AT_ADDRESS))
        *trigger = NULL;
    if (!*trigger || !lane->tracks.pool_count)
        return MT_OK;
    status = find_restore(replay, lane, copy, ahead, &is_restore, error);
    if (is_restore)
        *trigger = NULL;
    return status;
}

/* Looks ahead for the group that begins with `event` (or directly after it, for EMPTY_CACHE) and
 * lets the lane serve it. `event` is copied first, since lookahead may move the window. */
static enum mt_status resolve_group(struct mt_one_replay *replay, struct mt_lane *lane,
                                    const struct mt_event *first, struct mt_error *error)
{
    struct mt_event event = *first, copy;
    const struct mt_event *trigger = NULL;
    enum mt_status status = MT_OK;
    size_t ahead;

    mt_lane_open_group(lane);
    if (mt_event_is_segment(&event))
        mt_lane_offer(lane, &event);
    for (ahead = 0; status == MT_OK && !trigger; ahead++) {
        const struct mt_event *next = mt_window_peek(replay->window, ahead, &status, error);
        if (!next)
            break;
        if (next->device != event.device || is_initial(next))
            continue;
        if (mt_event_is_segment(next))
            mt_lane_offer(lane, next);
        else if (mt_event_is_memory(next) || next->kind == MT_EVENT_EMPTY_CACHE)
            trigger = next;
    }
    if (status == MT_END)
        status = MT_OK;
    if (status == MT_OK)
        status = judge_trigger(replay, lane, &trigger, &copy, ahead, error);
    if (status != MT_OK)
        return status;
    return mt_lane_resolve_group(lane, event.seq, trigger, event.kind == MT_EVENT_EMPTY_CACHE);
}

static enum mt_status finish_restoring(struct mt_one_replay *replay)
{
    enum mt_status status = MT_OK;

    replay->restoring = false;
    for (size_t i = 0; status == MT_OK && i < MT_MAX_DEVICES; i++)
        if (replay->lanes[i] && replay->lanes[i]->restoring)
            status = mt_lane_restored(replay->lanes[i]);
    return status;
}

/* Memory events that do not concern a block of the run. */
static enum mt_status replay_memory(struct mt_one_replay *replay, const struct mt_event *event,
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
        mt_lane_segment(lane, event, view);
        return MT_OK;
    }
    if (event->kind == MT_EVENT_OOM)
        return mt_lane_oom(lane, event, view);
    view->counters = lane->ops->counters(lane->policy);
    return MT_OK;
}

/* Whether a block begins or ends, as in most events. */
static inline bool is_block(const struct mt_event *event)
{
    return event->kind <= MT_EVENT_FREE_COMPLETED && !(event->flags & MT_EVENT_INITIAL);
}

static inline enum mt_status replay_block(struct mt_one_replay *replay,
                                          const struct mt_event *event, struct mt_lane *lane,
                                          struct mt_replay_view *view)
{
    return event->kind == MT_EVENT_ALLOC ? mt_lane_alloc(lane, event, replay->allocations - 1, view)
                                         : mt_lane_free(lane, event, view);
}

/* At the first evidence of a limit, an observed run without a limit ends. */
static bool watch_limit(struct mt_one_replay *replay, const struct mt_event *event)
{
    const struct mt_lane *lane = replay->lanes[event->device];

    if (!mt_limit_watch_event(replay->watch, event) || !replay->observer || !lane)
        return false;
    replay->watch->tested_bytes[event->device] = lane->device.most_tested_bytes;
    replay->stopped = mt_limit_matters_on(replay->watch, event->device);
    return replay->stopped;
}

/* Applies the event to the simulated device. Lookahead moves the window: then *event becomes
 * `copy`. */
static INLINE enum mt_status simulate(struct mt_one_replay *replay, const struct mt_event **event,
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
    if (is_block(*event)) {
        if ((*event)->kind == MT_EVENT_ALLOC && lane->tracks.pool_count && !lane->served_ahead) {
            bool is_restore;

            *copy = **event;
            *event = copy;
            status = find_restore(replay, lane, copy, 0, &is_restore, error);
        }
        return status == MT_OK ? replay_block(replay, *event, lane, view) : status;
    }
    if (is_flush || (mt_event_is_segment(*event) && !lane->group_open)) {
        *copy = **event;
        *event = copy;
    }
    if (!is_flush)
        return replay_memory(replay, *event, lane, view, error);
    view->counters = &lane->before_group;
    return resolve_group(replay, lane, *event, error);
}

/* Counts a device whose number is too large for a lane, so that commands can report it. */
static void leave_out(struct mt_one_replay *replay, uint16_t device)
{
    uint64_t bit = UINT64_C(1) << device % 64;

    if (replay->left_out[device / 64] & bit)
        return;
    replay->left_out[device / 64] |= bit;
    replay->left_out_count++;
}

static INLINE enum mt_status replay_event(struct mt_one_replay *replay,
                                          const struct mt_event *event, struct mt_replay_view *view,
                                          struct mt_error *error)
{
    static const struct mt_counters nothing;
    struct mt_event copy;
    enum mt_status status = MT_OK;

    *view = (struct mt_replay_view){&nothing, 0, 0, MT_NO_ALLOCATION, 0, false};
    if (event->kind == MT_EVENT_ALLOC) /* its number, also if no lane simulates it */
        view->allocation = replay->allocations++;
    if (replay->restoring && !is_initial(event))
        status = finish_restoring(replay);
    if (event->device >= MT_MAX_DEVICES && mt_event_is_memory(event))
        leave_out(replay, event->device);
    if (status == MT_OK && event->device < MT_MAX_DEVICES &&
        (mt_event_is_memory(event) || event->kind == MT_EVENT_EMPTY_CACHE)) {
        if (replay->watching &&
            mt_limit_is_evidence(&replay->watch->devices[event->device], event) &&
            watch_limit(replay, event))
            return MT_END;
        status = simulate(replay, &event, &copy, view, error);
    }
    if (status == MT_OK && replay->observer)
        status = replay->observer->event(replay->observer->context, event, view);
    return status;
}

static void begin(struct mt_one_replay *replay, struct mt_window *window)
{
    memset(replay->summary, 0, sizeof *replay->summary);
    replay->summary->is_driver_level = mt_one_replay_is_driver_level(replay);
    replay->allocations = 0;
    replay->left_out_count = 0;
    memset(replay->left_out, 0, sizeof replay->left_out);
    replay->restoring = false;
    replay->over = false;
    replay->window = window;
}

/* Whether all events of the run were replayed and compared, so that the levels at the end are
 * comparable. */
static bool has_whole_run(const struct mt_one_replay *replay)
{
    const struct mt_integrity *integrity = &replay->source->integrity;

    return replay->window->at_end && replay->window->at == replay->window->count && !replay->over &&
           !integrity->cut && !integrity->frames_damaged && !integrity->events_dropped &&
           !integrity->events_invalid;
}

static void compare_end(struct mt_lane *lane, const struct mt_source *source)
{
    if (lane->result->verify.wanted && !lane->given_up && source->view.level == MT_VIEW_FRAMEWORK)
        mt_end_levels_compare(lane, source);
}

/* `status`: how the pass ended, MT_END at the end of the trace. Always releases the replay's
 * memory. A replay that stops early sees fewer of the devices that it leaves out, so the source
 * keeps the largest count. */
static enum mt_status finish(struct mt_one_replay *replay, enum mt_status status,
                             struct mt_error *error)
{
    struct mt_source *source = replay->source;
    bool reached_end = status == MT_END && has_whole_run(replay);

    source->devices_left_out = mt_max_u64(source->devices_left_out, replay->left_out_count);
    if (status == MT_END)
        status = replay->restoring ? finish_restoring(replay) : MT_OK;
    for (size_t i = 0; i < MT_MAX_DEVICES; i++) {
        if (replay->lanes[i] && status == MT_OK)
            mt_lane_check(replay->lanes[i], true);
        if (replay->lanes[i] && status == MT_OK && reached_end)
            compare_end(replay->lanes[i], source);
        if (replay->watching && replay->lanes[i])
            replay->watch->tested_bytes[i] = replay->lanes[i]->device.most_tested_bytes;
        close_lane(replay, replay->lanes[i]);
        replay->lanes[i] = NULL;
    }
    replay->window = NULL;
    for (size_t i = 0; status == MT_OK && i < replay->summary->device_count; i++)
        MT_CHECK(error, mt_counters_agree(&replay->summary->devices[i].counters));
    return status;
}

enum mt_status mt_one_replay_run(struct mt_one_replay *replay, struct mt_error *error)
{
    struct mt_window window;
    struct mt_replay_view view;
    enum mt_status status = MT_OK;

    mt_window_init(&window, replay->source, NULL);
    begin(replay, &window);
    while (status == MT_OK) {
        struct mt_event *event = mt_window_next(&window, &status, error);
        if (event)
            status = replay_event(replay, event, &view, error);
    }
    status = finish(replay, status, error);
    mt_window_release(&window);
    return status;
}

/* Copies the request that an event is, or that is behind the group (lane.h) that begins with it.
 * Leaves *request if there is none. *in_pool: the group has segments of a private pool. */
static enum mt_status find_request(struct mt_one_replay *replay, const struct mt_event *event,
                                   struct mt_event *request, bool *in_pool, struct mt_error *error)
{
    const struct mt_event *next = event;
    enum mt_status status = MT_OK;

    for (size_t ahead = 0; status == MT_OK && next; ahead++) {
        if (next->device == event->device && !is_initial(next)) {
            if (next->kind == MT_EVENT_ALLOC || next->kind == MT_EVENT_OOM)
                *request = *next;
            if ((mt_event_is_memory(next) && !mt_event_is_segment(next)) ||
                (next->kind == MT_EVENT_EMPTY_CACHE && ahead))
                break;
            *in_pool |= next->pool != 0;
        }
        next = mt_window_peek(replay->window, ahead, &status, error);
    }
    return status == MT_END ? MT_OK : status;
}

/* Sets *least_bytes to a limit that gives the same results for an event as that of the leader, as
 * do all limits between them. UINT64_MAX: none does, or the event may lead to a state that cannot
 * be copied. */
static enum mt_status find_least_limit(struct mt_one_replay *leader, const struct mt_event *first,
                                       uint64_t *least_bytes, struct mt_error *error)
{
    const struct mt_event event = *first;
    struct mt_event request = {0};
    struct mt_lane *lane;
    enum mt_status status = MT_OK;
    bool in_pool = false;

    *least_bytes = leader->over ? UINT64_MAX : 0;
    if (leader->over || event.device >= MT_MAX_DEVICES ||
        (!mt_event_is_memory(&event) && event.kind != MT_EVENT_EMPTY_CACHE))
        return MT_OK;
    if (event.pool || event.flags & (MT_EVENT_INITIAL | MT_EVENT_GAP | MT_EVENT_AT_ADDRESS)) {
        *least_bytes = UINT64_MAX;
        return MT_OK;
    }
    if (!leader->lanes[event.device])
        status = open_lane(leader, &event, error);
    lane = leader->lanes[event.device];
    if (status != MT_OK || lane->served_ahead || (mt_event_is_segment(&event) && lane->group_open))
        return status;
    if (event.kind == MT_EVENT_ALLOC && mt_live_find(&lane->live, event.addr)) {
        *least_bytes = UINT64_MAX; /* its lost free comes first, and changes what is found */
        return MT_OK;
    }
    status = find_request(leader, &event, &request, &in_pool, error);
    if (in_pool)
        *least_bytes = UINT64_MAX;
    else if (request.kind)
        *least_bytes = mt_lane_most_tested(lane, &request, event.kind, leader->shared_limit_bytes);
    return status;
}

/* Passes an event to one replay, or to the observer of a follower: its leader comes before it. */
static enum mt_status tell(struct mt_one_replay *replay, const struct mt_event *event,
                           struct mt_error *error)
{
    enum mt_status status = MT_OK;

    if (!replay->leader)
        return replay_event(replay, event, &replay->view, error);
    if (replay->observer)
        status = replay->observer->event(replay->observer->context, event, &replay->leader->view);
    if (status == MT_END)
        mt_one_replay_leave(replay);
    return status;
}

static enum mt_status separate_all(struct mt_one_replay *replays, size_t count,
                                   const struct mt_event *event, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < count && status == MT_OK; i++) {
        uint64_t least_bytes = 0;

        if (replays[i].shared_limit_bytes)
            status = find_least_limit(&replays[i], event, &least_bytes, error);
        if (least_bytes > replays[i].shared_limit_bytes)
            mt_one_replay_separate(&replays[i], replays, count, least_bytes);
    }
    return status;
}

/* Passes one event to all replays; *left: number of replays that want the next event. */
static enum mt_status tell_all(struct mt_one_replay *replays, size_t count,
                               const struct mt_event *event, size_t *left, struct mt_error *error)
{
    enum mt_status status = separate_all(replays, count, event, error);

    for (size_t i = 0; i < count && status == MT_OK; i++) {
        if (replays[i].over)
            continue;
        status = tell(&replays[i], event, error);
        if (status == MT_OK && replays[i].may_return)
            mt_one_replay_return(replays, i);
        if (status != MT_END)
            continue;
        replays[i].over = true;
        --*left;
        status = MT_OK;
    }
    return status;
}

/* Finishes all replays, even after a failure; returns the first failure. */
static enum mt_status finish_all(struct mt_one_replay *replays, size_t count, enum mt_status status,
                                 struct mt_error *error)
{
    enum mt_status first = status == MT_END ? MT_OK : status;

    for (size_t i = 0; i < count && first == MT_OK; i++)
        if (replays[i].leader)
            mt_one_replay_leave(&replays[i]);
    for (size_t i = 0; i < count; i++) {
        enum mt_status finished = finish(&replays[i], first ? first : MT_END, error);

        first = first ? first : finished;
    }
    return first;
}

/* The replays that one thread runs. */
struct part {
    struct mt_one_replay *replays;
    size_t count;
    const struct mt_replay_listener *listener;
    struct mt_window window;
    enum mt_status status;
    struct mt_error error;
};

static void begin_part(struct part *part, struct mt_shared_reading *reading)
{
    mt_window_init(&part->window, part->replays->source, reading);
    for (size_t i = 0; i < part->count; i++) {
        MT_ASSERT(part->replays[i].source == part->replays->source && !part->replays[i].watching);
        begin(&part->replays[i], &part->window);
    }
}

static void *run_part(void *context)
{
    struct part *part = context;
    size_t left = part->count;
    enum mt_status status = MT_OK;

    while (status == MT_OK && (left || part->listener)) {
        const struct mt_event *next = mt_window_next(&part->window, &status, &part->error);
        struct mt_event event;

        if (!next)
            break;
        event = *next; /* lookahead of a replay moves the window */
        status = tell_all(part->replays, part->count, &event, &left, &part->error);
        if (status == MT_OK && part->listener)
            status = part->listener->event(part->listener->context, &event);
    }
    part->status = status;
    mt_window_leave(&part->window);
    return NULL;
}

static enum mt_status finish_part(struct part *part, struct mt_error *error)
{
    enum mt_status status = finish_all(part->replays, part->count, part->status, &part->error);

    mt_window_release(&part->window);
    if (status != MT_OK && error)
        *error = part->error;
    return status;
}

static enum mt_status run_one_part(struct part *part, struct mt_error *error)
{
    begin_part(part, NULL);
    (void)run_part(part);
    return finish_part(part, error);
}

enum mt_status mt_one_replay_run_all(struct mt_one_replay *replays, size_t count, size_t own_count,
                                     const struct mt_replay_listener *listener,
                                     struct mt_error *error)
{
    struct part own = {.replays = replays, .count = own_count, .listener = listener};
    struct part other = {.replays = replays + own_count, .count = count - own_count};
    struct mt_shared_reading *reading;
    enum mt_status status, second;
    pthread_t thread;

    MT_ASSERT(count > 0 && own_count <= count);
    if (own_count == count)
        return run_one_part(&own, error);
    reading = mt_shared_reading_new(replays->source);
    begin_part(&own, reading);
    begin_part(&other, reading);
    if (pthread_create(&thread, NULL, run_part, &other)) {
        mt_shared_reading_free(reading);
        own.count = count;
        return run_one_part(&own, error);
    }
    (void)run_part(&own);
    pthread_join(thread, NULL);
    mt_shared_reading_free(reading);
    second = finish_part(&other, error);
    status = finish_part(&own, error);
    return status ? status : second;
}
