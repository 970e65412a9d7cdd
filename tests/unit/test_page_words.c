/* Sentences of the page: every part is escaped, and numbers stay with their units. */
#include "cmocka_all.h"

#include <string.h>

#include "page_head.h"

#define QUANTITY(text) "<span class=\"quantity\">" text "</span>"

static void expect(const char *words, const char *wanted)
{
    struct mt_buf out = {0};

    mt_page_add_words(&out, words);
    assert_false(out.failed);
    assert_string_equal(out.data ? out.data : "", wanted);
    mt_buf_release(&out);
}

TEST(numbers_keep_their_units)
{
    expect("", "");
    expect("7.47 GiB", QUANTITY("7.47 GiB"));
    expect("a 43.1%, b 114 ms (1,024 B)",
           "a 43.1%, b " QUANTITY("114 ms") " (" QUANTITY("1,024 B") ")");
    expect("13 \xC2\xB5s.", QUANTITY("13 \xC2\xB5s") ".");
}

TEST(other_numbers_are_words)
{
    expect("4 Blocks in 12 steps", "4 Blocks in 12 steps");
    expect("layer12 B", "layer12 B"); /* a name */
    expect("12  B", "12  B");
    expect("12 ", "12 ");
    expect("3 GiB_x", "3 GiB_x");
}

TEST(all_pieces_are_escaped)
{
    expect("<b>3 GiB</b> & 2%\"", "&lt;b&gt;" QUANTITY("3 GiB") "&lt;/b&gt; &amp; 2%&quot;");
    expect("\xC3\xB6 1 B\xE2\x80\xA6", "\xC3\xB6 " QUANTITY("1 B") "\xE2\x80\xA6");
}

TEST(long_texts_are_cut)
{
    char words[1000];
    struct mt_buf out = {0};

    memset(words, '1', sizeof words);
    words[sizeof words - 1] = '\0';
    mt_page_add_words(&out, words);
    assert_in_range(out.length, 1, 300);
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
