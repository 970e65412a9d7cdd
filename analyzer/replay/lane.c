#include "check.h"
#include "device_model.h"
#include "foresight.h"
#include "lane.h"
#include "live_table.h"
#include "lost_pools.h"
#include "policy.h"
#include "pool_tracks.h"
#include "replay_result.h"
#include "replay_view.h"
#include "verify.h"

/* Whole-structure check of a lane: each part by itself, and the counters of the policy against the
 * live blocks of the trace. */

/* Sums of the blocks that the policy serves: those that the program has, and all those held for
 * it. */
struct held {
    uint64_t allocated_bytes, active_bytes;
};

static struct held held_by(const struct mt_lane *lane)
{
    struct held held = {0, 0};

    for (uint32_t i = 0; i < lane->live.count; i++) {
        const struct mt_live *live = &lane->live.slots[i];
        if (live->handle == MT_LIVE_NO_HANDLE)
            continue;
        held.active_bytes += live->block_bytes;
        held.allocated_bytes += live->free_requested ? 0 : live->block_bytes;
    }
    if (lane->served_ahead && lane->outcome == MT_OK) { /* its event follows later */
        held.active_bytes += lane->outcome_block.size_bytes;
        held.allocated_bytes += lane->outcome_block.size_bytes;
    }
    return held;
}

/* Checks that policy, device and live table are sound, and that the policy's counters match the
 * live blocks. Do not call it during a restore. */
static bool lane_is_sound(const struct mt_lane *lane, const char **why)
{
    const struct mt_counters *counters = lane->ops->counters(lane->policy);

    if (!mt_live_is_sound(&lane->live, why) || !mt_pool_tracks_is_sound(&lane->tracks, why) ||
        !mt_device_is_sound(&lane->device, why) || !lane->ops->is_sound(lane->policy, why))
        return false;
    struct held held = held_by(lane);
    MT_SOUND(why, held.allocated_bytes == counters->allocated.now);
    MT_SOUND(why, held.active_bytes == counters->active.now);
    MT_SOUND(why, !lane->group_open || lane->group_shown <= lane->device.op_count);
    return true;
}

void mt_lane_check(struct mt_lane *lane, bool always)
{
    const char *why = "";

    if (lane->restoring ||
        (!mt_check_is_due(&lane->pace, 64 + 4 * (uint64_t)lane->live.count) && !always))
        return;
    MT_ASSERT_SOUND(lane_is_sound(lane, &why), why);
}

/* The pool in the run, 0 = the default one. */
static uint16_t own_pool_of(const struct mt_lane *lane, const struct mt_event *event)
{
    return lane->pools ? mt_lost_pools_of(lane->pools, event) : event->pool;
}

static uint16_t pool_of(const struct mt_lane *lane, const struct mt_event *event)
{
    uint16_t pool = own_pool_of(lane, event);
    uint32_t route = lane->foresight ? mt_pool_routes_of(&lane->foresight->routes, event->seq) : 0;

    return pool || !route ? pool : (uint16_t)(lane->foresight->routes.first_pool + route - 1);
}

static struct mt_policy_request request_of(const struct mt_lane *lane, const struct mt_event *event)
{
    struct mt_policy_request request = {event->size_bytes, event->stream, pool_of(lane, event),
                                        event->addr, event->aux_bytes};

    if (event->kind == MT_EVENT_OOM) /* has no address; aux is free memory */
        request.addr = request.block_bytes = 0;
    return request;
}

uint64_t mt_lane_most_tested(struct mt_lane *lane, const struct mt_event *event, uint8_t first,
                             uint64_t limit_bytes)
{
    const struct mt_policy_request request = request_of(lane, event);

    return lane->ops->most_tested(lane->policy, &request, first, limit_bytes);
}

/* Passes a new request to the policy. */
static enum mt_status ask(struct mt_lane *lane, const struct mt_event *event,
                          struct mt_policy_block *block)
{
    struct mt_policy_request request = request_of(lane, event);

