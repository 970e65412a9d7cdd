/* Compares a replay, after its last event, with what the allocator itself counted at the end of the
 * history (struct mt_segment_end): each level of the device, and of each segment. */
#ifndef MT_ANALYZER_END_LEVELS_H
#define MT_ANALYZER_END_LEVELS_H

#include "lane.h"
#include "source.h"

/* Adds to lane->result->verify. Does nothing if the recording has no such levels. Costs a search
 * for each live block. */
void mt_end_levels_compare(struct mt_lane *lane, const struct mt_source *source);

#endif
