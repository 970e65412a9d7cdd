/* A trace cut into stretches of one part of the work each, from what its
 * events tell, in this order of trust: ranges that the program named, ranges
 * that the framework inserted (Optimizer.step), stacks, the thread (autograd's
 * threads have no Python frames). Events that tell nothing (frees without a
 * stack) belong to the stretch before them.
 *
 *     learn: one reading; what it says decides if a second one is worth it
 *     mt_segments_prepare, then cut: the second reading
 */
#ifndef MT_ANALYZER_SEGMENTS_H
#define MT_ANALYZER_SEGMENTS_H

#include "segments_learn.h"

/* `has_framework`: the events are those of an allocator above the driver; only
 * there who has no frames may be autograd. */
void mt_segments_init(struct mt_segments *segments, struct mt_symbols *symbols, bool has_framework);
void mt_segments_release(struct mt_segments *segments);

/* Second reading, then the end. */
enum mt_status mt_segments_cut(struct mt_segments *segments,
                               const struct mt_event *event) MT_MUST_USE;
enum mt_status mt_segments_finish(struct mt_segments *segments) MT_MUST_USE;

#endif