    lane->device.planned =
        lane->foresight ? mt_step_plan_of(&lane->foresight->plan, event->seq) : 0;
    enum mt_status status = lane->ops->alloc(lane->policy, &request, block);
    if (lane->watches_reserved)
        lane->given_up =
            (status == MT_ERR_DEVICE_OOM && event->kind == MT_EVENT_ALLOC) ||
            lane->ops->counters(lane->policy)->reserved.peak > lane->most_reserved_bytes;
    return status;
}

static void show(const struct mt_lane *lane, struct mt_replay_view *view)
{
    view->counters = lane->ops->counters(lane->policy);
}

/* What a flush does before it releases memory. The events that complete these frees later find no
 * block. A replay of the recorded run does not need it: there, the frees that the run's own flush
 * completed have events before the flush, and all others wait on. */
static enum mt_status complete_waiting(void *context)
{
    struct mt_lane *lane = context;
    enum mt_status status = MT_OK;

    /* By slot: the order of the chains depends on the process's key. */
    for (uint32_t i = 0; status == MT_OK && i < lane->live.count; i++) {
        struct mt_live *live = &lane->live.slots[i];

        if (!live->free_requested || live->handle == MT_LIVE_NO_HANDLE)
            continue;
        status = lane->ops->free_completed(lane->policy, live->handle);
        live->handle = MT_LIVE_NO_HANDLE;
    }
    return status;
}

void mt_lane_let_complete(struct mt_lane *lane)
{
    lane->device.complete_waiting = complete_waiting;
    lane->device.lane = lane;
}

void mt_lane_open_group(struct mt_lane *lane)
{
    mt_device_clear(&lane->device);
    MT_ASSERT(!lane->served_ahead && !lane->restoring);
    lane->group_open = true;
    lane->group_shown = 0;
    lane->served_ahead = false;
    lane->before_group = *lane->ops->counters(lane->policy);
}

void mt_lane_offer(struct mt_lane *lane, const struct mt_event *event)
{
    mt_device_offer_base(&lane->device, event, pool_of(lane, event));
}

static bool is_request(const struct mt_event *event)
{
    return event && (event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_OOM);
}

static bool is_release(uint8_t kind)
{
    return kind == MT_EVENT_SEGMENT_FREE || kind == MT_EVENT_SEGMENT_UNMAP;
}

/* Whether the program emptied the cache, rather than the request behind the group. The policy knows
 * what the request would do if it simulates the recorded options. */
static bool is_explicit_flush(struct mt_lane *lane, const struct mt_event *trigger)
{
    if (!lane->device.base_count || !is_release(lane->device.bases[0].kind))
        return false;
    if (!is_request(trigger))
        return true;
    if (!lane->follows_options || !lane->ops->would_release)
        return !lane->device.limit_bytes;
    struct mt_policy_request request = request_of(lane, trigger);
    return !lane->ops->would_release(lane->policy, &request);
}

enum mt_status mt_lane_resolve_group(struct mt_lane *lane, uint64_t first_seq,
                                     const struct mt_event *trigger, bool explicit_flush)
{
    enum mt_status status = MT_OK;

    if (explicit_flush || is_explicit_flush(lane, trigger))
        status = lane->ops->empty_cache(lane->policy);
    if (status != MT_OK || lane->ops->follow_segment)
        return status; /* policies that follow the trace need no lookahead */
    if (is_request(trigger) && (trigger->kind == MT_EVENT_ALLOC || lane->device.limit_bytes)) {
        lane->outcome = ask(lane, trigger, &lane->outcome_block);
        lane->served_ahead = true;
        lane->trigger_seq = trigger->seq;
        if (lane->outcome != MT_OK && lane->outcome != MT_ERR_DEVICE_OOM)
            return lane->outcome;
    }
    if (lane->result->verify.wanted)
        mt_verify_group(&lane->result->verify, &lane->device, first_seq);
    return MT_OK;
}

