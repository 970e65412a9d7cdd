/* Results of the pass of pool_evidence.h: the segments of a trace and their pools. */
#ifndef MT_ANALYZER_POOL_FACTS_H
#define MT_ANALYZER_POOL_FACTS_H

#include <stdbool.h>

#include "map.h"

#define MT_NO_INSTANCE UINT32_MAX

struct mt_pool_instance {
    uint64_t base, end; /* for an expandable segment: all ranges that were mapped at some time */
    uint64_t mapped_bytes;
    uint64_t first_release_seq; /* UINT64_MAX = no part of the segment was released */
    uint64_t last_alloc_seq;    /* 0 = nothing was allocated from it */
    uint32_t stream;
    uint32_t group; /* number of the flush that last released it, 0 = it stayed */
    uint16_t device;
    uint16_t pool; /* from the trace, 0 = default or unknown */
    bool is_small, expandable;
    bool is_known;     /* its pool is certain */
    bool has_nameless; /* it has events without a pool */
};

struct mt_pool_pair {
    uint32_t a, b;
};

/* A set of pairs of small numbers, in the order in which they were added. Zeroed memory is an empty
 * set. */
struct mt_pool_pairs {
    struct mt_pool_pair *items;
    size_t count, capacity;
    struct mt_map seen;
};

/* (a, b) and (b, a) are different pairs. */
void mt_pool_pairs_add(struct mt_pool_pairs *pairs, uint32_t a, uint32_t b);
void mt_pool_pairs_release(struct mt_pool_pairs *pairs);

struct mt_pool_evidence {
    struct mt_pool_instance *instances;
    uint32_t count;
    size_t capacity;
    struct mt_pool_pairs unequal; /* a < b */
    struct mt_pool_pairs
        kept; /* a could have been released, but stayed when b was first released */
    struct mt_pool_pairs turns; /* a request from b directly followed one from a */
    uint32_t *instance_of;      /* by event number: the instance that the event concerns */
    size_t event_count, event_capacity;
    bool gave_up; /* the trace is too large for this search */
};

void mt_pool_evidence_release(struct mt_pool_evidence *evidence);

#endif
