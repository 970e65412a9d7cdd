/* Text in lines of 100 columns: numbers stay with their units, and a note of any length is
 * complete. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "text_table.h"
#include "units.h"

/* Wherever the line ends. */
static void expect_unbroken(const char *number)
{
    char broken[MT_UNITS_TEXT];

    snprintf(broken, sizeof broken, "%s", number);
    *strrchr(broken, ' ') = '\n';
    for (size_t column = 0; column < MT_TEXT_COLUMNS; column++) {
        struct mt_buf out = {0}, text = {0};

        mt_buf_printf(&text, "at %s", number);
        mt_text_table_add_wrapped(&out, text.data, column, 0);
        mt_buf_add_char(&out, '\0');
        assert_null(strstr(out.data, broken));
        mt_buf_release(&text);
        mt_buf_release(&out);
    }
}

TEST(a_number_stays_with_its_unit)
{
    char text[MT_UNITS_TEXT];

    expect_unbroken(mt_format_duration(text, 13000));
    expect_unbroken(mt_format_bytes(text, UINT64_C(1) << 60));
    expect_unbroken(mt_format_bytes(text, 12345));
}

TEST(a_note_is_not_cut)
{
    struct mt_buf words = {0}, out = {0};
    size_t count = 0;

    for (int i = 0; i < 1000; i++)
        mt_buf_add_text(&words, "word ");
    mt_buf_add_char(&words, '\0');
    mt_text_table_add_note(&out, 2, "%s", words.data);
    mt_buf_add_char(&out, '\0');
    for (const char *at = out.data; (at = strstr(at, "word")); at++)
        count++;
    assert_int_equal(count, 1000);
    mt_buf_release(&words);
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
