/* Deducing the allocator's memory limit from a trace: a snapshot does not hold
 * it, but every segment that was granted and every request that was refused
 * bounds it. Any limit inside the bounds replays the trace in the same way. */
#ifndef MT_ANALYZER_LIMIT_H
#define MT_ANALYZER_LIMIT_H

#include "pytorch_config.h"
#include "replay_result.h"
#include "source.h"

struct mt_limit_evidence {
    uint64_t low_bytes;  /* at least this much was granted */
    uint64_t high_bytes; /* so much was refused: the limit is below; UINT64_MAX = never refused */
    bool refused;        /* the program was told so */
    bool garbage_collected; /* segments went back without a refusal: the limit
                               shows in what was collected, see replay.c */
    /* PRIVATE: state of the scan */
    uint64_t reserved_bytes, at_group_start;
    uint64_t granted_bytes; /* largest single grant in the group */
    bool in_group, freed, explicit_flush;
};

/* Most events, requests that were served at once and frees outside of a group,
 * change nothing: those need not be observed. */
static inline bool mt_limit_tells(const struct mt_limit_evidence *evidence,
                                  const struct mt_event *event)
{
    return evidence->in_group || evidence->explicit_flush ||
           event->kind > MT_EVENT_FREE_COMPLETED || (event->flags & MT_EVENT_INITIAL);
}

/* One event after the other, those of one device. O(1). */
void mt_limit_observe(struct mt_limit_evidence *evidence, const struct mt_pytorch_config *config,
                      const struct mt_event *event);

/* The limit to replay with: a whole number of MiB inside the bounds if there
 * is one. 0 if nothing was ever refused or the bounds contradict each other. */
uint64_t mt_limit_choose(const struct mt_limit_evidence *evidence);

#endif
