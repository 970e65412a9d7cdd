/* PRIVATE to fleet/answers: state that the answers share while they make a report. */
#ifndef MT_FLEET_JOB_WORK_H
#define MT_FLEET_JOB_WORK_H

#include "job_report.h"

/* With more rows, sums of squares would not fit into 128 bits (job_answers.c). */
#define MT_JOB_MAX_ROWS (1u << 22)

struct mt_job_work {
    const struct mt_rank_set *set;
    const struct mt_job_options *options;
    struct mt_job_report *report;
    const struct mt_rank_record *records; /* of the job */
    uint32_t record_count;
    struct mt_job_value *values; /* scratch space for one value of each row */
    uint64_t outlier_bytes;      /* the smallest relevant difference between replicas */
};

/* An answer fills its part of the report. job_answers.c has their order. */
typedef void mt_job_answer(struct mt_job_work *work);

mt_job_answer mt_job_find_rows;
mt_job_answer mt_job_find_parameters;
mt_job_answer mt_job_find_missing;
mt_job_answer mt_job_find_needs;
mt_job_answer mt_job_find_clusters;
mt_job_answer mt_job_find_death;
mt_job_answer mt_job_find_outliers;
mt_job_answer mt_job_find_devices;

/* Like the other answers. MT_ERR_USAGE: options->mesh does not fit the job. */
enum mt_status mt_job_find_axes(struct mt_job_work *work, struct mt_error *error) MT_MUST_USE;

/* Returns true if the process ran to its end and its trace is complete. Only then can its roles at
 * the peak be compared with those of other ranks. */
bool mt_job_is_whole(const struct mt_rank_record *record);

#define MT_JOB_DEVICE_TENANTS 64

/* Allocates a zeroed array in the arena of the report. */
#define MT_JOB_ARRAY(work, count, type)                                                            \
    ((type *)mt_arena_array(&(work)->report->arena, (size_t)(count) + 1, sizeof(type)))

#endif
