/* One replay of the whole trace with the policy, limits, pools and foresight that replay.c chose.
 * Several replays can share one pass over the source.
 *
 *     struct mt_one_replay replay = {.options = ..., .summary = ..., .source = ...};
 *     status = mt_one_replay_run(&replay, error);                     one pass
 *     status = mt_one_replay_run_all(list, count, count, listener, error);   one pass for all
 *
 * Replays that differ only in their limits are equal until one limit refuses what another grants.
 * So those of one pass share a state: the one with the largest limit, the leader, runs, and a
 * follower gets a copy of its state before an event that may lead to a refusal under the follower's
 * limit or to a state that cannot be copied (private pools, an initial state, given addresses), or
 * when the leader ends. After a refusal that both limits share, the follower follows again. */
#ifndef MT_ANALYZER_ONE_REPLAY_H
#define MT_ANALYZER_ONE_REPLAY_H

#include "event_window.h"
#include "foresight.h"
#include "limit.h"
#include "lost_pools.h"
#include "replay.h"
#include "source.h"

struct mt_lane;

struct mt_one_replay {
    const struct mt_replay_options *options;
    const struct mt_replay_observer *observer;
    struct mt_replay_summary *summary;
    struct mt_source *source;
    struct mt_window *window; /* valid while the replay runs; may be shared */
    struct mt_policy_text policy;
    const struct mt_foresight *foresight; /* NULL = none */
    bool as_recorded;                     /* options and limit of the recorded run */
    struct mt_limit_watch *watch;         /* evidence of limits, NULL = not collected */
    bool watching;                        /* evidence is being collected, and no limit is known */
    bool stopped; /* an observed replay stopped at the first evidence of a limit */
    struct mt_lane *lanes[MT_MAX_DEVICES]; /* by device */
    const struct mt_lost_pools *pools;     /* NULL = those of the trace */
    bool compares; /* compares with the recording, to detect lost pools or another order of free
                      blocks */
    uint64_t allocations; /* number so far in the whole trace, including devices that no lane
                             simulates */
    uint64_t left_out[(UINT16_MAX + 1) / 64]; /* bits: devices at or above MT_MAX_DEVICES */
    uint64_t left_out_count;                  /* number of bits set */
    bool restoring;
    bool over; /* ended by its observer, while other replays of the same pass go on */
    struct mt_one_replay *leader; /* whose state is also this one's; NULL = it has its own state */
    uint64_t shared_limit_bytes;  /* of a leader: the least one of its followers; 0 = has none */
    bool may_return;              /* left its leader before this event, whose state it may share */
    unsigned returns;             /* how often it followed again */
    struct mt_replay_view view;   /* of the last event */
};

/* Returns true if the replay's source has only events of the driver (source.h). */
bool mt_one_replay_is_driver_level(const struct mt_one_replay *replay);

/* Reads the source from its start to its end, or until the observer returns MT_END. Fills the
 * summary. */
enum mt_status mt_one_replay_run(struct mt_one_replay *replay, struct mt_error *error) MT_MUST_USE;

/* Before a pass for all: makes the replay follow the one before it in the list, or the leader of
 * that one, if they differ only in their limits. Larger limits come first. */
void mt_one_replay_follow(struct mt_one_replay *replay, struct mt_one_replay *before);

/* Gives a follower a copy of the state of its leader; `separate` does so for its followers with
 * smaller limits than this. */
void mt_one_replay_leave(struct mt_one_replay *follower);
void mt_one_replay_separate(struct mt_one_replay *leader, struct mt_one_replay *replays,
                            size_t count, uint64_t least_bytes);

/* After the event before which replays[at] left its leader: makes it follow one before it in the
 * list again, if their limits made no difference so far. */
void mt_one_replay_return(struct mt_one_replay *replays, size_t at);

void mt_one_replay_free_lane(struct mt_lane *lane);

/* Like mt_one_replay_run, for one or more replays of one source, side by side. Each event goes to
 * the replays in their order, then to the listener (may be NULL). Stops early if every replay has
 * ended and there is no listener. The replays after the first `own_count` run in a second thread:
 * none of them may follow one of the first. */
enum mt_status mt_one_replay_run_all(struct mt_one_replay *replays, size_t count, size_t own_count,
                                     const struct mt_replay_listener *listener,
                                     struct mt_error *error) MT_MUST_USE;

#endif
