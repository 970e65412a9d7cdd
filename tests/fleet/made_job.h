/* Sets of records and their reports, for tests of what a job is told. */
#ifndef TESTS_MADE_JOB_H
#define TESTS_MADE_JOB_H

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "job_answers.h"
#include "simulate_job.h"

struct made {
    struct mt_rank_set *set; /* of its own, because the report borrows it */
    struct mt_job_report *report;
    struct mt_error error;
    enum mt_status status;
};

static const struct mt_job_options usual = {0};

static inline struct made made_new(void)
{
    struct made made = {.set = calloc(1, sizeof *made.set), .error = {.offset = MT_NO_OFFSET}};

    assert_non_null(made.set);
    return made;
}

static inline void report_of_set(struct made *made, const struct mt_job_options *options)
{
    const char *why = "";

    mt_rank_set_sort(made->set);
    if (!mt_rank_set_is_sound(made->set, &why))
        fail_msg("%s", why);
    made->status = mt_job_report_make(made->set, options, &made->report, &made->error);
}

static inline struct made make_with(const struct simulated_job *job,
                                    const struct mt_job_options *options)
{
    struct made made = made_new();

    assert_true(simulated_job_add(job, 0, 1, made.set));
    report_of_set(&made, options);
    return made;
}

static inline struct made make(const struct simulated_job *job)
{
    struct made made = make_with(job, &usual);

    assert_int_equal(made.status, MT_OK);
    return made;
}

static inline void release(struct made *made)
{
    mt_job_report_free(made->report);
    mt_rank_set_release(made->set);
    free(made->set);
}

static inline int32_t rank_of(const struct mt_job_report *report, uint32_t row)
{
    assert_true(row < report->row_count);
    return report->rows[row].record->identity.rank;
}

static inline const struct mt_job_outlier *outlier_of(const struct mt_job_report *report,
                                                      int32_t rank)
{
    for (uint32_t i = 0; i < report->outlier_count; i++)
        if (rank_of(report, report->outliers[i].row) == rank)
            return &report->outliers[i];
    fail_msg("rank %d is no outlier", (int)rank);
    return NULL;
}

static inline void assert_axis(const struct mt_job_report *report, uint32_t index, const char *name,
                               uint32_t size, uint32_t stride)
{
    assert_true(index < report->axis_count);
    assert_string_equal(report->axes[index].name, name);
    assert_int_equal(report->axes[index].size, size);
    assert_int_equal(report->axes[index].stride, stride);
}

#endif
