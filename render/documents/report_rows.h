/* Table rows that the page and the text share, and the selection of the largest rows. */
#ifndef MT_RENDER_REPORT_ROWS_H
#define MT_RENDER_REPORT_ROWS_H

#include "report.h"
#include "table.h"

/* Adds the cells of a step: number, bytes before, peak, bytes after, change, reserved peak,
 * duration. */
void mt_add_step_cells(struct mt_table *table, const struct mt_report *report,
                       const struct mt_step_use *step);

/* Return the duration of a phase or a step, or the number of its events if the trace has no
 * times. */
struct mt_table_cell mt_length_cell(const struct mt_report *report, const struct mt_phase *phase);
struct mt_table_cell mt_step_length_cell(const struct mt_report *report,
                                         const struct mt_step_use *step);

/* The sum over all main phases of one name that the trace covers. */
struct mt_phase_sum {
    const char *name; /* borrowed from the report */
    uint64_t instances, time_ns, allocations, frees, peak_bytes;
    int64_t change;         /* sum over all instances */
    int64_t largest_change; /* the change of one instance with the largest absolute value */
    int64_t most_left;      /* the largest change of one instance; negative if all of them shrank */
};

/* Fills `sums` for the first `capacity` names, in the order of their first phases. Sets *count to
 * the number of all names, which may be larger than `capacity`. */
void mt_sum_phases(const struct mt_report *report, const struct mt_device_report *device,
                   struct mt_phase_sum *sums, size_t capacity, size_t *count);

/* A selection of the largest values: all values above `least`, and the first `equal` values that
 * are the same as `least`. */
struct mt_largest {
    uint64_t least;
    size_t equal;
};
/* Selects the `most` largest of `count` values. Selects all values if `values` is NULL, if `count`
 * is at most `most`, or if `most` is 0. May sort `values` in descending order. */
struct mt_largest mt_largest_of(uint64_t *values, size_t count, uint32_t most);
/* Returns true if the value is selected. Call it once for each value, in any order: it counts
 * the values that equal `least`. */
bool mt_is_large(struct mt_largest *largest, uint64_t value);

#endif
