/* Replays under limits, many in one reading, each at most once. Most allocators only compare sums
 * with their limit, so a replay also answers for every limit with which all comparisons have the
 * same results (mt_replay_result.same_from_bytes): most limits of a search need no replay. */
#ifndef MT_ANALYZER_FIT_TRIALS_H
#define MT_ANALYZER_FIT_TRIALS_H

#include "arena.h"
#include "replay.h"

enum { MT_FIT_TOGETHER = 32 }; /* replays in one reading */

/* What is replayed: an allocator on one device, with addresses in some order. */
struct mt_fit_subject {
    uint16_t device;
    bool blind;
    struct mt_base_order order;
};

struct mt_fit_trial {
    struct mt_fit_subject subject;
    uint64_t from_bytes, until_bytes; /* the limits in [from, until) have this outcome */
    bool has_events;                  /* of the device */
    bool failed;                      /* a request of the run */
    bool recorded_addresses, ties_recorded;
    bool any_order;    /* other orders of addresses have this outcome */
    uint64_t unplaced; /* blocks of the initial state that failed */
    uint64_t address_ties, start_reserved_bytes, reserved_peak_bytes;
};

struct mt_fit_trials {
    struct mt_source *source;
    struct mt_replay_options replay;  /* without limit and order */
    uint64_t died_at[MT_MAX_DEVICES]; /* see fit_is_failure */
    struct mt_fit_trial *known;
    size_t known_count, known_capacity;
    struct mt_fit_trial wanted[MT_FIT_TOGETHER]; /* in the next reading */
    size_t wanted_count;
    uint64_t readings;
};

void mt_fit_trials_release(struct mt_fit_trials *trials);

/* Returns the outcome under a limit, NULL if it is unknown. Valid until the next reading. */
const struct mt_fit_trial *mt_fit_trials_find(const struct mt_fit_trials *trials,
                                              const struct mt_fit_subject *subject,
                                              uint64_t limit_bytes);

/* Keeps the outcome of a replay with trials->replay for the limits that would have the same. It
 * placed all requests of the run. unplaced: blocks of the initial state that failed. */
void mt_fit_trials_keep(struct mt_fit_trials *trials, const struct mt_replay_result *result,
                        uint64_t unplaced);

/* Requests the outcome under a limit from the next reading. Returns false if that is full. */
bool mt_fit_trials_want(struct mt_fit_trials *trials, const struct mt_fit_subject *subject,
                        uint64_t limit_bytes);

/* Replays under all wanted limits, in one reading. */
enum mt_status mt_fit_trials_read(struct mt_fit_trials *trials, struct mt_error *error) MT_MUST_USE;

/* The smallest limit that is known to serve every request, UINT64_MAX = none. */
uint64_t mt_fit_trials_smallest(const struct mt_fit_trials *trials,
                                const struct mt_fit_subject *subject);

/* The first request that a replay could not serve: the request, its site, and the live memory at
 * that time. */

#define MT_FIT_SITES 5

struct mt_fit_site {
    const char *label;
    uint64_t block_bytes, blocks;
};

struct mt_fit_failure {
    bool known;
    uint64_t event, size_bytes; /* as requested */
    const char *site;
    const char *phase, *where;              /* path, and its words; NULL = none */
    struct mt_bytes alive;                  /* right after emptying the cache did not suffice */
    struct mt_fit_site sites[MT_FIT_SITES]; /* that hold most of it, largest first */
    uint32_t site_count;
};

/* For a run that ended out of memory: after this event, requests that were refused in the run must
 * also be served. */
#define MT_FIT_NOT_DIED UINT64_MAX

/* Replays once, up to the failure. Texts are in the arena; unknown if every request was served.
 * `trial` is room for the outcome of the replay. */
enum mt_status mt_fit_failure_find(struct mt_source *source,
                                   const struct mt_replay_options *options, uint16_t device,
                                   uint64_t died_at, struct mt_replay_summary *trial,
                                   struct mt_arena *arena, struct mt_fit_failure *failure,
                                   struct mt_error *error) MT_MUST_USE;

#endif
