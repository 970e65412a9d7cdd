/* Charts of a job while each of their allocations fails, once and for good: the picture is whole,
 * or there is none. */
#include "cmocka_all.h"

#include "../fleet/chart_job.h"
#include "failing_alloc.h"
#include "job_answers.h"
#include "job_chart.h"

/* Returns the allocations; *op_count is that of a whole picture, 0: not known yet. */
static size_t check(const struct mt_job_report *report, const struct mt_job_chart *chart, size_t n,
                    bool from_there_on, size_t *op_count)
{
    const struct mt_job_chart_options options = {0};
    struct mt_error error = {0};
    struct mt_drawing drawing;
    enum mt_status status;
    size_t count;

    fail_allocation(n, from_there_on);
    status = chart->draw(report, &options, &drawing, &error);
    count = stop_failing();
    if (!*op_count)
        *op_count = drawing.op_count;
    if (status == MT_OK) {
        assert_int_equal(drawing.op_count, *op_count);
    } else {
        assert_int_equal(status, MT_ERR_MEMORY);
        assert_int_equal(error.status, MT_ERR_MEMORY);
    }
    mt_drawing_release(&drawing);
    return count;
}

static void no_half_pictures(void **state)
{
    struct mt_job_options options = {.job = "slurm:77"};
    struct mt_job_report *report = NULL;
    struct mt_rank_set set = {0};

    (void)state;
    assert_true(chart_job(&set, 8));
    assert_true(chart_hand_over(&set, "GPU-8f2c", 9, 80 * MT_GIB));
    assert_int_equal(mt_rank_set_sort(&set), MT_OK);
    assert_int_equal(mt_job_report_make(&set, &options, &report, NULL), MT_OK);
    for (size_t i = 0; mt_job_charts[i]; i++) {
        size_t op_count = 0, allocations;

        if (mt_job_charts[i]->called_for && !mt_job_charts[i]->called_for(report))
            continue;
        allocations = check(report, mt_job_charts[i], 0, false, &op_count);

        assert_true(allocations > 5 && op_count > 20);
        for (int from = 0; from < 2; from++)
            for (size_t n = 1; n <= allocations; n++)
                (void)check(report, mt_job_charts[i], n, from, &op_count);
    }
    mt_job_report_free(report);
    mt_rank_set_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_half_pictures)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
