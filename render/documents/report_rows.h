/* Rows that the page and the text share, and the selection of the rows that are shown. */
#ifndef MT_RENDER_REPORT_ROWS_H
#define MT_RENDER_REPORT_ROWS_H

#include "report.h"
#include "table.h"

/* step, before, peak, after, change, reserved, time */
void mt_add_step_cells(struct mt_table *table, const struct mt_report *report,
                       const struct mt_step_use *step);

/* The duration of a phase or step. If the trace has no times, the number of events. */
struct mt_table_cell mt_length_cell(const struct mt_report *report, const struct mt_phase *phase);
struct mt_table_cell mt_step_length_cell(const struct mt_report *report,
                                         const struct mt_step_use *step);

/* All main phases of one name that the trace covers. */
struct mt_phase_sum {
    const char *name; /* the report's */
    uint64_t instances, time_ns, allocations, frees, peak_bytes;
    int64_t change;         /* of all instances together */
    int64_t largest_change; /* the largest change of one instance, up or down */
    int64_t most_left;      /* the most that one instance left behind */
};

/* Fills `sums` for the first `capacity` names, in the order in which they begin. *count is the
 * number of names, which may be larger. */
enum mt_status mt_sum_phases(const struct mt_report *report, const struct mt_device_report *device,
                             struct mt_phase_sum *sums, size_t capacity, size_t *count) MT_MUST_USE;

/* Selects the largest of some values: all values above `least`, and `equal` values of that size. */
struct mt_largest {
    uint64_t least;
    size_t equal;
};
/* Selects the `most` largest of `count` values, and sorts `values` in descending order. Selects
 * all if `values` is NULL, if there are at most `most`, or if `most` is 0. */
struct mt_largest mt_largest_of(uint64_t *values, size_t count, uint32_t most);
/* Returns true if the value is selected. Call it once for each value, in any order: it counts
 * the values that equal `least`. */
bool mt_is_large(struct mt_largest *largest, uint64_t value);

#endif
