/* Sums for each group of a history during construction; for history_*.c only. */
#ifndef MT_ANALYZER_HISTORY_SUMS_H
#define MT_ANALYZER_HISTORY_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

struct mt_history_delta {
    int64_t bytes, blocks;
};

struct mt_history_tally {
    int64_t told_bytes;              /* at the instant of the last finished column */
    struct mt_history_delta settled; /* from there to the fullest instant of this column so far */
    struct mt_history_delta later;   /* since that instant */
    bool in_settled, in_later;       /* listed below */
};

struct mt_history_list {
    uint32_t *groups;
    uint32_t count, capacity;
};

/* Zeroed memory has no groups. */
struct mt_history_sums {
    struct mt_history_tally *tallies; /* by group */
    uint32_t capacity;
    struct mt_history_list settled, later; /* groups with any */
};

/* Ensures room for `group_count` groups. */
void mt_history_sums_room(struct mt_history_sums *sums, uint32_t group_count);
/* Adds to the later changes. */
void mt_history_sums_add(struct mt_history_sums *sums, uint32_t group,
                         struct mt_history_delta delta);
/* The fullest instant is now: settles the later changes. */
void mt_history_sums_settle(struct mt_history_sums *sums);
/* Gives the groups new numbers: group i of `old_count` becomes into[i], below `new_count`. Adds up
 * the groups that get one number. */
void mt_history_sums_renumber(struct mt_history_sums *sums, const uint32_t *into,
                              uint32_t old_count, uint32_t new_count);
void mt_history_sums_release(struct mt_history_sums *sums);

#endif
