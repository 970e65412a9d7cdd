/* What a trace tells of the pools of its segments where it does not name them.
 * One walk with every block where it was recorded (policy `recorded`):
 *
 * - Best fit. A request landed in segment S. A free block of the same stream
 *   and size class that the allocator would have preferred, or any fitting one
 *   if S was made for this request, must have been in another pool: S and the
 *   segment of that block are unequal.
 * - Reservations. A pool has one expandable reservation per stream and size
 *   class: two that exist at the same time are unequal.
 * - Flushes. A pool that is flushed gives back all that is wholly free. So at
 *   an empty_cache() what could have gone but stayed was in another pool than
 *   everything that went.
 * - A segment that is there at the end of the trace: the snapshot names its
 *   pool, and no name means the default pool.
 *
 * "Segment" means one instance: from its segment_alloc to its segment_free; of
 * expandable segments the whole reservation, from the first map until nothing
 * is mapped. */
#ifndef MT_ANALYZER_POOL_EVIDENCE_H
#define MT_ANALYZER_POOL_EVIDENCE_H

#include <stdbool.h>

#include "pool_pairs.h"
#include "source.h"

#define MT_NO_INSTANCE UINT32_MAX

struct mt_pool_instance {
    uint64_t base, end; /* of an expandable one: as far as it was ever mapped */
    uint64_t mapped_bytes;
    uint64_t first_release_seq; /* UINT64_MAX = nothing of it was given back */
    uint64_t last_alloc_seq;    /* 0 = nothing was allocated from it */
    uint32_t stream;
    uint32_t group; /* number of the flush in which it went last, 0 = it stayed */
    uint16_t device;
    uint16_t pool; /* the trace's, 0 = default or not known */
    bool is_small, expandable;
    bool is_known;     /* its pool is known for certain */
    bool has_nameless; /* events about it that name no pool */
};

struct mt_pool_evidence {
    struct mt_pool_instance *instances;
    uint32_t count;
    size_t capacity;
    struct mt_pool_pairs unequal; /* a < b */
    struct mt_pool_pairs kept;    /* a could have gone and stayed when b went first */
    struct mt_pool_pairs turns;   /* a request of b's came right after one of a's */
    uint32_t *instance_of;        /* by event number: what it lies in */
    size_t event_count, event_capacity;
    bool gave_up; /* too large for this kind of search */
};

/* Reads the source from where it is to its end. */
enum mt_status mt_pool_evidence_collect(struct mt_source *source, struct mt_pool_evidence *evidence,
                                        struct mt_error *error) MT_MUST_USE;
void mt_pool_evidence_release(struct mt_pool_evidence *evidence);

#endif
