/* The first request that a replay could not serve: the request, its site, and the live memory at
 * that time. */
#ifndef MT_ANALYZER_FIT_FAILURE_H
#define MT_ANALYZER_FIT_FAILURE_H

#include "arena.h"
#include "replay.h"

#define MT_FIT_SITES 5

struct mt_fit_site {
    const char *label;
    uint64_t block_bytes, blocks;
};

struct mt_fit_failure {
    bool known;
    uint64_t event, size_bytes; /* as requested */
    const char *site;
    const char *phase;                      /* path, NULL = none */
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

/* Whether the policy had no memory for this event of a replay. Blocks of the initial state do not
 * count. */
static inline bool mt_fit_is_failure(const struct mt_event *event,
                                     const struct mt_replay_view *view, uint64_t died_at)
{
    bool wanted = (event->kind == MT_EVENT_ALLOC && !(event->flags & MT_EVENT_INITIAL)) ||
                  (event->kind == MT_EVENT_OOM && event->seq >= died_at);

    return wanted && !view->block_bytes && !view->is_left_out;
}

#endif
