/* The same requests under several allocators: the reserved memory of each, and the smallest limit
 * in which it runs. Every row is a replay (fit.h); the row of the run's own allocator is marked. */
#ifndef MT_ANALYZER_POLICY_TABLE_H
#define MT_ANALYZER_POLICY_TABLE_H

#include "fit.h"

struct mt_policy_row {
    char policy[MT_POLICY_TEXT]; /* canonical spelling */
    const char *what;            /* "what the run had", "PyTorch's defaults", ...; static */
    bool is_own;                 /* the run's own allocator */
    bool is_measured;            /* and the replay equals it, event by event */
    struct mt_fit_result fit; /* without failures. The smallest limit is high_bytes, for all orders
                                 of addresses; low_bytes is that of the best order */
};

/* A common size of memory. */
struct mt_known_size {
    const char *name;
    uint64_t bytes;
};

#define MT_MAX_POLICY_ROWS 32

struct mt_policy_table {
    struct mt_arena arena;
    const char *name; /* of the trace */
    uint16_t device;
    bool starts_in_middle;
    struct mt_policy_row rows[MT_MAX_POLICY_ROWS]; /* smallest reserved peak first */
    uint32_t row_count;
    uint64_t bound_bytes; /* peak of requested bytes: lower bound for every allocator */
    const struct mt_known_size *sizes; /* borrowed, ascending; terminated by a NULL name */
    const char *finding[2];            /* one sentence each, from the rows */
};

/* One policy (NULL: the run's own) over the whole source. `device` is its number, or UINT64_MAX:
 * the one that reserves most. Fills *row except `what`, and sets *of to the number of the device.
 * Returns MT_END if the device has no requests. */
enum mt_status mt_policy_row_measure(struct mt_source *source, const char *policy, uint64_t device,
                                     struct mt_policy_row *row, uint16_t *of,
                                     struct mt_error *error) MT_MUST_USE;

/* Requests of the trace, including gaps that the policy skips: equal for all policies. */
uint64_t mt_policy_row_requests(const struct mt_policy_row *row);

/* Whether the policy serves fewer requests than the first row because the device runs out of
 * memory. Its peaks are then not those of this run. False if the trace starts in the middle, where
 * counts differ. */
bool mt_policy_row_refuses(const struct mt_policy_table *table, const struct mt_policy_row *row);

/* Completes a table with rows: drops those of equal spelling, sorts them and makes the sentences.
 * Returns MT_ERR_USAGE if there are no rows, or if rows differ in their requests. */
enum mt_status mt_policy_table_finish(struct mt_policy_table *table,
                                      struct mt_error *error) MT_MUST_USE;
void mt_policy_table_release(struct mt_policy_table *table);

#endif