void mt_lane_segment(struct mt_lane *lane, const struct mt_event *event,
                     struct mt_replay_view *view)
{
    view->pool = own_pool_of(lane, event);
    if (lane->ops->follow_segment) {
        lane->ops->follow_segment(lane->policy, event);
        lane->result->verify.segment_events++; /* exact by definition */
        lane->result->verify.segment_events_exact++;
        show(lane, view);
        return;
    }
    mt_pool_tracks_segment(&lane->tracks, event, view->pool);
    if (lane->group_shown < lane->device.op_count)
        view->counters = &lane->device.ops[lane->group_shown++].after;
    else if (lane->device.op_count)
        view->counters = &lane->device.ops[lane->device.op_count - 1].after;
    else
        view->counters = &lane->before_group;
}

bool mt_lane_may_restore(struct mt_lane *lane, const struct mt_event *event)
{
    return mt_pool_restores_may_begin(&lane->restores, &lane->tracks, event,
                                      own_pool_of(lane, event));
}

bool mt_lane_scan(struct mt_lane *lane, const struct mt_event *event)
{
    return mt_pool_restores_scan(&lane->restores, &lane->tracks, event, own_pool_of(lane, event));
}

bool mt_lane_settle(struct mt_lane *lane)
{
    return mt_pool_restores_settle(&lane->restores, &lane->tracks);
}

/* Counts a block, or a gap, that `place` may have found no place for. */
static void count_place(struct mt_restore_share *share, bool is_gap, enum mt_status status)
{
    share->gaps_left_out += is_gap && status != MT_OK;
    share->unplaced += !is_gap && status != MT_OK && status != MT_ERR_UNSUPPORTED;
    share->unsearched += !is_gap && status == MT_ERR_UNSUPPORTED;
}

static bool is_without_place(enum mt_status status)
{
    return status == MT_ERR_FORMAT || status == MT_ERR_UNSUPPORTED;
}

/* Before the first tile of a segment: looks for a segment in the simulated pool that can be cut in
 * the same way. */
static void look_at_segment(struct mt_lane *lane, const struct mt_pool_tile *tile,
                            struct mt_policy_request request)
{
    uint64_t bytes = mt_pool_restores_segment_bytes(&lane->restores, tile);

    if (!bytes)
        return;
    request.addr = tile->place_addr;
    request.block_bytes = bytes;
    lane->restores.group_is_idle =
        lane->ops->place && tile->place_bytes && lane->ops->is_idle_segment(lane->policy, &request);
}

/* Places a tile of a restore in the simulated pool. If the pool lacks the place, a block that stays
 * becomes an ordinary request. A gap is not a request of the program, so it is skipped. */
static enum mt_status serve_tile(struct mt_lane *lane, const struct mt_event *event,
                                 const struct mt_pool_tile *tile, struct mt_policy_block *block)
{
    struct mt_policy_request request = request_of(lane, event);
    enum mt_status status = MT_ERR_FORMAT;

    look_at_segment(lane, tile, request);
    request.addr = tile->place_addr;
    request.block_bytes = tile->place_bytes;
    if (lane->ops->place && (!tile->freed || lane->restores.group_is_idle))
        status = lane->ops->place(lane->policy, &request, block);
    lane->result->restores.restores += tile == lane->restores.tiles;
    lane->result->restores.blocks += !tile->freed;
    lane->result->restores.gaps += tile->freed > 0;
    count_place(&lane->result->restores, tile->freed, status);
    if (!is_without_place(status))
        return status;
    return tile->freed ? MT_OK : ask(lane, event, block);
}

/* Whether the program chose the address of the block, or this is the gap below such a block. */
static bool is_at_given_address(const struct mt_lane *lane, const struct mt_event *event)
{
    return !lane->ops->follow_segment && (event->flags & (MT_EVENT_GAP | MT_EVENT_AT_ADDRESS) ||
                                          (lane->gap_end && lane->gap_end == event->addr));
}

/* Like tiles: if the simulated pool lacks the place, the block becomes an ordinary request, and the
 * gap is skipped. */
static enum mt_status serve_at_address(struct mt_lane *lane, const struct mt_event *event,
                                       struct mt_policy_block *block)
{
    struct mt_policy_request request = request_of(lane, event);
    bool is_gap = event->flags & MT_EVENT_GAP;
    enum mt_status status = MT_ERR_FORMAT;

