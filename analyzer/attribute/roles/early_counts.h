/* Infers the number of blocks per parameter: the parameter, its gradient, the optimizer's state.
 * These are rules 3 to 6 of initial_roles.h. */
#ifndef MT_ANALYZER_EARLY_COUNTS_H
#define MT_ANALYZER_EARLY_COUNTS_H

#include "early_evidence.h"

/* Maximum number of blocks per parameter: the parameter, its gradient, and two blocks of Adam's
 * state. */
#define MT_EARLY_MAX_EACH 4

/* Sets the members of *evidence that rules 3 to 6 determine (`each`, `states` and those after
 * them). O(sizes). */
void mt_early_counts_infer(struct mt_early_evidence *evidence);

/* Returns the number of parameters of a size that have a gradient, including gradients that were
 * not allocated in the trace. Call it only if evidence->updates is not 0. */
uint32_t mt_early_pairs(const struct mt_early_evidence *evidence,
                        const struct mt_early_sizes *sizes);

/* Returns the number of blocks of a size that remain after rules 3 and 4, and that do not look like
 * blocks of rules 7 and 8. */
uint32_t mt_early_left_over(const struct mt_early_evidence *evidence,
                            const struct mt_early_sizes *sizes);

/* Returns true if no part of backward starts within the trace. */
bool mt_early_began_in_last_turn(const struct mt_early_blocks *early);

#endif
