/* Replay: feeds the events of a trace, device by device, to a simulated allocator
 * (allocators/policy.h), compares its actions with the recorded ones, and passes the state after
 * every event to an observer. */
#ifndef MT_ANALYZER_REPLAY_H
#define MT_ANALYZER_REPLAY_H

#include "device_model.h"
#include "foresight.h"
#include "replay_result.h"
#include "replay_view.h"
#include "source.h"

/* `policy` is spelled as by users: "pytorch", "recorded",
 * "pytorch:expandable_segments:True,max_split_size_mb:64" (or with '='). A bare "pytorch" means the
 * options that the trace recorded. Pools that the run did not have (foresight.h) may follow the
 * options of "pytorch". */
struct mt_replay_options {
    const char *policy;   /* NULL: mt_policy_of_run, or "recorded" if the trace has no
                             allocator above the driver */
    uint64_t limit_bytes; /* 0 = recorded or inferred limit, if the policy has the recorded options;
                             otherwise unlimited */
    bool blind;           /* do not use recorded segment addresses */
    struct mt_base_order order; /* of invented addresses */
    bool verify;                /* compare with the recording */
    bool no_inferred_limit;     /* do not infer the limit from OOMs and flushes */
    bool no_inferred_pools;     /* do not infer lost pools (lost_pools.h) */
    /* Callers that replay often prepare it for `policy`. NULL: mt_replay_run prepares it in one
     * more pass. */
    const struct mt_foresight *foresight;
    /* MT_MAX_DEVICES limits, by device. Simulation of a device stops (given_up) if it reserves
     * more, or fails a request that was served. NULL: all devices are simulated to the end. */
    const uint64_t *most_reserved_bytes;
};

/* Called for every event of the trace in order, including phases and marks. Devices whose
 * simulation stopped have no view. MT_END stops the replay early without an error: the summary
 * covers the events so far. */
struct mt_replay_observer {
    void *context;
    enum mt_status (*event)(void *context, const struct mt_event *event,
                            const struct mt_replay_view *view);
    /* Called when the replay restarts: must discard the state. If NULL, only one attempt is made,
     * and lost pools are not inferred. */
    enum mt_status (*restart)(void *context);
};

struct mt_replay_summary {
    char policy[MT_POLICY_TEXT]; /* canonical spelling of the simulated policy */
    bool is_driver_level;        /* requests are those to the driver (source.h) */
    uint16_t device_count;       /* entries in use of devices[] */
    struct mt_replay_result devices[MT_MAX_DEVICES]; /* indexed by position; see .device */
};

/* Replays the whole source from its start. Uses the heaps in view (source.h), and chooses them
 * if the caller did not. observer may be NULL. `summary` is large: keep it on the heap or
 * static. */
enum mt_status mt_replay_run(struct mt_source *source, const struct mt_replay_options *options,
                             const struct mt_replay_observer *observer,
                             struct mt_replay_summary *summary, struct mt_error *error) MT_MUST_USE;

/* One of several replays that share a pass. observer may be NULL; its `restart` is not used. */
struct mt_replay_job {
    const struct mt_replay_options *options;
    const struct mt_replay_observer *observer;
    struct mt_replay_summary *summary;
};

/* Receives every event of a shared pass, after the replays. */
struct mt_replay_listener {
    void *context;
    enum mt_status (*event)(void *context, const struct mt_event *event);
};

/* Like mt_replay_run for one or more jobs, in one pass over the source from its start. Only for
 * jobs that do not depend on another replay: those with no_inferred_limit and no_inferred_pools, or
 * with a policy other than the recorded one. An observer that returns MT_END ends its own replay.
 * listener: NULL = none. Memory: the sum of all replays. */
enum mt_status mt_replay_run_together(struct mt_source *source, const struct mt_replay_job *jobs,
                                      size_t count, const struct mt_replay_listener *listener,
                                      struct mt_error *error) MT_MUST_USE;

/* Returns true if the actions of the replay equal the recorded ones on every device. Valid only
 * with options.verify. */
bool mt_replay_is_exact(const struct mt_replay_summary *summary);

/* Replays the run as it was: by PyTorch's rules if they reproduce the recording. Otherwise, and for
 * a program without an allocator above the driver, repeats the recorded actions. Calls
 * mt_replay_run once or twice, and chooses the view if necessary. Ignores options->policy and
 * options->verify. The observer needs `restart`. `difference` becomes "", or the reason why
 * PyTorch's rules were rejected; block sizes are then the recorded ones. */
enum mt_status mt_replay_as_run(struct mt_source *source, const struct mt_replay_options *options,
                                const struct mt_replay_observer *observer,
                                struct mt_replay_summary *summary, char difference[240],
                                struct mt_error *error) MT_MUST_USE;

/* Repeats a replay with invented addresses in other orders (device_model.h). The order of equal
 * free blocks decides which one is used, and no trace shows where the driver would place segments
 * that the run did not have. */

/* Sets options->order to entry `index` (from 0) of this list: the driver's order, upward, downward,
 * and random with the seeds 1, 2, ... All of these orders invent every address. If `recorded` is
 * set, the list has one more order, as entry 0: recorded addresses where possible, otherwise the
 * driver's order. The function also sets options->blind accordingly. */
static inline void mt_replay_use_order(struct mt_replay_options *options, uint32_t index,
                                       bool recorded)
{
    options->blind = recorded ? index > 0 : options->blind;
    options->order = mt_base_order_at(recorded && index > 0 ? index - 1 : index);
}

/* Completes `summary`, the result of a replay with these options. Fills order_count, the lowest and
 * highest peaks, and the largest number of failed requests of every device. If addresses decided
 * choices on a device (address_ties), these values cover the first `orders` orders (1 to
 * MT_BASE_ORDERS). The further ones share one pass over the source from its start, unless a limit
 * has to be inferred: then each needs its own. Returns the status of mt_replay_run. */
enum mt_status mt_replay_orders(struct mt_source *source, const struct mt_replay_options *options,
                                uint32_t orders, struct mt_replay_summary *summary,
                                struct mt_error *error) MT_MUST_USE;

#endif
