/* Evidence from flushes: which segments went, which stayed, and in which order. */
#ifndef MT_ANALYZER_POOL_FLUSH_H
#define MT_ANALYZER_POOL_FLUSH_H

#include "pool_walk.h"

/* Notes what could go, as empty_cache() begins. */
enum mt_status mt_pool_note_idle(struct mt_pool_walk *walk, struct mt_pool_lane *lane) MT_MUST_USE;
/* The group of segment events is over. */
enum mt_status mt_pool_end_group(struct mt_pool_walk *walk, struct mt_pool_lane *lane) MT_MUST_USE;

#endif