    request.block_bytes = is_gap ? event->size_bytes : 0;
    if (lane->ops->place && lane->result->recorded_addresses)
        status = lane->ops->place(lane->policy, &request, block);
    lane->serves_gap = is_gap;
    lane->gap_end = is_gap ? event->addr + event->size_bytes : 0;
    if (!is_without_place(status))
        return status;
    count_place(&lane->result->restores, is_gap, status);
    return is_gap ? MT_OK : ask(lane, event, block);
}

/* Serves a request: with the result computed ahead, or by the policy. */
static enum mt_status serve(struct mt_lane *lane, const struct mt_event *event,
                            struct mt_policy_block *block)
{
    MT_ASSERT(!lane->served_ahead || lane->trigger_seq == event->seq);
    lane->group_open = false;
    if (lane->served_ahead && lane->trigger_seq == event->seq) {
        lane->served_ahead = false;
        *block = lane->outcome_block;
        return lane->outcome;
    }
    mt_device_clear(&lane->device);
    if (is_at_given_address(lane, event))
        return serve_at_address(lane, event, block);
    lane->gap_end = 0;
    const struct mt_pool_tile *tile = mt_pool_restores_take(&lane->restores, event->seq);
    lane->serves_gap = tile && tile->freed;
    enum mt_status status = tile ? serve_tile(lane, event, tile, block) : ask(lane, event, block);
    if (lane->result->verify.wanted && lane->device.op_count)
        mt_verify_group(&lane->result->verify, &lane->device, event->seq);
    return status;
}

static void count_route(struct mt_lane *lane, const struct mt_event *event)
{
    uint32_t route = lane->foresight ? mt_pool_routes_of(&lane->foresight->routes, event->seq) : 0;

    if (!route)
        return;
    MT_ASSERT(route <= lane->foresight->routes.pool_count);
    struct mt_pool_share *share = &lane->result->pools[route - 1];
    if (pool_of(lane, event) >= lane->foresight->routes.first_pool) {
        share->requests++;
        share->requested_bytes += event->size_bytes;
    } else {
        share->private_requests++;
        share->private_requested_bytes += event->size_bytes;
    }
}

static enum mt_status finish_free(struct mt_lane *lane, struct mt_live *live)
{
    enum mt_status status = MT_OK;

    if (live->is_tracked)
        mt_pool_tracks_end(&lane->tracks, live->addr);
    if (live->handle != MT_LIVE_NO_HANDLE) {
        if (!live->free_requested)
            status = lane->ops->free_requested(lane->policy, live->handle);
        if (status == MT_OK)
            status = lane->ops->free_completed(lane->policy, live->handle);
    }
    if (status == MT_OK)
        mt_live_remove(&lane->live, live);
    return status;
}

static void remember(struct mt_lane *lane, const struct mt_event *event,
                     const struct mt_policy_block *block, uint64_t allocation,
                     struct mt_replay_view *view)
{
    const uint16_t pool = own_pool_of(lane, event);
    struct mt_live *live = mt_live_add(&lane->live, event->addr);

    MT_ASSERT(block->handle != MT_LIVE_NO_HANDLE || !block->size_bytes);
    live->block_addr = view->block_addr = block->addr;
    live->block_bytes = view->block_bytes = block->size_bytes;
    live->requested_bytes = event->size_bytes;
    live->allocation = view->allocation = allocation;
    live->handle = block->handle;
    live->free_requested = false;
    live->is_tracked = pool && !lane->ops->follow_segment && !lane->serves_gap;
    live->pool = view->pool = pool;
    view->is_left_out = lane->serves_gap && !block->size_bytes;
    show(lane, view);
    if (live->is_tracked)
        mt_pool_tracks_begin(&lane->tracks,
                             &(struct mt_block_track){.addr = event->addr,
                                                      .size_bytes = event->size_bytes,
                                                      .block_addr = block->addr,
                                                      .block_bytes = block->size_bytes,
                                                      .pool = pool});
}

