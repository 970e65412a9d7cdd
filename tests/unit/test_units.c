#include <math.h>
#include "cmocka_all.h"

#include <ctype.h>

#include "ascii.h"
#include "german.h"
#include "units.h"
#include "util.h"

TEST(bytes)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {999, "999 B"},
        {1000, "0.98 KiB"}, /* never "1000 B" */
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {10 * MT_KIB, "10.0 KiB"},
        {10234, "9.99 KiB"},
        {10239, "10.0 KiB"}, /* 9.999 does not become "10.00" */
        {102348, "99.9 KiB"},
        {102349, "100 KiB"}, /* 99.95 */
        {999 * MT_KIB + 511, "999 KiB"},
        {999 * MT_KIB + 512, "0.98 MiB"}, /* 999.5 switches: never "1000 KiB" */
        {MT_MIB, "1.00 MiB"},
        {774 * MT_MIB, "774 MiB"},
        {UINT64_C(20749221888), "19.3 GiB"},
        {1023 * MT_GIB, "1.00 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    char text[MT_UNITS_TEXT];

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        assert_string_equal(mt_format_bytes(text, cases[i].bytes), cases[i].text);
}

TEST(mebibytes_are_enough)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0.0 MiB"},
        {1, "0.1 MiB"}, /* upwards */
        {24 * MT_MIB, "24.0 MiB"},
        {57 * MT_MIB + 900 * MT_KIB, "57.9 MiB"},
        {100 * MT_MIB - 1, "100 MiB"},
        {100 * MT_MIB, "100 MiB"},
        {1690 * MT_MIB + 1, "1,691 MiB"},
        {UINT64_MAX, "17,592,186,044,416 MiB"},
    };
    char text[MT_UNITS_TEXT];

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        assert_string_equal(mt_format_mib(text, cases[i].bytes), cases[i].text);
}

TEST(changes)
{
    char text[MT_UNITS_TEXT];

    assert_string_equal(mt_format_change(text, 0), "\u00b10");
    assert_string_equal(mt_format_change(text, 458 * (int64_t)MT_MIB), "+458 MiB");
    assert_string_equal(mt_format_change(text, -1), "\u22121 B");
    assert_string_equal(mt_format_change(text, -(int64_t)(2 * MT_GIB)), "\u22122.00 GiB");
    assert_string_equal(mt_format_change(text, INT64_MIN), "\u22128.00 EiB");
}

TEST(counts)
{
    char text[MT_UNITS_TEXT];

    assert_string_equal(mt_format_count(text, 0), "0");
    assert_string_equal(mt_format_count(text, 999), "999");
    assert_string_equal(mt_format_count(text, 1000), "1,000");
    assert_string_equal(mt_format_count(text, UINT64_C(20749221888)), "20,749,221,888");
    assert_string_equal(mt_format_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(mt_format_counted(text, 1, "recorded allocation"), "1 recorded allocation");
    assert_string_equal(mt_format_counted(text, 1000, "free"), "1,000 frees");
}

TEST(percents)
{
    static const struct {
        double share;
        const char *text;
    } cases[] = {
        {0, "0%"},           {0.0000001, "<0.1%"},     {0.000499, "<0.1%"},   {0.0005, "0.1%"},
        {0.666, "66.6%"},    {0.9994, "99.9%"},        {0.9996, "100%"},      {1, "100%"},
        {1.5, "150%"},       {1.2345, "123.5%"},       {-0.5, "\u221250.0%"}, {0.1, "10.0%"},
        {(double)NAN, "?%"}, {(double)INFINITY, "?%"},
    };
    char text[MT_UNITS_TEXT];

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        assert_string_equal(mt_format_percent(text, cases[i].share), cases[i].text);
}

TEST(durations)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "0 s"},
        {1, "1 ns"},
        {999, "999 ns"},
        {1000, "1.00 \u00b5s"},
        {13 * 1000, "13.0 \u00b5s"},
        {999499, "999 \u00b5s"},
        {999500, "1.00 ms"}, /* never "1000 us" */
        {26400000, "26.4 ms"},
        {999500000, "1.00 s"},
        {UINT64_C(4630000000), "4.63 s"},
        {UINT64_C(123456000000000), "123456 s"},
    };
    char text[MT_UNITS_TEXT];

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        assert_string_equal(mt_format_duration(text, cases[i].ns), cases[i].text);
}

