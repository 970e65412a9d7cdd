/* One table in each output format. */
#include "cmocka_all.h"

#include <string.h>

#include "document_tables.h"
#include "text_table.h"

static void fill(struct mt_table *table)
{
    mt_table_begin(table, "#bytes|#change|#share");
    mt_table_columns(table, "role|~site");
    MT_CELLS(table, MT_BYTES(1024), MT_CHANGE(-2048), MT_SHARE(1, 4), MT_TEXT("a<b"),
             MT_SITE("x|y"));
    mt_table_skip(table, 2);
    MT_CELLS(table, MT_TIME(5, 3), MT_INTEGER(-1234), MT_CHANGE_OF(1024, 3072));
}

static void expect(struct mt_buf *out, const char *wanted)
{
    assert_false(out->failed);
    assert_string_equal(out->data, wanted);
    mt_buf_release(out);
}

TEST(text_has_columns)
{
    struct mt_buf out = {0};
    struct mt_table table;

    fill(&table);
    mt_text_table_add(&out, &table, 2, mt_plain_style());
    expect(&out, "     bytes     change  share  role   site\n"
                 "  1.00 KiB  −2.00 KiB  25.0%  a<b    x|y\n"
                 "                         0 s  -1234  +2.00 KiB (+200%)\n");
}

TEST(a_page_has_exact_numbers)
{
    const struct mt_html_table html = {"sortable", "name", 3, 7};
    struct mt_buf out = {0};
    struct mt_table table;

    fill(&table);
    mt_html_table_add(&out, &table, &html);
    expect(&out, "<div class=\"scroll\"><table class=\"sortable\" id=\"name-3\"><thead><tr>"
                 "<th scope=\"col\" class=\"number\">bytes</th>"
                 "<th scope=\"col\" class=\"number\">change</th>"
                 "<th scope=\"col\" class=\"number\">share</th><th scope=\"col\">role</th>"
                 "<th scope=\"col\">site</th></tr></thead>\n<tbody>\n"
                 "<tr><td class=\"number\" data-v=\"1024\" title=\"1,024 B\">1.00 KiB</td>"
                 "<td class=\"number\" data-v=\"-2048\">−2.00 KiB</td>"
                 "<td class=\"number\" data-v=\"1\">25.0%</td><td>a&lt;b</td>"
                 "<td class=\"site\">x|y</td></tr>\n"
                 "<tr><td></td><td></td><td class=\"number\" data-v=\"0\">0 s</td>"
                 "<td class=\"number\" data-v=\"-1234\">-1234</td>"
                 "<td class=\"number\" data-v=\"2048\">+2.00 KiB (+200%)</td></tr>\n"
                 "</tbody></table></div>\n<p class=\"omitted\">7 rows omitted</p>\n");
}

TEST(markdown_cannot_end_a_cell)
{
    struct mt_buf out = {0};
    struct mt_table table;

    fill(&table);
    mt_markdown_add_head(&out, &table);
    mt_markdown_add_row(&out, &table, 0);
    mt_table_release(&table);
    expect(&out, "| bytes | change | share | role | site |\n"
                 "|--:|--:|--:|---|---|\n"
                 "| 1.00 KiB | −2.00 KiB | 25.0% | a&#60;b | <code>x&#124;y</code> |\n");
}

TEST(without_rows_there_is_no_text)
{
    struct mt_buf out = {0};
    struct mt_table table;

    mt_table_begin(&table, "a|b");
    mt_text_table_add(&out, &table, 2, mt_plain_style());
    assert_int_equal(out.length, 0);
    mt_buf_release(&out);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
