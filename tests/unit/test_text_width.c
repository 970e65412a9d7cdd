/* Columns of a terminal, compared with the C library. */
#define _GNU_SOURCE 1
#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "cmocka_all.h"
#include "text_width.h"

static size_t columns(const char *text)
{
    return mt_text_columns(text, strlen(text));
}

TEST(letters_take_their_columns)
{
    assert_int_equal(columns(""), 0);
    assert_int_equal(columns("train.py:58"), 11);
    assert_int_equal(columns("größe"), 5);
    assert_int_equal(columns("e\xCC\x81t"), 2); /* a combining acute accent */
    assert_int_equal(columns("訓練.py"), 7);
    assert_int_equal(columns("훈련"), 4);
    assert_int_equal(columns("🚀x"), 3);
    assert_int_equal(columns("⏳🏠👀🟢🛒"), 10);
    assert_int_equal(columns("\xD7\xA9\xD6\xB8\xD7\x81"), 1); /* a letter with a diaeresis */
    assert_int_equal(columns("a\xFF"
                             "b\xE8\xA8"),
                     5); /* bytes that are no UTF-8 */
}

TEST(ends_are_cut_between_letters)
{
    static const char text[] = "訓練ab";

    assert_int_equal(mt_text_head(text, strlen(text), 3), 3);
    assert_int_equal(mt_text_head(text, strlen(text), 4), 6);
    assert_int_equal(mt_text_head(text, strlen(text), 99), 8);
    assert_int_equal(mt_text_tail(text, strlen(text), 3), 6);
    assert_int_equal(mt_text_tail(text, strlen(text), 4), 3);
    assert_int_equal(mt_text_tail(text, strlen(text), 99), 0);
    assert_int_equal(mt_text_head("e\xCC\x81t", 4, 1), 3);
    assert_int_equal(mt_text_tail("e\xCC\x81t", 4, 1), 3);
}

static void encode(uint32_t letter, char text[8])
{
    size_t bytes = letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;

    text[bytes] = '\0';
    for (size_t i = bytes; --i; letter >>= 6)
        text[i] = (char)(0x80 | (letter & 0x3F));
    text[0] = (char)((0xF00 >> bytes & 0xFF) | letter);
}

/* Scripts in which people write code and comments, except the trigrams and digrams U+2630 to U+2637
 * and U+268A to U+268F, which Unicode 16 made wide. */
TEST(widths_equal_those_of_the_library)
{
    static const struct {
        uint32_t first, last;
    } blocks[] = {{0xA1, 0xAC},       {0xAE, 0x17F},      {0x300, 0x36F},   {0x391, 0x3A1},
                  {0x410, 0x44F},     {0x3041, 0x3096},   {0x30A0, 0x30FF}, {0x4E00, 0x9FA5},
                  {0xAC00, 0xD7A3},   {0xFF01, 0xFF60},   {0xFF61, 0xFF9F}, {0x1F600, 0x1F64F},
                  {0x2500, 0x259F},   {0x20000, 0x200FF}, {0x2600, 0x262F}, {0x2638, 0x2689},
                  {0x2690, 0x26FF},   {0x5D0, 0x5EA},     {0x5BF, 0x5BF},   {0x670, 0x670},
                  {0x1F3CF, 0x1F3F0}, {0x1F7E0, 0x1F7EB}};
    char text[8];

    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (uint32_t letter = blocks[i].first; letter <= blocks[i].last; letter++) {
            encode(letter, text);
            if ((int)columns(text) != wcwidth((wchar_t)letter))
                fail_msg("U+%04X: %zu columns, the library says %d", letter, columns(text),
                         wcwidth((wchar_t)letter));
        }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
