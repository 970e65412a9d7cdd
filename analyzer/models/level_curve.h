/* A level over one axis (time or events), reduced to bins of equal width
 * without losing a peak. */
#ifndef MT_ANALYZER_LEVEL_CURVE_H
#define MT_ANALYZER_LEVEL_CURVE_H

#include "arena.h"
#include "counters.h"
#include "flamechart_cell.h"

struct mt_level_curve {
    struct mt_curve_bin *bins;
    uint32_t count, bin_count;
    uint64_t begin, width;  /* of the window, width > 0 */
    uint64_t next_position; /* start of the bin after the current one */
};

/* Bins of [begin, end], at most `bins` + 1 of them, in the arena. */
void mt_level_curve_init(struct mt_level_curve *curve, struct mt_arena *arena, uint64_t begin,
                         uint64_t end, uint32_t bins);

/* The level after an event at `position`, which never decreases. O(1). */
void mt_level_curve_add(struct mt_level_curve *curve, uint64_t position, uint64_t t_ns,
                        uint64_t event, uint64_t level);

#endif
