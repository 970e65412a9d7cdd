/* Lists of the survey: marks of requests for which the cache was emptied (no retry is lost, however
 * many there are), and the log of allocations. */
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

TEST(only_an_event_that_retried_is_marked)
{
    struct mt_retry_marks list = {0};

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

TEST(a_full_list_loses_no_mark)
{
    struct mt_retry_marks list = {0};

    for (uint64_t i = 1; i <= 10000; i++) {
        mt_retry_marks_add(&list, i, i, i);
        assert_true(list.count <= MT_MAX_RETRY_MARKS);
        assert_int_equal(sum_of(list.marks, list.count), i);
    }
    assert_int_equal(list.marks[0].event, 1);
    mt_retry_marks_release(&list);
}

TEST(a_report_lists_all_retries_that_it_counts)
{
    static const char *const names[] = {"churn_cap", "gpt_cap", "oom_adam", "gpt_default"};
    const struct mt_analyze_options options = {0};
    uint64_t all = 0;

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

/* The size of block i: one of `different` sizes. Some are odd. */
static uint64_t size_of(uint64_t i, uint64_t different)
{
    const uint64_t number = i * UINT64_C(0x9E3779B97F4A7C15) % different;

    return number * 512 + (number % 97 == 96);
}

/* Steps that repeat, and sizes that zstd cannot compress. */
static void check_log(uint64_t blocks, uint64_t different)
{
    struct mt_alloc_log log = {0};
    uint64_t bytes;
    uint8_t role;

    for (uint64_t i = 0; i < blocks; i++)
        mt_alloc_log_add(&log, size_of(i, different), (uint8_t)(i % 200));
    for (int reading = 0; reading < 2; reading++) {
        mt_alloc_log_rewind(&log);
        for (uint64_t i = 0; i < blocks; i++) {
            assert_true(mt_alloc_log_next(&log, &bytes, &role));
            assert_int_equal(bytes, size_of(i, different));
            assert_int_equal(role, i % 200);
        }
        assert_false(mt_alloc_log_next(&log, &bytes, &role));
    }
    for (uint64_t i = blocks; i-- > 0;)
        if (size_of(i, different) % 512 == 0)
            assert_int_equal(mt_block_units_at(&log.units, i), size_of(i, different) / 512);
    if (different < 1000 && blocks > 3 * MT_BLOCK_UNITS_CHUNK)
        assert_in_range(mt_block_units_bytes(&log.units), 1, blocks * 4);
    mt_alloc_log_release(&log);
}

TEST(the_log_returns_what_it_got)
{
    check_log(1, 1);
    check_log(MT_BLOCK_UNITS_CHUNK, 300);
    check_log(MT_BLOCK_UNITS_CHUNK + 1, 300);
    check_log(4 * MT_BLOCK_UNITS_CHUNK, 300);
    check_log(2 * MT_BLOCK_UNITS_CHUNK + 9, UINT64_C(1) << 31);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
