/* PRIVATE to fleet/answers: the sources of a job's axes, one file each. A source without data
 * leaves axis_count at 0. Any other source sets the names, sizes and strides of report->axes,
 * and the coordinates of rows if they do not follow from a stride. */
#ifndef MT_FLEET_JOB_AXIS_H
#define MT_FLEET_JOB_AXIS_H

#include "job_work.h"

mt_job_answer mt_job_axes_of_option;
mt_job_answer mt_job_axes_recorded;
mt_job_answer mt_job_axes_of_groups;
mt_job_answer mt_job_axes_of_communicators;
mt_job_answer mt_job_axes_found;

/* The process groups that a row is in. */
struct mt_job_groups {
    const struct mt_record_group *list;
    uint32_t count;
};

/* Makes axes from the groups of each row. O(groups * shapes of groups). */
void mt_job_axes_from(struct mt_job_work *work, const struct mt_job_groups *of_rows);

/* Returns true if the rank has the position that an axis with the group's size and stride assigns
 * to it: group->first + stride * (rank / stride % size). */
bool mt_job_group_is_in_place(const struct mt_record_group *group, int32_t rank);

/* Adds an axis. Returns false if there is no room. `name` is borrowed. */
bool mt_job_axis_add(struct mt_job_report *report, const char *name, uint32_t size,
                     uint32_t stride);

/* Returns the kind of an axis, derived from its name. Ranks along an axis of replicas should be
 * equal; ranks along an axis of stages need not be. */
enum mt_axis_kind { MT_AXIS_UNNAMED, MT_AXIS_REPLICAS, MT_AXIS_STAGES };
enum mt_axis_kind mt_job_axis_kind(const char *name);

/* Returns "tp", "pp", "cp", "ep", "fsdp" or "dp" if a word of the name means that kind of
 * parallelism, else NULL. */
const char *mt_job_axis_word(const char *name);

#endif
