/* What the two halves of segments.h share: names of ranges, and threads. */
#ifndef MT_ANALYZER_SEGMENTS_NAMES_H
#define MT_ANALYZER_SEGMENTS_NAMES_H

#include "segments.h"

/* Ranges open at once that are told apart. */
#define MT_SEGMENTS_RANGES 32

/* Facts of a name in one word: its kind, and */
#define MT_NAME_KIND     0x0Fu
#define MT_NAME_STEP     0x10u
#define MT_NAME_PLUMBING 0x20u

/* Index of a name in `names`, looked at once. */
enum mt_status mt_segments_name(struct mt_segments *segments, uint32_t name,
                                uint32_t *id) MT_MUST_USE;

/* NULL without memory. */
struct mt_segment_thread *mt_segments_thread(struct mt_segments *segments, uint16_t id);

#endif
