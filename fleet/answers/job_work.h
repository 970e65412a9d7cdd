/* PRIVATE to fleet/answers: what the answers of a job share while a report is made. */
#ifndef MT_FLEET_JOB_WORK_H
#define MT_FLEET_JOB_WORK_H

#include "job_report.h"

/* Above that, sums of squares would not fit into 128 bits. */
#define MT_JOB_MAX_ROWS (1u << 22)

struct mt_job_work {
    const struct mt_rank_set *set;
    const struct mt_job_options *options;
    struct mt_job_report *report;
    const struct mt_rank_record *records; /* of the job */
    uint32_t record_count;
    struct mt_job_value *values; /* room for a value of each row, for one function at a time */
    uint64_t outlier_bytes;      /* the least difference between replicas that counts */
};

/* An answer fills its part of the report. They run in the order of the table in job_answers.c. */
typedef enum mt_status mt_job_answer(struct mt_job_work *work, struct mt_error *error);

mt_job_answer mt_job_find_rows;
mt_job_answer mt_job_find_parameters;
mt_job_answer mt_job_find_axes;
mt_job_answer mt_job_find_missing;
mt_job_answer mt_job_find_needs;
mt_job_answer mt_job_find_clusters;
mt_job_answer mt_job_find_groups;
mt_job_answer mt_job_find_death;
mt_job_answer mt_job_find_outliers;
mt_job_answer mt_job_find_paths;
mt_job_answer mt_job_find_growth;
mt_job_answer mt_job_find_steps;
mt_job_answer mt_job_find_devices;

/* The least difference between replicas that counts, for values around `median`. */
uint64_t mt_job_least_difference(const struct mt_job_options *options, uint64_t median);

/* Did the process go on to its end, and is all of it in the trace? What it held can then be
 * compared with other ranks. */
bool mt_job_is_whole(const struct mt_rank_record *record);

/* Zeroed memory of the report. */
#define MT_JOB_ARRAY(work, count, type)                                                            \
    ((type *)mt_arena_array(&(work)->report->arena, (size_t)(count) + 1, sizeof(type)))

#endif
