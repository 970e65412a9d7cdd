/* A set of groups, found by their common properties, and the functions that reduce it. */
#ifndef MT_ANALYZER_HISTORY_GROUPS_H
#define MT_ANALYZER_HISTORY_GROUPS_H

#include "history.h"

/* Zeroed memory is an empty set. */
struct mt_history_groups {
    struct mt_history_group *list;
    uint32_t count, capacity;
    struct mt_map ids; /* hash -> index */
};

/* The group with the key of `like`, added if missing. Amortized O(1). */
void mt_history_groups_find(struct mt_history_groups *groups, const struct mt_history_group *like,
                            uint32_t *index);
void mt_history_groups_release(struct mt_history_groups *groups);

/* Merges every group with less than `small_bytes` into a coarser one. *into becomes an array of the
 * new numbers of the previous groups; the caller frees it. */
void mt_history_groups_merge(struct mt_history_groups *groups, const struct mt_symbols *symbols,
                             uint64_t small_bytes, uint32_t **into);

/* Assigns groups their new numbers below `group_count`, and merges the changes of each column. */
void mt_history_renumber(struct mt_history_column *columns, uint32_t column_count,
                         struct mt_history_change *changes, uint32_t *change_count,
                         const uint32_t *into, uint32_t group_count);

/* Makes a history small enough for a page: merges groups, the smallest first, until at most these
 * numbers of groups and changes remain. */
void mt_history_reduce(struct mt_history *history, uint32_t most_groups, uint32_t most_changes);

#endif
