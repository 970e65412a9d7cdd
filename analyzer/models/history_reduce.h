/* A history made small enough for a page. */
#ifndef MT_ANALYZER_HISTORY_REDUCE_H
#define MT_ANALYZER_HISTORY_REDUCE_H

#include "history.h"

/* Merges groups, the smallest first, until at most these numbers of groups and changes are left. */
enum mt_status mt_history_reduce(struct mt_history *history, uint32_t most_groups,
                                 uint32_t most_changes) MT_MUST_USE;

#endif
