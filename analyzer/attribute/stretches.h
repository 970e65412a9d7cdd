/* A trace cut into stretches of one part of the work each, from evidence in this order of trust:
 * ranges that the program named, ranges that the framework inserted (Optimizer.step), stacks, the
 * thread (autograd's threads have no Python frames). Events without evidence (frees without a
 * stack) belong to the previous stretch.
 *
 *     learn: one pass, which also decides whether a second one is needed
 *     mt_stretches_prepare, then cut: the second pass */
#ifndef MT_ANALYZER_STRETCHES_H
#define MT_ANALYZER_STRETCHES_H

#include "stretches_learn.h"

/* Initializes *stretches. `has_framework`: the events are those of an allocator above the driver.
 * Only in that case may a missing stack mean autograd. */
void mt_stretches_init(struct mt_stretches *stretches, struct mt_symbols *symbols,
                       bool has_framework);
void mt_stretches_release(struct mt_stretches *stretches);

/* Call mt_stretches_cut for each event of the second pass, then mt_stretches_finish. */
void mt_stretches_cut(struct mt_stretches *stretches, const struct mt_event *event);
void mt_stretches_finish(struct mt_stretches *stretches);

#endif
