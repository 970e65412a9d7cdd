/* Numbers over rows, against values that are worked out by hand. */
#include "cmocka_all.h"

#include "job_values.h"

TEST(a_spread_has_the_lower_of_two_medians_and_the_first_of_equals)
{
    struct mt_job_value values[] = {{7, 5}, {1, 9}, {7, 2}, {3, 4}};
    struct mt_job_spread spread = mt_job_spread_of(values, 4);

    assert_int_equal(spread.count, 4);
    assert_int_equal(spread.min, 1);
    assert_int_equal(spread.min_row, 9);
    assert_int_equal(spread.median, 3);
    assert_int_equal(spread.median_row, 4);
    assert_int_equal(spread.max, 7);
    assert_int_equal(spread.max_row, 2);
    assert_int_equal(spread.mean, 4);
    assert_int_equal(mt_job_spread_of(values, 3).median, 3);
    assert_int_equal(mt_job_spread_of(values, 1).median, 1);
    assert_int_equal(mt_job_spread_of(values, 0).max_row, MT_NO_ROW);
}

TEST(a_mean_of_large_numbers_does_not_wrap)
{
    struct mt_job_value values[] = {{UINT64_MAX, 0}, {UINT64_MAX, 1}, {UINT64_MAX - 3, 2}};

    assert_true(mt_job_spread_of(values, 3).mean == UINT64_MAX - 1);
}

TEST(a_distance_is_the_upper_of_two_medians)
{
    struct mt_job_value values[] = {{10, 0}, {14, 1}, {9, 2}, {30, 3}};

    /* from 10: 0, 4, 1, 20 */
    assert_int_equal(mt_job_distance(values, 4, 10), 4);
    assert_int_equal(mt_job_distance(values, 0, 10), 0);
}

TEST(a_share_is_in_millionths)
{
    const unsigned __int128 large = (unsigned __int128)1 << 126;

    assert_int_equal(mt_job_ppm(1, 3), 333333);
    assert_int_equal(mt_job_ppm(1, 0), 0);
    assert_int_equal(mt_job_ppm(large / 4, large), 250000);
    assert_true(mt_job_ppm(large, 1) == 0 || mt_job_ppm(large, 1) == UINT32_MAX);
    assert_true(mt_job_ppm(UINT64_MAX, 1) == UINT32_MAX);
}

TEST(ranges_join_neighbors_and_repeats)
{
    static const int32_t ranks[] = {0, 1, 1, 3, INT32_MAX, INT32_MAX};
    struct mt_job_range ranges[6];
    uint32_t count = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(ranks); i++)
        mt_job_range_add(ranges, &count, ranks[i]);
    assert_int_equal(count, 3);
    assert_int_equal(ranges[0].first, 0);
    assert_int_equal(ranges[0].last, 1);
    assert_int_equal(ranges[1].last, 3);
    assert_int_equal(ranges[2].first, INT32_MAX);
}

TEST(classes_split_by_class_then_by_key)
{
    struct mt_job_key keys[] = {{1, 0, 5}, {0, 1, 9}, {1, 2, 4}, {0, 3, 9}, {1, 4, 5}};
    static const uint32_t wanted[] = {2, 0, 1, 0, 2};
    uint32_t classes[5];

    assert_int_equal(mt_job_classes_split(keys, 5, classes), 3);
    assert_memory_equal(classes, wanted, sizeof wanted);
    assert_int_equal(mt_job_classes_split(keys, 0, classes), 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