TEST(parsing)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"512", 512},
        {"512B", 512},
        {"1k", 1024},
        {"20MB", 20 * 1000 * 1000},
        {"9000 MiB", 9000 * MT_MIB},
        {"12GiB", 12 * MT_GIB},
        {"1.5g", MT_GIB + MT_GIB / 2},
        {"0.5KiB", 512},
        {"2TiB", 2048 * MT_GIB},
        {"18446744073709551615", UINT64_MAX},
        {"1,690 MiB", 1690 * MT_MIB},
        {"8,086,618,112 B", UINT64_C(8086618112)},
        {"1,690.5 MiB", 1690 * MT_MIB + MT_MIB / 2},
    };
    uint64_t value;

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        assert_int_equal(mt_parse_bytes(cases[i].text, &value), MT_OK);
        assert_int_equal(value, cases[i].bytes);
    }
}

TEST(parsing_refuses)
{
    static const char *const cases[] = {
        "",
        " ",
        "abc",
        "-1",
        "1x",
        "1 2",
        "0x10",
        "1..5",
        ".5",
        "12GiBs",
        "GiB",
        "12GiB extra",
        "1e9",
        "+5",
        "18446744073709551616",
        "16777216TiB",
        "99999999999999999999",
        "9.5e3",
        "20000000.5TiB",
        "1,69 MiB",
        "1,6900",
        "1690,000",
        ",690",
        "1,,690",
        "1,690,",
        "18,446,744,073,709,551,616",
    };
    uint64_t value;

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        if (mt_parse_bytes(cases[i], &value) != MT_ERR_USAGE)
            fail_msg("'%s' was accepted", cases[i]);
}

static bool is_unit(const char *word)
{
    return mt_units_is_unit(word, strlen(word));
}

/* Every unit that the functions above print. */
TEST(units_are_known)
{
    char text[MT_UNITS_TEXT];

    for (int shift = 0; shift < 64; shift++)
        assert_true(is_unit(strchr(mt_format_bytes(text, UINT64_C(1) << shift), ' ') + 1));
    for (uint64_t ns = 1; ns < UINT64_C(10000000000000); ns *= 10)
        assert_true(is_unit(strchr(mt_format_duration(text, ns), ' ') + 1));
    assert_null(strchr(mt_format_percent(text, 0.5), ' '));
    assert_false(is_unit(""));
    assert_false(is_unit("GiBs"));
    assert_false(is_unit("steps"));
    assert_int_equal(mt_unit_length("GiB, and"), 3);
    assert_int_equal(mt_unit_length("\xC2\xB5s)"), 3);
    assert_int_equal(mt_unit_length("%"), 0);
    assert_int_equal(mt_unit_length("steps"), 0);
    assert_int_equal(mt_unit_length("B2"), 0);
    assert_int_equal(mt_unit_length(""), 0);
}

TEST(estimates_stop_at_the_largest_number)
{
    assert_int_equal(mt_add_most_u64(2, 3), 5);
    assert_int_equal(mt_add_most_u64(UINT64_MAX - 1, 2), UINT64_MAX);
    assert_int_equal(mt_mul_most_u64(2, 3), 6);
    assert_int_equal(mt_mul_most_u64(UINT64_MAX / 2, 3), UINT64_MAX);
}

TEST(rounding)
{
    assert_int_equal(mt_round_up(1, 512), 512);
    assert_int_equal(mt_round_up(512, 512), 512);
    assert_int_equal(mt_round_up(0, 512), 0);
    assert_int_equal(mt_round_down(1023, 512), 512);
    assert_int_equal(mt_log2_floor(1), 0);
    assert_int_equal(mt_log2_floor(UINT64_MAX), 63);
    assert_int_equal(mt_log2_floor(1024), 10);
    assert_int_equal(mt_log2_floor(1023), 9);
}

