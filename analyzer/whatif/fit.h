/* Fit: the smallest limit of a device under which a policy serves a trace.
 *
 * The limit is the allocator's own (PyTorch: set_per_process_memory_fraction). It is searched by
 * replays under limits in whole MiB. In theory a smaller limit can fit where a larger one fails (a
 * cache that is flushed at another time leaves other holes), so limits around the answer are also
 * tried. The addresses of equal free blocks, which the driver chooses, decide which one is used:
 * the answer is a range over several orders of addresses (device_model.h). */
#ifndef MT_ANALYZER_FIT_H
#define MT_ANALYZER_FIT_H

#include "fit_trials.h"

struct mt_fit_options {
    const char *policy;   /* as in struct mt_replay_options */
    uint64_t limit_bytes; /* a limit to check; 0 = none */
    uint32_t orders;      /* of addresses (replay.h), 1 to MT_BASE_ORDERS; 0 = 1. Further orders
                             are tried only if addresses decided a choice: in the search, or in one
                             replay that ignores the run's own */
    /* The run as it was, if the caller has replayed it; NULL: one more replay. Borrowed. */
    const struct mt_replay_summary *run;
    /* A replay with `policy`, without a limit or inference; NULL: one more replay. Borrowed. */
    const struct mt_replay_summary *unlimited;
    bool limits_only; /* first_failure and limit_failure stay unknown: a reading less for each */
};

struct mt_fit_result {
    uint16_t device;
    bool policy_exact;
    const char *policy_doubt; /* see replay_result.h */
    bool starts_in_middle;    /* the initial state is restored as recorded */
    bool fits;                /* some limit serves the trace */
    uint64_t fit_bytes;       /* smallest limit at and above which every tried one fits */
    uint64_t fails_at_bytes;  /* the adjacent smaller one, which fails; 0 = none */
    struct mt_fit_failure first_failure; /* at that limit */
    uint64_t fit_reserved_bytes;         /* peak at fit_bytes; PyTorch's expandable segments may map
                                            a little more than the limit */
    uint64_t initial_bytes; /* reserved under the answer when the trace begins: smaller limits do
                               not count as serving it */
    uint64_t limits_tried;
    uint64_t smaller_fit_bytes; /* a limit below fails_at_bytes that also fits; 0 = none */
    uint64_t larger_fail_bytes; /* a limit above fit_bytes that fails; 0 = none */
    uint64_t reserved_peak_bytes, requested_peak_bytes; /* without a limit */
    uint64_t allocated_peak_bytes, requests;
    uint64_t gaps_left_out; /* of restored pools: not in `requests` (mt_restore_share) */
    uint64_t address_ties;  /* see replay_result.h; 0 if they are the run's */

    /* The same answer for each order of addresses that was tried (replay.h), 0 = none. The
     * first is fit_bytes. */
    struct mt_fit_order {
        const char *name;
        struct mt_base_order order;
        uint64_t fit_bytes;
    } orders[MT_BASE_ORDERS];
    uint32_t order_count;
    uint64_t low_bytes, high_bytes; /* over these orders; high_bytes is the safe value */
    uint64_t high_fails_at_bytes;   /* in the order of high_bytes: the adjacent smaller limit, which
                                       fails */

    /* The run itself reached its memory limit: with another limit it may request other memory. */
    uint64_t recorded_ooms, recorded_retries;
    uint64_t died_at;    /* number of the event that ended the run, a request that has to be served;
                            MT_FIT_NOT_DIED */
    uint64_t died_bytes; /* of that request */
    uint64_t impossible_bytes; /* a refused request that no device can serve: it need not fit */

    uint64_t lost_segments; /* in private pools that the trace does not name: here they count as the
                               default pool's */

    struct mt_pool_share pools[MT_MAX_POLICY_POOLS]; /* see replay_result.h */

    bool limit_fits;                     /* limit_bytes suffices in every order that was tried */
    uint32_t limit_fail_count;           /* orders in which it does not */
    struct mt_fit_failure limit_failure; /* in the first of them */
};

struct mt_fit_summary {
    char policy[MT_POLICY_TEXT]; /* canonical spelling */
    uint16_t device_count;
    struct mt_fit_result devices[MT_MAX_DEVICES];
    struct mt_arena arena; /* texts of the failures */
};

/* Reserved bytes above the smallest limit. */
static inline uint64_t mt_fit_above_limit_bytes(const struct mt_fit_result *result)
{
    return result->fit_reserved_bytes > result->fit_bytes
               ? result->fit_reserved_bytes - result->fit_bytes
               : 0;
}

/* Memory of a card for the allocator, without the context and libraries. */
static inline uint64_t mt_fit_need_bytes(const struct mt_fit_result *result)
{
    return result->high_bytes + mt_fit_above_limit_bytes(result);
}

static inline bool mt_fit_depends_on_memory(const struct mt_fit_result *result)
{
    return result->recorded_ooms || result->recorded_retries;
}

/* How many orders of addresses commands other than `fit` try for a trace with this many events, so
 * that replays take about a second; 0: none. */
static inline uint32_t mt_fit_affordable_orders(uint64_t events)
{
    return events <= 200000 ? MT_BASE_ORDERS : events <= 500000;
}

/* Reads the source about five times, from the start, for all devices and orders of addresses
 * together; up to MT_FIT_TOGETHER replays share a reading (fit_trials.h), so their memory adds up.
 * `summary` is large: keep it on the heap; release it even after an error. MT_ERR_USAGE for a
 * policy that simulates nothing. */
enum mt_status mt_fit_run(struct mt_source *source, const struct mt_fit_options *options,
                          struct mt_fit_summary *summary, struct mt_error *error) MT_MUST_USE;
void mt_fit_release(struct mt_fit_summary *summary);

#endif
