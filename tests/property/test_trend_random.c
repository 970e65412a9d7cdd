/* The robust slope against all pairs, one by one. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>

#include "dice.h"
#include "trend.h"
#include "util.h"

enum { MOST = 90 };

static uint64_t random_state = 7;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double slow_slope(const uint64_t *values, uint32_t count)
{
    static double slopes[MOST * MOST];
    size_t n = 0;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++)
            slopes[n++] = ((double)values[j] - (double)values[i]) / (j - i);
    qsort(slopes, n, sizeof *slopes, by_value);
    return (slopes[(n - 1) / 2] + slopes[n / 2]) / 2;
}

static void fill(uint64_t *values, uint32_t count)
{
    uint64_t range = UINT64_C(1) << high_below(45), slope = high_below(range + 1), i;
    bool falls = high_below(2);

    for (i = 0; i < count; i++)
        values[i] = (falls ? (count - i) * slope : i * slope) + high_below(range);
    for (i = high_below(count / 3 + 1); i > 0; i--)
        values[high_below(count)] = high_below(range * 1000);
}

TEST(slope_is_the_median_of_all_pairs)
{
    uint64_t values[MOST];

    for (int round = 0; round < 400; round++) {
        uint32_t count = 2 + (uint32_t)high_below(MOST - 2);
        int64_t slope;

        fill(values, count);
        double slow = slow_slope(values, count);
        mt_robust_slope(values, count, &slope);
        if (!(fabs((double)slope - slow) <= 1.001))
            fail_msg("round %d: %lld instead of %f", round, (long long)slope, slow);
    }
}

/* A third of the values may be anything. */
TEST(a_third_of_nonsense_changes_little)
{
    static uint64_t values[30000];
    int64_t slope;

    for (uint32_t i = 0; i < MT_ARRAY_LEN(values); i++)
        values[i] = high_below(10) < 2 ? high_below(UINT64_MAX)
                                       : MT_GIB + i * UINT64_C(1000) + high_below(100);
    mt_robust_slope(values, MT_ARRAY_LEN(values), &slope);
    assert_true(slope > 900 && slope < 1100);
}

TEST(extremes_are_slopes_too)
{
    static const struct {
        uint64_t values[3];
        uint32_t count;
        int64_t slope;
    } cases[] = {
        {{0, 0}, 2, 0},      {{0, 5}, 2, 5},       {{5, 0}, 2, -5},
        {{7, 7, 7}, 3, 0},   {{0, 10, 20}, 3, 10}, {{0, UINT64_MAX}, 2, INT64_C(1) << 53},
        {{0, 100, 2}, 3, 1},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        int64_t slope;

        mt_robust_slope(cases[i].values, cases[i].count, &slope);
        assert_int_equal(slope, cases[i].slope);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
