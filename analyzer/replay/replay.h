/* Replay: feeds the events of a trace, device by device, to a simulated
 * allocator (policies/policy.h), compares what it does with what was recorded,
 * and tells an observer the state after every event. */
#ifndef MT_ANALYZER_REPLAY_H
#define MT_ANALYZER_REPLAY_H

#include "counters.h"
#include "address_space.h"
#include "foresight.h"
#include "replay_result.h"
#include "replay_view.h"
#include "source.h"

/* One policy as a user spells it: "pytorch", "recorded",
 * "pytorch:expandable_segments:True,max_split_size_mb:64" (or with '='). A bare
 * "pytorch" means the options that the trace recorded. Behind the options of
 * "pytorch" may come pools that the run did not have (pool_routes.h). */
struct mt_replay_options {
    const char *policy;         /* NULL: mt_policy_of_run, or "recorded" if the trace has no
                                   allocator above the driver */
    uint64_t limit_bytes;       /* 0 = what the trace recorded or implies, if the policy
                                   has the recorded options; else unlimited */
    bool blind;                 /* do not use recorded segment addresses */
    struct mt_base_order order; /* of addresses that are made up */
    bool verify;                /* compare with what was recorded */
    bool no_inferred_limit;     /* do not deduce the limit from OOMs and flushes */
    bool no_inferred_pools;     /* do not look for lost pools (lost_pools.h) */
    /* For `policy`, made before: for those who replay often. NULL: made here, in a
     * reading more. */
    const struct mt_foresight *foresight;
    /* MT_MAX_DEVICES of them, by device: one that reserves more, or fails a request that
     * was served, is not simulated any further (given_up). NULL: all are, to the end. */
    const uint64_t *most_reserved_bytes;
};

/* Called for every event of the trace in order, phases and marks included; what
 * device is not simulated any further has no view.
 * MT_END stops the replay early, and is no error: the summary is about what was
 * replayed. */
struct mt_replay_observer {
    void *context;
    enum mt_status (*event)(void *context, const struct mt_event *event,
                            const struct mt_replay_view *view);
    /* The replay starts again: forget what you saw. May be NULL: then the first
     * try is the only one, and lost pools stay lost. */
    enum mt_status (*restart)(void *context);
};

struct mt_replay_summary {
    char policy[MT_POLICY_TEXT]; /* canonical spelling: what was really simulated */
    bool is_driver_level;        /* requests are those to the driver (heap_view.h) */
    uint16_t device_count;       /* entries in use of devices[] */
    struct mt_replay_result devices[MT_MAX_DEVICES]; /* indexed by position;
                                                        see .device */
};

/* Replays the whole source, which stands at its start. Of several heaps those
 * that are in view (heap_view.h; chosen here, if they are not). observer may be
 * NULL. `summary` is large: keep it on the heap or static. */
enum mt_status mt_replay_run(struct mt_source *source, const struct mt_replay_options *options,
                             const struct mt_replay_observer *observer,
                             struct mt_replay_summary *summary, struct mt_error *error) MT_MUST_USE;

/* One of several replays that share a reading. observer may be NULL; its `restart` is not used. */
struct mt_replay_job {
    const struct mt_replay_options *options;
    const struct mt_replay_observer *observer;
    struct mt_replay_summary *summary;
};

/* Receives every event of a shared reading, after the replays. */
struct mt_replay_listener {
    void *context;
    enum mt_status (*event)(void *context, const struct mt_event *event);
};

/* As mt_replay_run for each of one or more jobs, in one reading of the source, which stands at its
 * start. Only for replays that need no other to be made: no_inferred_limit and no_inferred_pools,
 * or a policy that is not the recorded one. An observer that returns MT_END ends its own replay.
 * listener: NULL = nobody. Memory: that of all replays at the same time. */
enum mt_status mt_replay_run_together(struct mt_source *source, const struct mt_replay_job *jobs,
                                      size_t count, const struct mt_replay_listener *listener,
                                      struct mt_error *error) MT_MUST_USE;

/* Did the replay do what was recorded, on every device? Only if options.verify. */
bool mt_replay_is_exact(const struct mt_replay_summary *summary);

/* Replays as the run was: by PyTorch's rules as long as they reproduce what was recorded; else,
 * and of a program without an allocator above the driver, what was recorded. As mt_replay_run, once
 * or twice, in the view that is chosen here if need be; options->policy and ->verify are not looked
 * at. The observer needs `restart`. `difference`: "" = none, else why PyTorch's rules were given
 * up, which then is what the recorded block sizes come from. */
enum mt_status mt_replay_as_run(struct mt_source *source, const struct mt_replay_options *options,
                                const struct mt_replay_observer *observer,
                                struct mt_replay_summary *summary, char difference[240],
                                struct mt_error *error) MT_MUST_USE;

#endif
