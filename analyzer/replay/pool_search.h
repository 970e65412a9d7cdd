/* Searches for lost pools (lost_pools.h): replays a guess from the evidence, and rotates the colors
 * of parts where the replay still differs. */
#ifndef MT_ANALYZER_POOL_SEARCH_H
#define MT_ANALYZER_POOL_SEARCH_H

#include "lost_pools.h"
#include "pool_tracks.h"
#include "source.h"

/* How far a replay agrees with the trace. */
struct mt_pool_reach {
    uint64_t event; /* the first event that differs, UINT64_MAX = none */
    uint64_t exact;
};

static inline bool mt_pool_reach_is_further(struct mt_pool_reach a, struct mt_pool_reach b)
{
    return a.event > b.event || (a.event == b.event && a.exact > b.exact);
}

/* A replay of the whole trace with these pools. */
struct mt_pool_trial {
    void *context;
    enum mt_status (*run)(void *context, const struct mt_lost_pools *pools,
                          struct mt_pool_reach *reach, struct mt_error *error);
};

/* Reads the source from its start. *pools is the best result, to be released before *evidence;
 * best->event is 0 if there was nothing to try. */
enum mt_status mt_pool_search(struct mt_source *source, const struct mt_pool_trial *trial,
                              struct mt_pool_evidence *evidence, struct mt_lost_pools *pools,
                              struct mt_pool_reach *best, struct mt_error *error) MT_MUST_USE;

/* Evidence about the pools of segments, if the trace does not name them. It is collected in one
 * pass with every block at its recorded address (policy `recorded`):
 *
 * - Best fit. A request was served from segment S, although another free block of the same stream
 *   and size class fitted and the allocator would have preferred it, or although S had to be
 *   allocated for the request. That block must have been in another pool: S and its segment are
 *   unequal.
 * - Reservations. A pool has one expandable reservation per stream and size
 *   class: two that exist at the same time are unequal.
 * - Flushes. A flushed pool releases all segments that are wholly free. So a segment that
 *   empty_cache() could have released, but did not, was in another pool than all segments that it
 *   released.
 * - Segments at the end of the trace. The snapshot names the pool of each; no name means the
 *   default pool.
 *
 * "Segment" means one instance, from its segment_alloc to its segment_free. For expandable segments
 * it means the whole reservation, from the first map until nothing is mapped. */

/* Reads the source from its current position to its end. */
enum mt_status mt_pool_evidence_collect(struct mt_source *source, struct mt_pool_evidence *evidence,
                                        struct mt_error *error) MT_MUST_USE;

#endif
