/* Rows that the page and the text share, and the selection of the rows that are shown. */
#ifndef MT_RENDER_REPORT_ROWS_H
#define MT_RENDER_REPORT_ROWS_H

#include "report.h"
#include "table.h"

/* step, before, peak, after, change, reserved, time */
void mt_add_step_cells(struct mt_table *table, const struct mt_report *report,
                       const struct mt_step_use *step);

/* How long it took; without times, the number of events. */
struct mt_table_cell mt_length_cell(const struct mt_report *report, const struct mt_phase *phase);
struct mt_table_cell mt_step_length_cell(const struct mt_report *report,
                                         const struct mt_step_use *step);

/* All main phases of one name that the trace covers. */
struct mt_phase_sum {
    const char *name; /* the report's */
    uint64_t instances, time_ns, allocations, frees, peak_bytes;
    int64_t change;         /* of all instances together */
    int64_t largest_change; /* of an instance, up or down */
    int64_t most_left;      /* by an instance */
};

/* The first `capacity` names, in the order in which they begin; *count: how many there are. */
enum mt_status mt_sum_phases(const struct mt_report *report, const struct mt_device_report *device,
                             struct mt_phase_sum *sums, size_t capacity, size_t *count) MT_MUST_USE;

/* The largest of some values: those above `least`, and `equal` of that size. */
struct mt_largest {
    uint64_t least;
    size_t equal;
};
/* Of `count` values, which are sorted; NULL, or no more than `most`: all. */
struct mt_largest mt_largest_of(uint64_t *values, size_t count, uint32_t most);
/* Is it one of them? To be asked once of each value, in any order. */
bool mt_is_large(struct mt_largest *largest, uint64_t value);

#endif
