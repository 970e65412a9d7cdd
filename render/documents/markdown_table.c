#include "markdown_table.h"

#include "escape.h"

void mt_markdown_add_code(struct mt_buf *out, const char *text)
{
    mt_buf_add_text(out, "<code>");
    mt_escape_add_markdown(out, text, MT_MARKDOWN_NAME);
    mt_buf_add_text(out, "</code>");
}

void mt_markdown_add_head(struct mt_buf *out, const struct mt_table *table)
{
    for (size_t i = 0; i < table->column_count; i++)
        mt_buf_printf(out, "| %s%s", table->columns[i].title, *table->columns[i].title ? " " : "");
    mt_buf_add_text(out, "|\n");
    for (size_t i = 0; i < table->column_count; i++)
        mt_buf_add_text(out, table->columns[i].kind == MT_NUMBER ? "|--:" : "|---");
    mt_buf_add_text(out, "|\n");
}

void mt_markdown_add_row(struct mt_buf *out, const struct mt_table *table, size_t row)
{
    const struct mt_table_cell *cells = &table->cells[row * table->column_count];

    for (size_t i = 0; i < table->column_count; i++) {
        mt_buf_add_text(out, "| ");
        if (mt_cell_is_number(&cells[i]))
            mt_add_number(out, &cells[i]);
        else if (cells[i].type == MT_TABLE_SITE)
            mt_markdown_add_code(out, cells[i].text);
        else
            mt_escape_add_markdown(out, cells[i].text,
                                   cells[i].type == MT_TABLE_SENTENCE ? MT_MARKDOWN_SENTENCE
                                                                      : MT_MARKDOWN_NAME);
        mt_buf_add_char(out, ' ');
    }
    mt_buf_add_text(out, "|\n");
}

void mt_markdown_add_marker(struct mt_buf *out, const char *program, const char *name)
{
    mt_buf_printf(out, "<!-- %s:", program);
    for (size_t i = 0; name[i] && i < MT_MARKDOWN_NAME; i++) {
        bool keep = (name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'z') ||
                    (name[i] >= 'A' && name[i] <= 'Z');
        mt_buf_add_char(out, keep ? name[i] : '_');
    }
    mt_buf_add_text(out, " -->\n");
}
