/* Infers the allocator's memory limit from a trace. A snapshot does not contain it, but every
 * granted segment and every refused request bounds it. All limits within the bounds give the same
 * replay. */
#ifndef MT_ANALYZER_LIMIT_H
#define MT_ANALYZER_LIMIT_H

#include "pytorch_config.h"
#include "replay_result.h"
#include "source.h"

struct mt_limit_evidence {
    uint64_t low_bytes; /* at least this much was granted */
    uint64_t
        high_bytes; /* this much was refused, so the limit is below; UINT64_MAX = never refused */
    bool refused;   /* the program got an out-of-memory error */
    bool garbage_collected; /* segments were freed without a refusal; the amount depends on the
                               limit (limit_infer.h) */
    /* PRIVATE: state of the scan */
    uint64_t reserved_bytes, at_group_start;
    uint64_t granted_bytes; /* largest single grant in the group */
    bool in_group, freed, explicit_flush;
};

/* Returns true if an event can change the evidence. Most events cannot and need not be passed on,
 * such as requests that were served at once and frees outside of a group. */
static inline bool mt_limit_tells(const struct mt_limit_evidence *evidence,
                                  const struct mt_event *event)
{
    return evidence->in_group || evidence->explicit_flush ||
           event->kind > MT_EVENT_FREE_COMPLETED || (event->flags & MT_EVENT_INITIAL);
}

/* Takes the events of one device, in order. O(1). */
void mt_limit_observe(struct mt_limit_evidence *evidence, const struct mt_pytorch_config *config,
                      const struct mt_event *event);

/* Returns the limit to replay with: a whole number of MiB within the bounds if there is one.
 * Returns 0 if nothing was ever refused or the bounds contradict each other. */
uint64_t mt_limit_choose(const struct mt_limit_evidence *evidence);

#endif
