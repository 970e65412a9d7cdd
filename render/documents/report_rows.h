/* Rows that the page and the text share. */
#ifndef MT_RENDER_REPORT_ROWS_H
#define MT_RENDER_REPORT_ROWS_H

#include "report.h"
#include "table.h"

/* step, before, peak, after, change, reserved, time */
void mt_add_step_cells(struct mt_table *table, const struct mt_step_use *step);

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

#endif
