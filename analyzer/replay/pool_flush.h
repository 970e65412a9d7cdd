/* Evidence from flushes: the segments that were released, those that stayed, and the order. */
#ifndef MT_ANALYZER_POOL_FLUSH_H
#define MT_ANALYZER_POOL_FLUSH_H

#include "pool_walk.h"

/* Notes the releasable segments at the start of empty_cache(). */
void mt_pool_note_idle(struct mt_pool_walk *walk, struct mt_pool_lane *lane);
/* Ends the group of segment events. */
void mt_pool_end_group(struct mt_pool_walk *walk, struct mt_pool_lane *lane);

#endif
