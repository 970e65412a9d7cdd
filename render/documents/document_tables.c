/* Tables of documents, as HTML and as Markdown. A cell of HTML with a number has the exact value in
 * the attribute data-v, so that a script can sort the rows. */
#include <string.h>

#include "document_tables.h"
#include "escape.h"
#include "table.h"
#include "units.h"

void mt_page_add_name(struct mt_buf *out, const char *name)
{
    struct mt_buf cut = {0};
    size_t length = strlen(name);

    if (length <= MT_PAGE_NAME_BYTES) {
        mt_escape_add_xml(out, name);
        return;
    }
    for (length = MT_PAGE_NAME_BYTES; length && ((unsigned char)name[length] & 0xC0) == 0x80;)
        length--;
    mt_buf_add(&cut, name, length);
    mt_escape_add_xml(out, cut.data ? cut.data : "");
    mt_buf_add_text(out, "\xE2\x80\xA6");
    mt_buf_release(&cut);
}

/* Returns the length up to a blank, or up to a character after which a word may be broken. */
static size_t piece_length(const char *text)
{
    size_t length = strcspn(text, " =,");

    return length + (text[length] == '=' || text[length] == ',');
}

void mt_page_add_command(struct mt_buf *out, const char *command)
{
    struct mt_buf piece = {0};
    bool in_word = false;

    mt_buf_add_text(out, "<code>");
    while (*command) {
        size_t length = piece_length(command);

        mt_buf_add_text(out, !length ? "" : in_word ? "<wbr>" : "<span class=\"word\">");
        mt_buf_reset(&piece);
        mt_buf_add(&piece, command, length);
        mt_escape_add_xml_line(out, piece.data ? piece.data : "");
        in_word = in_word || length;
        command += length;
        if (in_word && (*command == ' ' || !*command)) {
            mt_buf_add_text(out, "</span>");
            in_word = false;
        }
        for (; *command == ' '; command++)
            mt_buf_add_char(out, ' ');
    }
    mt_buf_add_text(out, "</code>");
    mt_buf_release(&piece);
}

static void add_number(struct mt_buf *out, const struct mt_table_cell *cell)
{
    bool is_signed = cell->type == MT_TABLE_CHANGE || cell->type == MT_TABLE_INTEGER;
    char exact[MT_UNITS_TEXT];

    mt_buf_add_text(out, "<td class=\"number\" data-v=\"");
    if (is_signed)
        mt_buf_add_i64(out, (int64_t)cell->number);
    else
        mt_buf_add_u64(out, cell->number);
    mt_buf_add_char(out, '"');
    if (cell->type == MT_TABLE_BYTES)
        mt_buf_printf(out, " title=\"%s B\"", mt_format_count(exact, cell->number));
    mt_buf_add_char(out, '>');
    mt_add_number(out, cell);
}

static void add_cell(struct mt_buf *out, const struct mt_table_cell *cell)
{
    if (mt_cell_is_number(cell)) {
        add_number(out, cell);
    } else {
        mt_buf_add_text(out, cell->type == MT_TABLE_SITE ? "<td class=\"site\">" : "<td>");
        mt_page_add_name(out, cell->text);
    }
    mt_buf_add_text(out, "</td>");
}

static void add_head(struct mt_buf *out, const struct mt_table *table,
                     const struct mt_html_table *html)
{
    mt_buf_printf(out, "<div class=\"scroll\"><table class=\"%s\" id=\"%s-%u\"><thead><tr>",
                  html->kind, html->name, html->device);
    for (size_t i = 0; i < table->column_count; i++)
        mt_buf_printf(out, "<th scope=\"col\"%s>%s</th>",
                      table->columns[i].kind == MT_NUMBER ? " class=\"number\"" : "",
                      table->columns[i].title);
    mt_buf_add_text(out, "</tr></thead>\n<tbody>\n");
}

void mt_html_table_add(struct mt_buf *out, struct mt_table *table, const struct mt_html_table *html)
{
    add_head(out, table, html);
    for (size_t i = 0; i < table->cell_count; i++) {
        if (i % table->column_count == 0)
            mt_buf_add_text(out, "<tr>");
        add_cell(out, &table->cells[i]);
        if ((i + 1) % table->column_count == 0)
            mt_buf_add_text(out, "</tr>\n");
    }
    mt_buf_add_text(out, "</tbody></table></div>\n");
    if (html->omitted)
        mt_buf_printf(out, "<p class=\"omitted\">%llu rows omitted</p>\n",
                      (unsigned long long)html->omitted);
    mt_table_release(table);
}

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
