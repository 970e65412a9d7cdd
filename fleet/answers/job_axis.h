/* PRIVATE to fleet/answers: the sources of a job's axes, one file each. A source without data
 * leaves axis_count at 0. Any other source sets the names, sizes and strides of report->axes,
 * and the coordinates of rows if they do not follow from a stride. */
#ifndef MT_FLEET_JOB_AXIS_H
#define MT_FLEET_JOB_AXIS_H

#include "job_work.h"

mt_job_answer mt_job_axes_of_groups;
mt_job_answer mt_job_axes_of_communicators;

/* The process groups that a row is in. */
struct mt_job_groups {
    const struct mt_record_group *list;
    uint32_t count;
};

/* Adds an axis. Returns false if there is no room. `name` is borrowed. */
bool mt_job_axis_add(struct mt_job_report *report, const char *name, uint32_t size,
                     uint32_t stride);

/* Returns "tp", "pp", "cp", "ep", "fsdp" or "dp" if a word of the name means that kind of
 * parallelism, else NULL. */
const char *mt_job_axis_word(const char *name);

#endif
