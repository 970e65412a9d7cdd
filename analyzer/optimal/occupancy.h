/* Taken addresses by section: a tree over time whose nodes have merged address ranges. Well-packed
 * buffers merge to few ranges, so queries about long times stay cheap with hundreds of thousands of
 * buffers. */
#ifndef MT_ANALYZER_OCCUPANCY_H
#define MT_ANALYZER_OCCUPANCY_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_occupancy_node;

struct mt_occupancy {
    struct mt_occupancy_node *nodes; /* 1 = root, leaves start at `leaves` */
    uint32_t leaves;
};

void mt_occupancy_init(struct mt_occupancy *occupancy, uint32_t sections);
void mt_occupancy_clear(struct mt_occupancy *occupancy); /* frees all ranges; keeps memory */
void mt_occupancy_release(struct mt_occupancy *occupancy);

/* Takes [begin, end) during the sections [first, last). */
void mt_occupancy_take(struct mt_occupancy *occupancy, uint32_t first, uint32_t last,
                       uint64_t begin, uint64_t end);

/* Start of a gap of `bytes` that is free during all of [first, last): the lowest, or (best) the
 * smallest between taken ranges, the lowest among equals. */
uint64_t mt_occupancy_find(const struct mt_occupancy *occupancy, uint32_t first, uint32_t last,
                           uint64_t bytes, bool best);

#endif
