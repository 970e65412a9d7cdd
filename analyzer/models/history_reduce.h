/* A history made small enough for a page. */
#ifndef MT_ANALYZER_HISTORY_REDUCE_H
#define MT_ANALYZER_HISTORY_REDUCE_H

#include "history.h"

/* Puts groups together until no more than so many groups and changes are left:
 * the smallest first. */
enum mt_status mt_history_reduce(struct mt_history *history, uint32_t most_groups,
                                 uint32_t most_changes) MT_MUST_USE;

#endif