enum mt_status mt_lane_alloc(struct mt_lane *lane, const struct mt_event *event,
                             uint64_t allocation, struct mt_replay_view *view)
{
    struct mt_policy_block block = {MT_LIVE_NO_HANDLE, 0, 0};
    struct mt_live *before = mt_live_find(&lane->live, event->addr);
    enum mt_status status;

    if (before) { /* its free was lost */
        lane->result->orphan_frees++;
        if (lane->result->verify.wanted)
            mt_verify_lost_free(&lane->result->verify, event);
        status = finish_free(lane, before);
        if (status != MT_OK)
            return status;
    }
    count_route(lane, event);
    status = serve(lane, event, &block);
    if (lane->result->verify.wanted)
        mt_verify_address(&lane->result->verify, event, status, block.addr);
    if (status == MT_ERR_DEVICE_OOM) {
        lane->result->failed_requests++;
        block = (struct mt_policy_block){MT_LIVE_NO_HANDLE, 0, 0};
        status = MT_OK;
    }
    if (status == MT_OK)
        remember(lane, event, &block, allocation, view);
    lane->serves_gap = false;
    if (status == MT_OK)
        mt_lane_check(lane, false);
    return status;
}

enum mt_status mt_lane_free(struct mt_lane *lane, const struct mt_event *event,
                            struct mt_replay_view *view)
{
    struct mt_live *live = mt_live_find(&lane->live, event->addr);
    bool completes = event->kind == MT_EVENT_FREE_COMPLETED || lane->completes_at_request;
    enum mt_status status = MT_OK;

    lane->group_open = false;
    if (completes && lane->result->verify.wanted)
        mt_verify_free(&lane->result->verify, event, live,
                       lane->frees_are_requested && event->kind == MT_EVENT_FREE_COMPLETED);
    if (!live) {
        lane->result->orphan_frees++;
        show(lane, view);
        return MT_OK;
    }
    view->block_addr = live->block_addr;
    view->block_bytes = live->block_bytes;
    view->allocation = live->allocation;
    view->pool = live->pool;
    if (completes) {
        status = finish_free(lane, live);
    } else if (!live->free_requested) {
        live->free_requested = true;
        if (live->is_tracked)
            mt_pool_tracks_end(&lane->tracks, event->addr);
        if (live->handle != MT_LIVE_NO_HANDLE)
            status = lane->ops->free_requested(lane->policy, live->handle);
    }
    show(lane, view);
    if (status == MT_OK)
        mt_lane_check(lane, false);
    return status;
}

enum mt_status mt_lane_oom(struct mt_lane *lane, const struct mt_event *event,
                           struct mt_replay_view *view)
{
    struct mt_policy_block block;
    enum mt_status status = MT_OK;

    /* Without a limit nothing can run out. The request is skipped, because the program continued
     * without the memory. */
    if (lane->device.limit_bytes || lane->ops->follow_segment)
        status = serve(lane, event, &block);
    else {
        lane->group_open = false;
        lane->result->ooms_not_asked++;
    }
    if (lane->result->verify.wanted)
        mt_verify_oom(&lane->result->verify, event, status);
    if (status == MT_OK && (lane->device.limit_bytes || lane->ops->follow_segment)) {
        view->block_addr = block.addr;
        view->block_bytes = block.size_bytes;
        status = lane->ops->free_requested(lane->policy, block.handle);
        if (status == MT_OK)
            status = lane->ops->free_completed(lane->policy, block.handle);
    }
    show(lane, view);
    return status == MT_ERR_DEVICE_OOM ? MT_OK : status;
}

void mt_lane_set_plan(struct mt_lane *lane)
{
    const struct mt_device_plan *plan = lane->device.plan;

    if (!plan || !plan->planned_count)
        return;
    lane->result->plan = plan->share;
    lane->result->plan.hits = lane->device.plan_hits;
    lane->result->plan.misses = lane->device.plan_misses;
}

/* Whether the policy has done anything, or its state was restored. */
static bool has_begun(const struct mt_lane *lane)
{
    const struct mt_counters *counters = lane->ops->counters(lane->policy);

    return lane->is_restored || counters->allocations || counters->device_allocs || counters->ooms;
}

/* Some policies file free blocks only after the whole state is restored, so nothing may complete
 * before. */
