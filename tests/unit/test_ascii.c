/* Letters, digits, and the beginnings and ends of texts. */
#include "cmocka_all.h"

#include <ctype.h>
#include <string.h>

#include "ascii.h"

TEST(bytes_are_those_of_the_c_locale)
{
    for (int i = 0; i < 256; i++) {
        char c = (char)i;

        assert_int_equal(mt_is_digit(c), isdigit(i) != 0);
        assert_int_equal(mt_is_upper(c), isupper(i) != 0);
        assert_int_equal(mt_is_lower(c), islower(i) != 0);
        assert_int_equal(mt_is_letter(c), isalpha(i) != 0);
        assert_int_equal(mt_is_alnum(c), isalnum(i) != 0);
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
    return run_tests_of_file(NULL, NULL);
}
