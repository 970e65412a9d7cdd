/* One replay of the whole trace, as replay.c has decided to make it: with this policy, these
 * limits, pools and foresight. Several of them can share a reading of the source.
 *
 *     struct mt_one_replay replay = {.options = ..., .summary = ..., .source = ...};
 *     status = mt_one_replay_run(&replay, error);                     one reading
 *     status = mt_one_replay_run_all(list, count, listener, error);   one reading for all
 */
#ifndef MT_ANALYZER_ONE_REPLAY_H
#define MT_ANALYZER_ONE_REPLAY_H

#include "foresight.h"
#include "limit_infer.h"
#include "lost_pools.h"
#include "replay.h"
#include "window.h"

struct mt_lane;

struct mt_one_replay {
    const struct mt_replay_options *options;
    const struct mt_replay_observer *observer;
    struct mt_replay_summary *summary;
    struct mt_source *source;
    struct mt_window *window; /* while it runs; may be shared */
    struct mt_policy_text policy;
    const struct mt_foresight *foresight;  /* NULL = none is wanted */
    bool as_recorded;                      /* options and limit of the recorded run */
    struct mt_limit_watch *watch;          /* evidence of limits, NULL = not wanted */
    bool watching;                         /* it is being collected, and no limit is known */
    bool stopped;                          /* an observed run, where a limit showed */
    struct mt_lane *lanes[MT_MAX_DEVICES]; /* by device */
    const struct mt_lost_pools *pools;     /* NULL = those of the trace */
    bool compares;        /* to see if pools were lost, or free blocks had another order */
    uint64_t allocations; /* so far: all of the trace, also those that no lane simulates */
    uint64_t left_out[(UINT16_MAX + 1) / 64]; /* bits: devices from MT_MAX_DEVICES on */
    uint64_t left_out_count;                  /* bits that are set */
    bool restoring;
    bool over; /* one of several: its observer wants no more */
};

/* Its source has the driver's events alone (heap_view.h). */
bool mt_one_replay_is_driver_level(const struct mt_one_replay *replay);

/* Reads the source, which stands at its start, to its end, or until the observer returns MT_END.
 * Fills the summary. */
enum mt_status mt_one_replay_run(struct mt_one_replay *replay, struct mt_error *error) MT_MUST_USE;

/* The same for one or more replays of one source, side by side. Each event reaches the replays in
 * their order, then the listener (may be NULL). Ends early if every replay is over and nobody
 * listens. */
enum mt_status mt_one_replay_run_all(struct mt_one_replay *replays, size_t count,
                                     const struct mt_replay_listener *listener,
                                     struct mt_error *error) MT_MUST_USE;

#endif
