/* The charts of a job without memory: each allocation fails once, and no chart passes for whole. */
#include "cmocka_all.h"

#include <string.h>

#include "failing_alloc.h"
#include "fleet/simulate_job.h"
#include "job_answers.h"
#include "job_chart.h"
#include "process_memory.h"

/* Returns how many allocations the chart makes; number `n` of them fails, 0: none. */
static size_t draw(const struct mt_job_chart *chart, const struct mt_job_report *report, size_t n,
                   enum mt_status *status)
{
    const struct mt_job_chart_options options = {0};
    struct mt_drawing drawing;
    struct mt_error error;
    size_t made;

    fail_allocation(n, false);
    *status = chart->draw(report, &options, &drawing, &error);
    made = stop_failing();
    assert_int_equal(*status == MT_OK, !drawing.failed);
    mt_drawing_release(&drawing);
    return made;
}

/* An allocation that failed is a status, or is known to the process, which then writes nothing. */
static void a_chart_is_whole_or_fails(void **state)
{
    struct simulated_job job = simulated_job_new(8, 16, 8);
    const struct mt_job_options options = {0};
    struct mt_job_report *report;
    struct mt_rank_set set = {0};
    struct mt_error error;
    enum mt_status status;

    (void)state;
    job.has_columns = true;
    job.dying_rank = 1000;
    job.leaking_rank = 3;
    job.missing[job.missing_count++] = 500;
    assert_true(simulated_job_add(&job, 0, 1, &set));
    assert_int_equal(mt_rank_set_sort(&set), MT_OK);
    assert_int_equal(mt_job_report_make(&set, &options, &report, &error), MT_OK);
    for (size_t i = 0; mt_job_charts[i]; i++) {
        size_t total = draw(mt_job_charts[i], report, 0, &status);

        assert_int_equal(status, MT_OK);
        assert_true(total > 3);
        for (size_t n = 1; n <= total; n++) {
            draw(mt_job_charts[i], report, n, &status);
            assert_true(status == MT_ERR_MEMORY || mt_memory_has_failed());
        }
    }
    mt_job_report_free(report);
    mt_rank_set_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_chart_is_whole_or_fails)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
