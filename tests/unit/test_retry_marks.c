/* Marks requests for which the cache was emptied: no retry is lost, however many there are. */
#include "cmocka_all.h"

#include "capture.h"
#include "survey.h"

static uint64_t sum_of(const struct mt_retry_mark *marks, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        assert_true(marks[i].retries > 0);
        assert_true(i == 0 || marks[i].event > marks[i - 1].event);
        sum += marks[i].retries;
    }
    return sum;
}

static void only_an_event_that_retried_is_marked(void **state)
{
    struct mt_retry_marks list = {0};

    (void)state;
    mt_retry_marks_add(&list, 10, 1, 0);
    mt_retry_marks_add(&list, 20, 2, 1);
    mt_retry_marks_add(&list, 30, 3, 1);
    mt_retry_marks_add(&list, 40, 4, 3);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.marks[0].t_ns, 20);
    assert_int_equal(list.marks[1].event, 4);
    assert_int_equal(list.marks[1].retries, 2);
    mt_retry_marks_release(&list);
}

static void a_full_list_loses_no_mark(void **state)
{
    struct mt_retry_marks list = {0};

    (void)state;
    for (uint64_t i = 1; i <= 10000; i++) {
        mt_retry_marks_add(&list, i, i, i);
        assert_true(list.count <= MT_MAX_RETRY_MARKS);
        assert_int_equal(sum_of(list.marks, list.count), i);
    }
    assert_int_equal(list.marks[0].event, 1);
    mt_retry_marks_release(&list);
}

static void a_report_lists_all_retries_that_it_counts(void **state)
{
    static const char *const names[] = {"churn_cap", "gpt_cap", "oom_adam", "gpt_default"};
    const struct mt_analyze_options options = {0};
    uint64_t all = 0;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct capture capture =
            capture_analyze(capture_path("captures", names[i], ".pickle.zst"), &options);
        const struct mt_device_report *device = &capture.report->devices[0];

        assert_int_equal(sum_of(device->retry_marks, device->retry_mark_count), device->retries);
        all += device->retries;
        capture_close(&capture);
    }
    assert_true(all > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_an_event_that_retried_is_marked),
        cmocka_unit_test(a_full_list_loses_no_mark),
        cmocka_unit_test(a_report_lists_all_retries_that_it_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