static bool must_wait(const struct mt_lane *lane, const struct mt_event *event)
{
    return lane->ops->restored &&
           (event->kind == MT_EVENT_FREE_COMPLETED ||
            (event->kind == MT_EVENT_FREE_REQUESTED && lane->completes_at_request));
}

static enum mt_status restore_free(struct mt_lane *lane, const struct mt_event *event,
                                   struct mt_replay_view *view)
{
    struct mt_live *live = mt_live_find(&lane->live, event->addr);

    if (!must_wait(lane, event) || !live)
        return mt_lane_free(lane, event, view);
    if (live->free_requested)
        return MT_OK;
    live->free_requested = true;
    if (live->is_tracked)
        mt_pool_tracks_end(&lane->tracks, event->addr);
    return live->handle == MT_LIVE_NO_HANDLE
               ? MT_OK
               : lane->ops->free_requested(lane->policy, live->handle);
}

/* An INITIAL event after the start in a damaged trace: nothing is known about the block. */
static void restore_late(struct mt_lane *lane, const struct mt_event *event, uint64_t allocation,
                         struct mt_replay_view *view)
{
    const struct mt_policy_block nowhere = {MT_LIVE_NO_HANDLE, 0, 0};

    if (event->kind != MT_EVENT_ALLOC || mt_live_find(&lane->live, event->addr))
        return;
    lane->result->failed_requests++;
    remember(lane, event, &nowhere, allocation, view);
}

static enum mt_status restore_block(struct mt_lane *lane, const struct mt_event *event,
                                    uint64_t allocation, struct mt_replay_view *view)
{
    struct mt_policy_block block;
    enum mt_status status = lane->ops->restore_block(lane->policy, event, &block);

    /* it is in no segment, or exceeds every limit: nothing is known about it */
    if (status == MT_ERR_FORMAT || status == MT_ERR_DEVICE_OOM) {
        lane->result->failed_requests++;
        block = (struct mt_policy_block){MT_LIVE_NO_HANDLE, 0, 0};
        status = MT_OK;
    }
    if (status == MT_OK)
        remember(lane, event, &block, allocation, view);
    return status;
}

enum mt_status mt_lane_restore(struct mt_lane *lane, const struct mt_event *event,
                               uint64_t allocation, struct mt_replay_view *view)
{
    struct mt_event in_pool = *event;

    show(lane, view);
    if (!lane->restoring && has_begun(lane)) {
        restore_late(lane, event, allocation, view);
        return MT_OK;
    }
    in_pool.pool = pool_of(lane, event);
    view->pool = in_pool.pool;
    lane->result->starts_in_middle = true;
    lane->restoring = true;
    if (event->kind == MT_EVENT_ALLOC && mt_live_find(&lane->live, event->addr)) {
        lane->result->failed_requests++; /* two blocks at one address: the first is kept */
        return MT_OK;
    }
    if (event->kind == MT_EVENT_ALLOC && !lane->ops->restore_block)
        return mt_lane_alloc(lane, event, allocation, view);
    if (mt_event_is_segment(event)) {
        if (!lane->ops->follow_segment)
            mt_pool_tracks_segment(&lane->tracks, event, in_pool.pool);
        if (lane->ops->restore_segment)
            lane->ops->restore_segment(lane->policy, &in_pool);
        return MT_OK;
    }
    return event->kind == MT_EVENT_ALLOC ? restore_block(lane, &in_pool, allocation, view)
                                         : restore_free(lane, event, view);
}

enum mt_status mt_lane_restored(struct mt_lane *lane)
{
    enum mt_status status = MT_OK;

    MT_ASSERT(!lane->is_restored);
    lane->restoring = false;
    lane->is_restored = true;
    if (lane->ops->restored)
        status = lane->ops->restored(lane->policy);
    if (status == MT_OK && lane->ops->restored && lane->completes_at_request)
        status = complete_waiting(lane);
    lane->result->start_reserved_bytes = lane->ops->counters(lane->policy)->reserved.now;
    if (status == MT_OK)
        mt_lane_check(lane, true);
    return status;
}
