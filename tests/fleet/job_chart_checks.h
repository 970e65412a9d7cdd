/* Draws charts of simulated jobs and checks what all of them must keep. */
#ifndef TESTS_JOB_CHART_CHECKS_H
#define TESTS_JOB_CHART_CHECKS_H

#include "cmocka_all.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chart_named.h"
#include "drawing_check.h"
#include "job_answers.h"
#include "job_chart.h"
#include "phase.h"
#include "simulate_job.h"
#include "units.h"
#include "unit/drawing_checks.h"

#define SECOND_NS UINT64_C(1000000000)

struct made {
    struct mt_rank_set set;
    struct mt_job_report *report;
};

static inline void add_job(struct made *made, const struct simulated_job *job)
{
    memset(made, 0, sizeof *made);
    assert_true(simulated_job_add(job, 0, 1, &made->set));
}

static inline void report_on(struct made *made)
{
    const struct mt_job_options options = {0};
    struct mt_error error;

    mt_rank_set_sort(&made->set);
    assert_int_equal(mt_job_report_make(&made->set, &options, &made->report, &error), MT_OK);
}

static inline void release(struct made *made)
{
    mt_job_report_free(made->report);
    mt_rank_set_release(&made->set);
}

static inline void draw(const struct mt_job_report *report, const char *name,
                        const struct mt_job_chart_options *options, struct mt_drawing *drawing)
{
    chart_named(name)->draw(report, options, drawing);
}

static const struct mt_job_chart_options usual = {0};

/* Each with the numbers of ranks that a chart has to be good for. */
static const struct {
    uint32_t stages, replicas, shards;
} jobs[] = {{1, 1, 1}, {1, 2, 1}, {2, 4, 1}, {8, 4, 2}, {8, 16, 8}, {8, 256, 8}};

static inline struct simulated_job job_of(size_t size)
{
    struct simulated_job job =
        simulated_job_new(jobs[size].stages, jobs[size].replicas, jobs[size].shards);

    job.has_columns = true;
    return job;
}

static inline uint32_t world_of(const struct simulated_job *job)
{
    return job->stages * job->replicas * job->shards;
}

/* All that can go wrong in a job. */
static inline struct simulated_job bad_job_of(size_t size)
{
    struct simulated_job job = job_of(size);
    int32_t world = (int32_t)world_of(&job);

    if (world < 8)
        return job;
    job.logging_rank = 0;
    job.talking_rank = 1;
    job.leaking_rank = world - 1;
    job.dying_rank = world - 3;
    job.missing[job.missing_count++] = world / 3;
    job.missing[job.missing_count++] = world / 3 + 1;
    job.missing[job.missing_count++] = world / 2;
    job.cut[job.cut_count++] = 6;
    return job;
}

static inline void check_near(double y, double expected)
{
    if (!(fabs(y - expected) <= 0.5))
        fail_msg("%.2f is not %.2f", y, expected);
}

static inline void assert_says(const struct mt_drawing *drawing, const char *role,
                               const char *words)
{
    if (!drawing_says(drawing, role, words))
        fail_msg("%s: no %s says \"%s\"", drawing->id, role, words);
}

static inline const struct mt_op *nth(const struct mt_drawing *drawing, const char *role, size_t n)
{
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], role) && !n--)
            return &drawing->ops[i];
    return NULL;
}

#endif
