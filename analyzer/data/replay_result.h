/* Outcome of a replay for one device: plain data, filled by replay.h. */
#ifndef MT_ANALYZER_REPLAY_RESULT_H
#define MT_ANALYZER_REPLAY_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "counters.h"
#include "source.h"

/* Each device has one simulated instance, and there are at most this many: devices 0..63. */
#define MT_MAX_DEVICES 64

/* A policy has at most this many pools that the run did not have (foresight.h). */
#define MT_MAX_POLICY_POOLS 16

/* Maximum text of a policy, including its NUL. */
#define MT_POLICY_TEXT 640

/* Requests that went to a pool that the run did not have. */
struct mt_pool_share {
    uint64_t requests, requested_bytes; /* over the whole run */
    /* Selected, but left in a private pool of the run. */
    uint64_t private_requests, private_requested_bytes;
};

/* Outcome of the plan of policy `planned` (step_plan.h); zero if there is none. */
struct mt_plan_share {
    uint64_t arena_bytes, bound_bytes; /* of the plan; lower bound of any plan */
    uint32_t steps, equal_steps;       /* of the trace; the planned one and those equal to it */
    uint64_t requests;                 /* of the trace */
    uint64_t hits, misses;             /* served from the arena; place already in use */
};

/* Restored checkpoints of CUDA graph trees (pool_tracks.h). */
struct mt_restore_share {
    uint64_t restores;
    uint64_t blocks;        /* placed as in the checkpoint */
    uint64_t gaps;          /* allocated and freed immediately, to cut free space */
    uint64_t unplaced;      /* blocks whose place the simulated pool lacks: ordinary requests */
    uint64_t unsearched;    /* blocks whose search took too long: ordinary requests */
    uint64_t gaps_left_out; /* not allocated, since the layout of the simulated pool differs */
    uint64_t segments_unwatched; /* of private pools, too many at a time: restores in them are not
                                    detected */
};

/* Counters that a claim of exactness covers: bits. */
enum mt_covered {
    MT_COVERS_REQUESTED = 1 << 0,
    MT_COVERS_ALLOCATED = 1 << 1,
    MT_COVERS_ACTIVE = 1 << 2,
    MT_COVERS_RESERVED = 1 << 3
};

#define MT_COVERED_COUNTERS 4
#define MT_COVERS_ALL       ((1 << MT_COVERED_COUNTERS) - 1)

/* The name of bit `i`. */
const char *mt_covered_name(unsigned i);

/* Adds "requested, allocated, active and reserved", or fewer of them. */
void mt_report_add_covered(struct mt_buf *out, uint8_t covered);

struct mt_replay_verify {
    bool wanted;
    uint64_t allocations, addresses_exact;
    uint64_t segment_events, segment_events_exact;
    uint64_t unexpected_segment_events; /* the replay did more than was recorded */
    uint64_t ooms, ooms_exact;
    uint64_t frees, frees_exact;           /* completed ones; exact: the block waited for it */
    uint64_t end_levels, end_levels_exact; /* of the device and its segments (verify.h) */
    bool actions_exact;                    /* all of them agree, except end levels */
    bool exact;                            /* all of them agree */
    uint8_t covered;                       /* enum mt_covered; 0 unless exact */
    uint64_t
        events_missing; /* lost by the recorder: the rest may agree, but is not the whole run */
    char first_difference[240]; /* "" = none; names event, wanted and got */
    uint64_t first_difference_event;
    bool first_is_address; /* the difference is the address of a block that was served */
    /* At the first difference: bytes released to the driver beyond the recorded ones (negative: too
     * few). */
    int64_t excess_release_bytes;
};

/* Outcome of a replay by the rules of the run's allocator. Only if these do not reproduce the run,
 * so that the result comes from the recorded actions instead (is_taken_over). */
struct mt_rule_share {
    bool was_tried;
    uint64_t addresses_exact, segment_events, segment_events_exact;
};

/* Whether the replay is the run: everything agrees, and nothing is missing. */
static inline bool mt_replay_matches_recording(const struct mt_replay_verify *verify)
{
    return verify->exact && !verify->events_missing;
}

/* Outcome for one device. */
struct mt_replay_result {
    uint16_t device;
    bool has_events;
    bool policy_exact;        /* the policy's rules are known exactly */
    const char *policy_doubt; /* why not: a clause, NULL if exact */
    bool recorded_addresses;  /* recorded segment bases were used */
    bool starts_in_middle;    /* peaks are those since the start of the trace, not of the run */
    uint64_t start_reserved_bytes; /* when the trace begins; without the cache if that exceeds the
                                      limit */
    uint64_t limit_bytes;          /* 0 = none */
    bool limit_inferred;           /* any limit in [limit_low, limit_high) gives the same replay */
    uint64_t limit_low_bytes, limit_high_bytes;
    /* Any limit in [from, until) gives the same replay; without a limit, except that requests which
     * the run refused are tried under one. */
    uint64_t same_from_bytes, same_until_bytes;
    enum mt_free_order free_order; /* of PyTorch's allocator; unknown for others */
    bool free_order_found;   /* inferred by comparison: the trace names no version of PyTorch */
    uint32_t pools_inferred; /* segments whose pool the trace does not name, and that were inferred
                                to be private */
    struct mt_pool_share pools[MT_MAX_POLICY_POOLS]; /* in order of the policy's text */
    uint32_t pool_count;
    struct mt_restore_share restores;
    struct mt_plan_share plan;
    struct mt_counters counters; /* final, with peaks */
    struct mt_replay_verify verify;
    bool is_taken_over; /* addresses and segments come from the recording, not from the rules */
    struct mt_rule_share by_rule;
    uint64_t address_ties; /* choices between equal free blocks that an address decided, where that
                              address is not the run's: a real run may choose differently */
    bool any_order;        /* any order of bases gives this replay; false if a limit was inferred */
    bool ties_recorded;    /* otherwise: whether addresses of the run decided such choices */
    /* Peaks of reserved and allocated memory over the orders of addresses that were tried
     * (replay.h); order_count 0 = no others were requested. The allocated peak depends on
     * them because a block keeps a remainder that is too small to split off. */
    uint64_t reserved_low_bytes, reserved_high_bytes;
    uint64_t allocated_low_bytes, allocated_high_bytes;
    uint32_t order_count;
    uint64_t failed_requests;      /* OOMs of the policy that are not in the trace */
    uint64_t most_failed_requests; /* maximum over these orders */
    uint64_t ooms_not_asked;       /* recorded OOMs that were skipped because there is no limit */
    uint64_t orphan_frees;         /* frees of addresses that were not live */
    bool given_up; /* stopped early (most_reserved_bytes): later events are not counted */
};

#endif
