#include <math.h>
#include "cmocka_all.h"

#include <string.h>

#include "german.h"
#include "buf.h"
#include "process_memory.h"

TEST(grows_and_stays_terminated)
{
    struct mt_buf buf = {0};

    for (size_t i = 0; i < 5000; i++) {
        mt_buf_add_char(&buf, (char)('a' + i % 26));
        assert_int_equal(strlen(buf.data), i + 1);
    }
    assert_int_equal(buf.length, 5000);
    mt_buf_reset(&buf);
    assert_string_equal(buf.data, "");
    mt_buf_add(&buf, "x\0y", 3);
    assert_int_equal(buf.length, 3);
    assert_memory_equal(buf.data, "x\0y", 4);
    mt_buf_release(&buf);
    assert_null(buf.data);
}

TEST(failure_sticks)
{
    struct mt_buf buf = {0};

    mt_memory_return_failures(true);
    mt_buf_add_text(&buf, "before");
    assert_null(mt_buf_reserve(&buf, SIZE_MAX / 2));
    assert_true(buf.failed);
    mt_buf_add_text(&buf, "after");
    assert_string_equal(buf.data, "before");
    mt_buf_reset(&buf);
    assert_true(buf.failed);
    assert_string_equal(buf.data, "");
    mt_buf_add_text(&buf, "after");
    assert_string_equal(buf.data, "");
    mt_buf_release(&buf);
    assert_false(buf.failed);
    mt_buf_add_text(&buf, "again");
    assert_string_equal(buf.data, "again");
    mt_buf_release(&buf);
    mt_memory_return_failures(false);
}

TEST(integers)
{
    struct mt_buf buf = {0};

    mt_buf_add_u64(&buf, 0);
    mt_buf_add_char(&buf, ' ');
    mt_buf_add_u64(&buf, UINT64_MAX);
    mt_buf_add_char(&buf, ' ');
    mt_buf_add_i64(&buf, INT64_MIN);
    mt_buf_add_char(&buf, ' ');
    mt_buf_add_i64(&buf, INT64_MAX);
    mt_buf_printf(&buf, " %s%d", "x", -3);
    assert_string_equal(buf.data,
                        "0 18446744073709551615 -9223372036854775808 9223372036854775807 x-3");
    mt_buf_release(&buf);
}

TEST(decimals)
{
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {
        {0, 3, "0"},
        {-0.0, 3, "0"},
        {1.5, 0, "2"},
        {-1.5, 0, "-2"},
        {0.5, 0, "1"},
        {2.5, 0, "3"},
        {1.25, 1, "1.3"},
        {-0.04, 1, "0"},
        {1.0, 6, "1"},
        {1.10, 6, "1.1"},
        {0.000001, 6, "0.000001"},
        {0.0000004, 6, "0"},
        {999.9996, 3, "1000"},
        {123456.789, 2, "123456.79"},
        {1e15, 0, "1000000000000000"},
        {1e13 + 0.5, 3, "10000000000001"},
        {2e15, 2, "0"},
        {(double)NAN, 2, "0"},
        {-(double)INFINITY, 2, "0"},
        {1.5, 9, "2"},
        {1.5, -1, "2"},
        {10.05, 1, "10.1"},
    };
    struct mt_buf buf = {0};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mt_buf_reset(&buf);
        mt_buf_add_decimal(&buf, cases[i].value, cases[i].digits);
        assert_string_equal(buf.data, cases[i].text);
    }
    mt_buf_release(&buf);
}

int main(void)
{
    (void)set_german(); /* Without effect; test_render_core tests whether the locale exists. */
    return run_tests_of_file(NULL, NULL);
}