/* 56.9 GiB next to 56.9 GiB does not show which is less. */
TEST(bytes_apart)
{
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT];

    mt_format_bytes_distinct(one, UINT64_C(61085843456), other, UINT64_C(61096329216));
    assert_string_equal(one, "61,085,843,456 B");
    assert_string_equal(other, "61,096,329,216 B");
    mt_format_bytes_distinct(one, MT_GIB, other, 2 * MT_GIB);
    assert_string_equal(one, "1.00 GiB");
    assert_string_equal(other, "2.00 GiB");
    mt_format_bytes_distinct(one, MT_GIB, other, MT_GIB);
    assert_string_equal(one, "1.00 GiB");
    assert_string_equal(other, "1.00 GiB");
    mt_format_bytes_distinct(one, UINT64_MAX, other, UINT64_MAX - 1);
    assert_string_equal(one, "18,446,744,073,709,551,615 B");
    assert_string_equal(other, "18,446,744,073,709,551,614 B");
}

TEST(parts_have_the_unit_of_their_sum)
{
    char text[MT_UNITS_TEXT];

    assert_string_equal(mt_format_bytes_like(text, 134 * MT_MIB, 9 * MT_GIB), "0.13 GiB");
    assert_string_equal(mt_format_bytes_like(text, MT_MIB, 9 * MT_GIB), "<0.01 GiB");
    assert_string_equal(mt_format_bytes_like(text, 0, 9 * MT_GIB), "0.00 GiB");
    assert_string_equal(mt_format_bytes_like(text, 1370 * MT_MIB, 900 * MT_MIB), "1,370 MiB");
    assert_string_equal(mt_format_bytes_like(text, 40 * MT_GIB, 12 * MT_MIB), "40.0 GiB");
    assert_string_equal(mt_format_bytes_like(text, 512, 100), "512 B");
    assert_string_equal(mt_format_bytes_like(text, UINT64_MAX, UINT64_MAX), "16.0 EiB");
}

/* ascii.h */

TEST(bytes_are_those_of_the_c_locale)
{
    for (int i = 0; i < 256; i++) {
        char c = (char)i;

        assert_int_equal(mt_is_digit(c), isdigit(i) != 0);
        assert_int_equal(mt_is_upper(c), isupper(i) != 0);
        assert_int_equal(mt_is_lower(c), islower(i) != 0);
        assert_int_equal(mt_is_letter(c), isalpha(i) != 0);
        assert_int_equal(mt_is_alnum(c), isalnum(i) != 0);
        assert_int_equal(mt_is_space(c), isspace(i) != 0);
        assert_int_equal((unsigned char)mt_lower(c), tolower(i));
        assert_int_equal(mt_hex_digit(c) >= 0, isxdigit(i) != 0);
    }
    assert_int_equal(mt_hex_digit('7'), 7);
    assert_int_equal(mt_hex_digit('a'), 10);
    assert_int_equal(mt_hex_digit('F'), 15);
}

TEST(beginnings_and_ends)
{
    assert_true(mt_begins_with("libcuda.so", "lib"));
    assert_true(mt_begins_with("lib", "lib"));
    assert_true(mt_begins_with("lib", ""));
    assert_false(mt_begins_with("li", "lib"));
    assert_true(mt_ends_with("run.trace", ".trace"));
    assert_true(mt_ends_with(".trace", ".trace"));
    assert_true(mt_ends_with("", ""));
    assert_false(mt_ends_with("trace", ".trace"));
    assert_false(mt_ends_with("run.trace.zst", ".trace"));
}

TEST(base_names)
{
    assert_string_equal(mt_base_name("/usr/bin/python3"), "python3");
    assert_string_equal(mt_base_name("python3"), "python3");
    assert_string_equal(mt_base_name("folder/"), "");
    assert_string_equal(mt_base_name(""), "");
}

int main(void)
{
    (void)set_german(); /* Without effect; test_render_core tests whether the locale exists. */
    return run_tests_of_file(NULL, NULL);
}
