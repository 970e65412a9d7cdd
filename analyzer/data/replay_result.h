/* Outcome of a replay for one device: plain data, filled by replay.h. */
#ifndef MT_ANALYZER_REPLAY_RESULT_H
#define MT_ANALYZER_REPLAY_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "source.h"

/* One device has at most this many simulated instances: devices 0..63. */
#define MT_MAX_DEVICES 64

/* A policy has at most this many pools that the run did not have (pool_routes.h). */
#define MT_MAX_POLICY_POOLS 16

/* Longest text of a policy, its end included. */
#define MT_POLICY_TEXT 640

/* What went to a pool that the run did not have. */
struct mt_pool_share {
    uint64_t requests, requested_bytes; /* over the whole run */
    /* Selected, but they stayed in a private pool of the run. */
    uint64_t private_requests, private_requested_bytes;
};

/* What `planned` did with its plan (step_plan.h); zeroes if there is none. */
struct mt_plan_share {
    uint64_t arena_bytes, bound_bytes;
    uint32_t steps, equal_steps; /* of the trace; the planned one and those like it */
    uint64_t requests;           /* of the trace */
    uint64_t hits, misses;       /* served from the arena; place taken */
};

/* Checkpoints of CUDA graph trees that were put back (pool_restores.h). */
struct mt_restore_share {
    uint64_t restores;
    uint64_t blocks;   /* put where the checkpoint has them */
    uint64_t gaps;     /* allocated and freed at once, to cut what is free */
    uint64_t unplaced; /* blocks that the simulated pool had no such place for: ordinary requests */
    uint64_t gaps_left_out;      /* the simulated pool is cut in another way: not allocated */
    uint64_t segments_unwatched; /* of private pools, too many at a time: restores do not show */
};

struct mt_replay_verify {
    bool wanted;
    uint64_t allocations, addresses_exact;
    uint64_t segment_events, segment_events_exact;
    uint64_t unexpected_segment_events; /* the replay did more than was recorded */
    uint64_t ooms, ooms_exact;
    bool exact;              /* all of them */
    uint64_t events_missing; /* that the recording lacks: what it has may agree, but is not all */
    char first_difference[240]; /* "" = none; names event, wanted and got */
    uint64_t first_difference_event;
    bool first_is_address; /* it is a block, served, at another address */
    /* At the first difference: bytes that the replay gave back to the driver
     * beyond what was recorded (negative: too little). */
    int64_t excess_release_bytes;
};

/* What the rules of the run's allocator do alone, where what was recorded is taken over because
 * they do not reproduce the run. */
struct mt_rule_share {
    bool was_tried;
    uint64_t addresses_exact, segment_events, segment_events_exact;
};

/* The replay is the run: everything agrees, and nothing is missing. */
static inline bool mt_replay_is_the_run(const struct mt_replay_verify *verify)
{
    return verify->exact && !verify->events_missing;
}

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
    enum mt_free_order free_order; /* of PyTorch's allocator; unknown of another */
    bool free_order_found;         /* by comparing: the trace names no version of PyTorch */
    uint32_t pools_inferred;       /* segments whose pool the trace does not name, and
                                      which were found to be in a private one */
    struct mt_pool_share pools[MT_MAX_POLICY_POOLS]; /* in order of the policy's text */
    uint32_t pool_count;
    struct mt_restore_share restores;
    struct mt_plan_share plan;
    struct mt_counters counters; /* final, with peaks */
    struct mt_replay_verify verify;
    bool is_taken_over; /* addresses and segments are those of the recording, not found by rule */
    struct mt_rule_share by_rule;
    uint64_t address_ties; /* choices between equal free blocks that only the
                              address decided, where it is not the run's: a
                              real run may choose otherwise */
    /* Peaks of reserved and allocated memory over the orders of addresses that were tried
     * (replay_orders.h); order_count 0 = none beside this one was asked for. The allocated peak
     * depends on them because a block keeps a remainder that is too small to split off. */
    uint64_t reserved_low_bytes, reserved_high_bytes;
    uint64_t allocated_low_bytes, allocated_high_bytes;
    uint32_t order_count;
    uint64_t failed_requests;      /* OOMs of the policy that were none in the trace */
    uint64_t most_failed_requests; /* of them, over these orders */
    uint64_t ooms_not_asked;       /* recorded OOMs that were skipped: no limit */
    uint64_t orphan_frees;         /* frees of addresses that were not live */
    bool given_up; /* stopped early (most_reserved_bytes): later events are not counted */
};

#endif
