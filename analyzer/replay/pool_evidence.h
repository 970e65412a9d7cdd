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
#ifndef MT_ANALYZER_POOL_EVIDENCE_H
#define MT_ANALYZER_POOL_EVIDENCE_H

#include "pool_tracks.h"
#include "source.h"

/* Reads the source from its current position to its end. */
enum mt_status mt_pool_evidence_collect(struct mt_source *source, struct mt_pool_evidence *evidence,
                                        struct mt_error *error) MT_MUST_USE;

#endif
