/* What the walk of pool_evidence.h found out about the segments of a trace and their pools. */
#ifndef MT_ANALYZER_POOL_FACTS_H
#define MT_ANALYZER_POOL_FACTS_H

#include <stdbool.h>

#include "map.h"

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

struct mt_pool_pair {
    uint32_t a, b;
};

/* A set of pairs of small numbers, in order of arrival. Zeroed memory is an empty set. */
struct mt_pool_pairs {
    struct mt_pool_pair *items;
    size_t count, capacity;
    struct mt_map seen;
};

/* (a, b) and (b, a) are different pairs. */
enum mt_status mt_pool_pairs_add(struct mt_pool_pairs *pairs, uint32_t a, uint32_t b) MT_MUST_USE;
void mt_pool_pairs_release(struct mt_pool_pairs *pairs);

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

void mt_pool_evidence_release(struct mt_pool_evidence *evidence);

#endif
