/* Replay: feeds the events of a trace, device by device, to a simulated
 * allocator (policies/policy.h), compares what it does with what was recorded,
 * and tells an observer the state after every event. */
#ifndef MT_ANALYZER_REPLAY_H
#define MT_ANALYZER_REPLAY_H

#include "counters.h"
#include "foresight.h"
#include "source.h"

/* One device has at most this many simulated instances: devices 0..63. */
#define MT_MAX_DEVICES 64

/* One policy as a user spells it: "pytorch", "recorded",
 * "pytorch:expandable_segments:True,max_split_size_mb:64" (or with '='). A bare
 * "pytorch" means the options that the trace recorded. Behind the options of
 * "pytorch" may come pools that the run did not have (pool_routes.h). */
struct mt_replay_options {
    const char *policy;     /* NULL: "pytorch", or "recorded" if the trace tells of no
                               allocator above the driver */
    uint64_t limit_bytes;   /* 0 = what the trace recorded or implies, if the policy
                               has the recorded options; else unlimited */
    bool blind;             /* do not use recorded segment addresses */
    bool verify;            /* compare with what was recorded */
    bool no_inferred_limit; /* do not deduce the limit from OOMs and flushes */
    bool no_inferred_pools; /* do not look for lost pools (lost_pools.h) */
    /* For `policy`, made before: for those who replay often. NULL: made here, in a
     * reading more. */
    const struct mt_foresight *foresight;
    /* MT_MAX_DEVICES of them, by device: one that reserves more, or fails a request that
     * was served, is not simulated any further (given_up). NULL: all are, to the end. */
    const uint64_t *most_reserved_bytes;
};

/* What went to a pool that the run did not have. */
struct mt_pool_share {
    uint64_t requests, requested_bytes; /* over the whole run */
    /* Meant, too, but in a private pool of the run, where they stayed. */
    uint64_t private_requests, private_requested_bytes;
};

/* What `planned` did with its plan (step_plan.h); zeroes if there is none. */
struct mt_plan_share {
    uint64_t arena_bytes, bound_bytes;
    uint32_t steps, equal_steps; /* of the trace; the planned one and those like it */
    uint64_t requests;           /* of the trace */
    uint64_t hits, misses;       /* served from the arena; place taken */
};

struct mt_replay_verify {
    bool wanted;
    uint64_t allocations, addresses_exact;
    uint64_t segment_events, segment_events_exact;
    uint64_t unexpected_segment_events; /* the replay did more than was recorded */
    uint64_t ooms, ooms_exact;
    bool exact;                 /* all of them */
    char first_difference[240]; /* "" = none; names event, wanted and got */
    uint64_t first_difference_event;
    /* At the first difference: bytes that the replay gave back to the driver
     * beyond what was recorded (negative: too little). */
    int64_t excess_release_bytes;
};

/* Outcome for one device. */
struct mt_replay_result {
    uint16_t device;
    bool has_events;
    bool policy_exact;        /* the policy's rules are known exactly */
    const char *policy_doubt; /* why they are not: a clause, NULL if exact */
    bool recorded_addresses;  /* recorded segment bases were used */
    bool starts_in_middle;    /* peaks are those since the start of the trace */
    uint64_t limit_bytes;     /* 0 = none */
    bool limit_inferred;      /* see limit_low/high: any limit in [low, high)
                                 gives the same replay */
    uint64_t limit_low_bytes, limit_high_bytes;
    uint32_t pools_inferred;                  /* segments whose pool the trace does not name, and
                                                 which were found to be in a private one */
    struct mt_pool_share pools[MT_POOLS_MAX]; /* in order of the policy's text */
    uint32_t pool_count;
    struct mt_plan_share plan;
    struct mt_counters counters; /* final, with peaks */
    struct mt_replay_verify verify;
    uint64_t address_ties;    /* choices between equal free blocks that only the
                                 address decided, where it is not the run's: a
                                 real run may choose otherwise */
    uint64_t failed_requests; /* OOMs of the policy that were none in the trace */
    uint64_t ooms_not_asked;  /* recorded OOMs that were skipped: no limit */
    uint64_t orphan_frees;    /* frees of addresses that were not live */
    bool given_up;            /* nothing here tells of what came later: see most_reserved_bytes */
};

/* State after one event, as the observer sees it. */
struct mt_replay_view {
    const struct mt_counters *counters; /* of the event's device */
    /* ALLOC: the block that the policy handed out (0 bytes if it failed).
     * FREE_*: the block that is concerned. */
    uint64_t block_addr, block_bytes;
    /* ALLOC, FREE_*: number of the allocation, 0, 1, 2, ... in order of ALLOC
     * events of the whole trace (all devices), MT_NO_ALLOCATION if unknown. */
    uint64_t allocation;
};
#define MT_NO_ALLOCATION UINT64_MAX

/* Called for every event of the trace in order, phases and marks included; what
 * device is not simulated any further has no view.
 * MT_END stops the replay early, and in order: the summary tells of what was
 * replayed. */
struct mt_replay_observer {
    void *context;
    enum mt_status (*event)(void *context, const struct mt_event *event,
                            const struct mt_replay_view *view);
    /* The replay begins anew: forget what you saw. May be NULL: then the first
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

#endif
