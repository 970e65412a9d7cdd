#include "text_table.h"

#include "site.h"

#include <string.h>

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static size_t columns_in(const char *text, size_t length)
{
    size_t columns = 0;

    for (size_t i = 0; i < length; i++)
        columns += begins_character(text[i]);
    return columns;
}

static size_t columns_of(const char *text)
{
    return columns_in(text, strlen(text));
}

/* Byte offset of character number `column`. */
static size_t offset_of(const char *text, size_t column)
{
    size_t at = 0;

    while (text[at] && (column || !begins_character(text[at]))) {
        at++;
        if (begins_character(text[at]))
            column--;
    }
    return at;
}

static void pad(struct mt_buf *out, size_t count)
{
    for (; count; count--)
        mt_buf_add_char(out, ' ');
}

/* Bytes at the end of `text` that say where: " modeling_llama.py:175"; 0 if it ends
 * otherwise, or if they leave no room for what is before them. */
static size_t place_length(const char *text, size_t end, size_t columns)
{
    size_t at = end;

    while (at && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    if (at == end || !at || text[at - 1] != ':')
        return 0;
    while (at && text[at - 1] != ' ')
        at--;
    return at && 3 * columns_in(text + at - 1, end - at + 1) <= 2 * columns ? end - at + 1 : 0;
}

/* Shortens, if need be. Of a site first the user's place goes, then the end of the
 * function's name; other text loses its middle. */
static void add_middle(struct mt_buf *out, const char *text, size_t columns, bool is_site)
{
    size_t length = columns_of(text), end = strlen(text), tail;

    if (length > columns && is_site) {
        end = mt_site_label_head(text);
        length = columns_in(text, end);
    }
    if (length <= columns) {
        mt_buf_add(out, text, end);
        return;
    }
    if (columns == 0)
        return;
    tail = place_length(text, end, columns);
    if (!tail)
        tail = end - offset_of(text, length - columns / 2);
    mt_buf_add(out, text, offset_of(text, columns - 1 - columns_in(text + end - tail, tail)));
    mt_buf_add_text(out, "…");
    mt_buf_add(out, text + end - tail, tail);
}

void mt_add_shortened(struct mt_buf *out, const char *text, size_t columns)
{
    struct mt_buf safe = {0};

    mt_buf_add_printable_text(&safe, text);
    if (safe.data)
        add_middle(out, safe.data, columns, false);
    out->failed |= safe.failed;
    mt_buf_release(&safe);
}

void mt_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent)
{
    size_t screen = mt_stdout_screen().columns;
    size_t most = screen < MT_TEXT_COLUMNS ? screen : MT_TEXT_COLUMNS;
    struct mt_buf safe = {0};
    bool first = true;
    const char *at;

    mt_buf_add_printable_text(&safe, text);
    for (at = safe.data; at && *at; at += *at == ' ') {
        size_t length = strcspn(at, " "), columns = 0;

        for (size_t i = 0; i < length; i++)
            columns += begins_character(at[i]);
        if (!first && column + 1 + columns > most) {
            mt_buf_add_char(out, '\n');
            pad(out, indent);
            column = indent;
        } else if (!first) {
            mt_buf_add_char(out, ' ');
            column++;
        }
        mt_buf_add(out, at, length);
        column += columns;
        at += length;
        first = false;
    }
    out->failed |= safe.failed;
    mt_buf_release(&safe);
}

/* Titles, then cells, each with a NUL at its end. */
static void add_words(struct mt_buf *words, const struct mt_table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        mt_buf_add_printable_text(words, table->columns[i].title);
        mt_buf_add_char(words, '\0');
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        if (mt_cell_is_number(&table->cells[i]))
            mt_add_number(words, &table->cells[i]);
        else
            mt_buf_add_printable_text(words, table->cells[i].text);
        mt_buf_add_char(words, '\0');
    }
}

#define MIN_WIDTH 8 /* of a column that gave way */

/* Takes from a column what is too much; returns what is left to be taken. */
static size_t give_way(size_t *width, size_t too_much)
{
    size_t gives = *width > MIN_WIDTH ? *width - MIN_WIDTH : 0;

    gives = gives < too_much ? gives : too_much;
    *width -= gives;
    return too_much - gives;
}

/* First those that are there for it, then, in a terminal, which would break the
 * lines, other words; numbers never. */
