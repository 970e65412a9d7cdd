/* Number of blocks per parameter: itself, its gradient, the optimizer's state. Rules 3 to 6 of
 * initial_roles.h. */
#ifndef MT_ANALYZER_EARLY_COUNTS_H
#define MT_ANALYZER_EARLY_COUNTS_H

#include "early_evidence.h"

/* Blocks per parameter: itself, its gradient, two of Adam's state. */
#define MT_EARLY_MAX_EACH 4

/* Fills each, states and the fields after them from the evidence. O(sizes). */
void mt_early_counts_infer(struct mt_early_evidence *evidence);

/* If `updates` is known: parameters of that size that have a gradient of it, allocated or not. */
uint32_t mt_early_pairs(const struct mt_early_evidence *evidence,
                        const struct mt_early_sizes *sizes);

/* Blocks of a size that neither rules 3 and 4 nor, apparently, rules 7 and 8 explain. */
uint32_t mt_early_left_over(const struct mt_early_evidence *evidence,
                            const struct mt_early_sizes *sizes);

/* The start of backward is not in the trace. */
bool mt_early_began_in_last_turn(const struct mt_early_blocks *early);

#endif
