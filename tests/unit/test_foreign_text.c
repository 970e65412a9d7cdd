/* Which characters of foreign text are shown unchanged. */
#include "cmocka_all.h"

#include <string.h>

#include "foreign_text.h"

static void expect_printable(const char *text, size_t length, const char *shown)
{
    struct mt_buf out = {0};

    mt_buf_add_printable(&out, text, length);
    mt_buf_add_text(&out, "");
    assert_string_equal(out.data, shown);
    mt_buf_release(&out);
}

TEST(deceptive_characters_are_escaped)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"", ""},
        {"forward train.py:47", "forward train.py:47"},
        {"a\n\t\x1b[2J\x7f", "a\\x0a\\x09\\x1b[2J\\x7f"},
        {"\xC2\x9B[31m \xC2\xA0", "\\u009b[31m \xC2\xA0"}, /* CSI; a no-break space stays */
        {"a\xE2\x80\xAEgnp.exe", "a\\u202egnp.exe"},       /* right-to-left override */
        {"\xE2\x81\xA6x\xE2\x81\xA9", "\\u2066x\\u2069"},  /* isolates */
        {"\xE2\x80\xA8\xE2\x80\xA9", "\\u2028\\u2029"},    /* line, paragraph separator */
        {"\xE2\x80\xA7\xE2\x80\xAF\xE2\x80\xA6", "\xE2\x80\xA7\xE2\x80\xAF\xE2\x80\xA6"},
        {"a\xE2\x80\x8B\xEF\xBB\xBF\xC2\xAD", "a\\u200b\\ufeff\\u00ad"}, /* invisible characters */
        {"\xF3\xA0\x81\xA1", "\\U000e0061"},                             /* tag a */
        {"\xF0\x9F\x98\x80 caf\xC3\xA9 \xE6\x97\xA5", "\xF0\x9F\x98\x80 caf\xC3\xA9 \xE6\x97\xA5"},
        {"\xE2\x9D\xA4\xEF\xB8\x8F", "\xE2\x9D\xA4\xEF\xB8\x8F"}, /* an emoji's selector */
        {"\xEF\xBF\xBE\xF0\x9F\xBF\xBF", "\\ufffe\\U0001ffff"},
        {"\xFF\xC3(\xC0\xAF", "\\xff\\xc3(\\xc0\\xaf"},
        {"\xED\xA0\x80\xF4\x90\x80\x80\xE2\x82", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xe2\\x82"},
        {"\xEF\xBF\xBD", "\xEF\xBF\xBD"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_printable(cases[i].text, strlen(cases[i].text), cases[i].shown);
    expect_printable("a\0b", 3, "a\\x00b");
    expect_printable("\xE2\x80\xAE", 2, "\\xe2\\x80"); /* nothing is read after the end */
}

TEST(commands_of_ci_systems_are_broken)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"##[error]x", "#\\x23[error]x"},
        {"a##vso[task]", "a#\\x23vso[task]"},
        {"###[group]", "##\\x23[group]"},
        {"##teamcity[x]", "#\\x23teamcity[x]"},
        {"##", "#\\x23"}, /* later output may begin with '[' */
        {"## a comment", "## a comment"},
        {"a#b##c d", "a#b##c d"},
        {"::set-output name=x::y", "\\x3a:set-output name=x::y"},
        {"  ::error::x", "  \\x3a:error::x"},
        {"x ::warning::y", "x \\x3a:warning::y"}, /* a wrapped line may begin with it */
        {"\n::error::x", "\\x0a\\x3a:error::x"},
        {"\u00A0::error::x", "\u00A0\\x3a:error::x"}, /* white space for GitHub's runner */
        {"\u3000::error::x", "\u3000\\x3a:error::x"},
        {"at::native::add", "at::native::add"},
        {":", ":"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_printable(cases[i].text, strlen(cases[i].text), cases[i].shown);
}

/* Every code point matches at most one rule; characters that are shown are copied. */
TEST(every_code_point)
{
    uint32_t shown = 0, code = 0;

    for (uint32_t i = 0; i <= 0x10FFFF; i++) {
        struct mt_buf text = {0};
        struct mt_foreign_char c;
        char escape[MT_FOREIGN_ESCAPE];

        if (i >= 0xD800 && i < 0xE000)
            continue;
        mt_buf_add_utf8(&text, i);
        assert_int_equal(mt_utf8_read(text.data, text.length, &code), text.length);
        assert_int_equal(code, i);
        struct mt_foreign_text foreign = mt_foreign_text(text.data, text.length);
        assert_true(mt_foreign_next(&foreign, &c));
        assert_int_equal(c.code, i);
        assert_int_equal(c.length, text.length);
        size_t length = mt_foreign_escape(&c, escape);
        assert_int_equal(length, strlen(escape));
        assert_false(mt_foreign_next(&foreign, &c));
        shown += c.is_shown;
        mt_buf_release(&text);
    }
    assert_int_equal(shown, 0x110000 - 0x800 - 4323);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