static void fit(const struct mt_table *table, size_t *widths, size_t total)
{
    const struct mt_screen screen = mt_stdout_screen();
    size_t too_much = total > screen.columns ? total - screen.columns : 0;

    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].kind == MT_NAME)
            too_much = give_way(&widths[i], too_much);
    for (size_t i = 0; i < table->column_count && screen.is_terminal; i++)
        if (table->columns[i].kind != MT_NUMBER)
            too_much = give_way(&widths[i], too_much);
}

static void measure(const struct mt_table *table, const char *words, unsigned indent,
                    size_t *widths)
{
    size_t total = indent;

    for (size_t i = 0; i < table->column_count + table->cell_count; i++) {
        size_t *width = &widths[i % table->column_count], wide = columns_of(words);

        *width = wide > *width ? wide : *width;
        words += strlen(words) + 1;
    }
    for (size_t i = 0; i < table->column_count; i++)
        total += widths[i] + (i ? 2 : 0);
    fit(table, widths, total);
}

/* Returns the words of the next row. */
static const char *add_row(const struct mt_table *table, const size_t *widths,
                           const struct mt_table_cell *cells, const char *words, struct mt_buf *out)
{
    for (size_t i = 0; i < table->column_count; i++) {
        bool is_right = table->columns[i].kind == MT_NUMBER;
        size_t columns = columns_of(words);
        size_t room = columns < widths[i] ? widths[i] - columns : 0;

        pad(out, (i ? 2 : 0) + (is_right ? room : 0));
        add_middle(out, words, widths[i], cells && cells[i].type == MT_TABLE_SITE);
        if (!is_right && i + 1 < table->column_count)
            pad(out, room);
        words += strlen(words) + 1;
    }
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    return words;
}

/* The user's places that had no room in the column of sites, each once. */
struct callers {
    const char *places[3];
    size_t count;
    bool more;
};

static void add_caller(struct callers *callers, const char *place)
{
    for (size_t i = 0; i < callers->count; i++)
        if (!strcmp(callers->places[i], place))
            return;
    if (callers->count == MT_ARRAY_LEN(callers->places))
        callers->more = true;
    else
        callers->places[callers->count++] = place;
}

static struct callers find_callers(const struct mt_table *table, const size_t *widths,
                                   const char *words)
{
    struct callers callers = {0};

    for (size_t i = 0; i < table->column_count; i++)
        words += strlen(words) + 1;
    for (size_t i = 0; i < table->cell_count; i++) {
        const char *place = mt_site_label_own(words);

        if (place && table->cells[i].type == MT_TABLE_SITE &&
            columns_of(words) > widths[i % table->column_count])
            add_caller(&callers, place);
        words += strlen(words) + 1;
    }
    return callers;
}

/* "called from train.py:13 and train.py:20" */
static void add_callers(struct mt_buf *out, const struct callers *callers, unsigned indent,
                        const struct mt_style *style)
{
    struct mt_buf line = {0};

    for (size_t i = 0; i < callers->count; i++) {
        bool is_last = i + 1 == callers->count && !callers->more;

        mt_buf_add_text(&line, i == 0 ? "called from " : is_last ? " and " : ", ");
        mt_buf_add_text(&line, callers->places[i]);
    }
    if (callers->more)
        mt_buf_add_text(&line, " and others");
    if (line.data) {
        pad(out, indent);
        mt_buf_add_text(out, style->dim);
        mt_add_wrapped(out, line.data, indent, indent + 2);
        mt_buf_add_text(out, style->reset);
        mt_buf_add_char(out, '\n');
    }
    out->failed |= line.failed;
    mt_buf_release(&line);
}

void mt_add_text_table(struct mt_buf *out, struct mt_table *table, unsigned indent,
                       const struct mt_style *style)
{
    size_t widths[MT_TABLE_COLUMNS] = {0}, rows = mt_table_rows(table);
    struct mt_buf words = {0};
    struct callers callers;
    const char *at;

    add_words(&words, table);
    out->failed |= words.failed || table->failed;
    if (rows && !out->failed) {
        measure(table, words.data, indent, widths);
        mt_buf_add_text(out, style->dim);
        pad(out, indent);
        at = add_row(table, widths, NULL, words.data, out);
        mt_buf_add_text(out, style->reset);
        mt_buf_add_char(out, '\n');
        for (size_t i = 0; i < rows; i++) {
            pad(out, indent);
            at = add_row(table, widths, &table->cells[i * table->column_count], at, out);
            mt_buf_add_char(out, '\n');
        }
        callers = find_callers(table, widths, words.data);
        add_callers(out, &callers, indent, style);
    }
    mt_buf_release(&words);
    mt_table_release(table);
}
