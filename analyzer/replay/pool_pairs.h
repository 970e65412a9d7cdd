/* A set of pairs of small numbers, in order of arrival. */
#ifndef MT_ANALYZER_POOL_PAIRS_H
#define MT_ANALYZER_POOL_PAIRS_H

#include "map.h"

struct mt_pool_pair {
    uint32_t a, b;
};

/* Zeroed memory is an empty set. */
struct mt_pool_pairs {
    struct mt_pool_pair *items;
    size_t count, capacity;
    struct mt_map seen;
};

/* (a, b) and (b, a) are different pairs. */
enum mt_status mt_pool_pairs_add(struct mt_pool_pairs *pairs, uint32_t a, uint32_t b) MT_MUST_USE;
void mt_pool_pairs_release(struct mt_pool_pairs *pairs);

#endif
