/* One simulated device of a replay: its policy, its device model, its live blocks, and the current
 * group of segment events.
 *
 * A trace shows what an allocator did to the device *before* the request that caused it:
 *
 *     segment_free  segment_free  segment_alloc  alloc
 *     `------------ group ----------------------' `- trigger
 *
 * So the lane serves the trigger when the group begins (the engine looks ahead) and compares all
 * operations with the group. It then passes the events of the group on one by one, each with the
 * counters right after it. */
#ifndef MT_ANALYZER_LANE_H
#define MT_ANALYZER_LANE_H

#include "check.h"
#include "device_model.h"
#include "foresight.h"
#include "live_table.h"
#include "lost_pools.h"
#include "policy.h"
#include "pool_tracks.h"
#include "replay_result.h"
#include "replay_view.h"

struct mt_lane {
    const struct mt_policy_ops *ops;
    struct mt_policy *policy;
    struct mt_device_model device;
    struct mt_live_table live;
    struct mt_replay_result *result;
    bool follows_options;            /* simulates the options of the recorded run */
    bool completes_at_request;       /* the trace has no free_completed events */
    bool frees_are_requested;        /* the trace has free_requested events */
    bool restoring;                  /* INITIAL events are arriving */
    bool is_restored;                /* INITIAL events have ended: any later ones are lost */
    bool watches_reserved, given_up; /* see most_reserved_bytes */
    uint64_t most_reserved_bytes;
    const struct mt_lost_pools *pools;    /* NULL = those of the trace */
    const struct mt_foresight *foresight; /* NULL = none */
    /* Empty if the policy follows the trace, because such a policy needs no restores. */
    struct mt_pool_tracks tracks;
    struct mt_pool_restores restores;
    bool serves_gap;  /* a gap is being served: it is not part of a pool's state */
    uint64_t gap_end; /* after a gap below a given address: where it ends; otherwise 0 */

    bool group_open;
    size_t group_shown; /* number of operations that were passed on */
    struct mt_counters before_group;
    bool served_ahead; /* the trigger was served when the group began */
    uint64_t trigger_seq;
    enum mt_status outcome;
    struct mt_policy_block outcome_block;

    struct mt_check_pace pace; /* of lane_is_sound */
};

/* Asserts that the lane is sound: at random moments, or on each call if `always` is set. */
void mt_lane_check(struct mt_lane *lane, bool always);

/* Returns what most_tested (policy.h) returns for the request of an event. */
uint64_t mt_lane_most_tested(struct mt_lane *lane, const struct mt_event *event, uint8_t first,
                             uint64_t limit_bytes);

/* Allows the policy to complete waiting frees before it fails. Call it after mt_device_init. */
void mt_lane_let_complete(struct mt_lane *lane);

/* mt_lane_open_group opens a new group. mt_lane_offer then takes its recorded segment events one by
 * one, and mt_lane_resolve_group ends the group. `trigger` is the memory event after the group, or
 * NULL at the end of the trace. `explicit_flush`: an EMPTY_CACHE event opened the group. */
void mt_lane_open_group(struct mt_lane *lane);
void mt_lane_offer(struct mt_lane *lane, const struct mt_event *event);
enum mt_status mt_lane_resolve_group(struct mt_lane *lane, uint64_t first_seq,
                                     const struct mt_event *trigger,
                                     bool explicit_flush) MT_MUST_USE;

/* Take the memory events in order. These functions fill *view, and update the counts of
 * lane->result. */
void mt_lane_segment(struct mt_lane *lane, const struct mt_event *event,
                     struct mt_replay_view *view);
enum mt_status mt_lane_alloc(struct mt_lane *lane, const struct mt_event *event,
                             uint64_t allocation, struct mt_replay_view *view) MT_MUST_USE;

/* Call it before mt_lane_alloc, or before the group that the allocation triggers. Returns true if
 * the allocation can begin a restore of a private pool. If so, pass the events after it to
 * mt_lane_scan until that returns false. mt_lane_settle then returns true if they are a restore. */
bool mt_lane_may_restore(struct mt_lane *lane, const struct mt_event *event);
bool mt_lane_scan(struct mt_lane *lane, const struct mt_event *event);
bool mt_lane_settle(struct mt_lane *lane);

enum mt_status mt_lane_free(struct mt_lane *lane, const struct mt_event *event,
                            struct mt_replay_view *view) MT_MUST_USE;
enum mt_status mt_lane_oom(struct mt_lane *lane, const struct mt_event *event,
                           struct mt_replay_view *view) MT_MUST_USE;

/* At the end: stores the outcome of the plan, if there is one, in lane->result. */
void mt_lane_set_plan(struct mt_lane *lane);

/* State at the start of the trace; call mt_lane_restored once after the last event. An INITIAL
 * event after other events is lost: policies accept a state only once, at the start. */
enum mt_status mt_lane_restore(struct mt_lane *lane, const struct mt_event *event,
                               uint64_t allocation, struct mt_replay_view *view) MT_MUST_USE;
enum mt_status mt_lane_restored(struct mt_lane *lane) MT_MUST_USE;

#endif
