/* Every character beyond ASCII that memtrace writes has an ASCII form of the same width. */
#include "cmocka_all.h"

#include <string.h>

#include "message.h"
#include "text_width.h"
#include "units.h"

static void expect(const char *text, const char *ascii)
{
    struct mt_buf out = {0};

    mt_message_add_ascii(&out, text, strlen(text));
    assert_int_equal(out.length, strlen(ascii));
    assert_memory_equal(out.length ? out.data : "", ascii, out.length);
    assert_int_equal(mt_text_columns(text, strlen(text)), strlen(ascii));
    mt_buf_release(&out);
}

TEST(numbers_are_written_in_ascii)
{
    char text[MT_UNITS_TEXT];

    expect(mt_format_change(text, -5 * 1024), "-5.00 KiB");
    expect(mt_format_change(text, 0), "+0");
    expect(mt_format_duration(text, 13000), "13.0 us");
    expect("24 × 9.00 MiB", "24 x 9.00 MiB");
    expect("forward of w_accu… train.py:3", "forward of w_accu~ train.py:3");
    expect("36 → 24", "36 ->24");
}

/* Also a character that is cut at the end of the text. */
TEST(other_text_is_kept)
{
    struct mt_buf out = {0};

    expect("", "");
    expect("plain", "plain");
    mt_message_add_ascii(&out,
                         "gr\xC3\xB6\xC3\x9F"
                         "e −\xE2\x88",
                         12);
    assert_int_equal(out.length, 10);
    assert_memory_equal(out.data,
                        "gr\xC3\xB6\xC3\x9F"
                        "e -\xE2",
                        10);
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
