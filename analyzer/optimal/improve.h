/* Improves an order: place, move items without room below the target forward, place again. */
#ifndef MT_ANALYZER_IMPROVE_H
#define MT_ANALYZER_IMPROVE_H

#include "placement.h"

struct mt_improver {
    const struct mt_instance *instance; /* borrowed */
    struct mt_occupancy occupancy;
    uint32_t *order, *best_order;
    uint64_t *trial, *addresses; /* addresses: the best plan so far */
    uint64_t height;             /* of the best plan; UINT64_MAX = none yet */
    enum mt_fit fit;
    uint64_t random;
    uint32_t since_progress;
    uint64_t placements; /* work done so far */
};

void mt_improver_init(struct mt_improver *improver, const struct mt_instance *instance);
void mt_improver_release(struct mt_improver *improver);

/* Tries the usual orders, first fit and best fit, until one reaches `goal` or the deadline passes;
 * always finishes the first. */
void mt_improver_construct(struct mt_improver *improver, uint64_t goal, uint64_t deadline_ns);

/* `steps` attempts at a plan of at most `target` (below the height). */
void mt_improver_run(struct mt_improver *improver, uint64_t target, uint32_t steps,
                     uint64_t deadline_ns);

/* The next number of the improver's own sequence, which is always the same. */
uint64_t mt_improver_random(struct mt_improver *improver);

#endif
