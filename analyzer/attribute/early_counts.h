/* Number of blocks per parameter: itself, its gradient, the optimizer's state. Rules 3 to 6 of
 * initial_roles.h. */
#ifndef MT_ANALYZER_EARLY_COUNTS_H
#define MT_ANALYZER_EARLY_COUNTS_H

#include "early_evidence.h"

/* Blocks per parameter: itself, its gradient, two of Adam's state. */
#define MT_EARLY_MAX_EACH 4

/* Fills each, states and the fields after them from the evidence. O(sizes). */
void mt_early_counts_infer(struct mt_early_evidence *evidence);

/* Returns the number of parameters of a size that have a gradient, allocated in the trace or not.
 * Only if evidence->updates is not 0. */
uint32_t mt_early_pairs(const struct mt_early_evidence *evidence,
                        const struct mt_early_sizes *sizes);

/* Returns the number of blocks of a size that remain after rules 3 and 4, and that do not look like
 * blocks of rules 7 and 8. */
uint32_t mt_early_left_over(const struct mt_early_evidence *evidence,
                            const struct mt_early_sizes *sizes);

/* Returns whether no part of backward has its start in the trace. */
bool mt_early_began_in_last_turn(const struct mt_early_blocks *early);

#endif
