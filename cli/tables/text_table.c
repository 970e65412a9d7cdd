/* Tables and wrapped text for terminals. */
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "cli.h"
#include "site.h"
#include "table.h"
#include "text_table.h"
#include "text_width.h"
#include "units.h"

/* Computes the widths of a table's columns for standard output.
 *
 * A table that is wider than the terminal becomes narrower in these steps, until it fits:
 *
 * 1. Titles take several lines. 2. Sites lose the user's place. 3. Names are shortened, then other
 * words. 4. A key ("!"), which is never shortened, gets lines of its own. 5. Sites are shortened.
 *
 * If the output is not a terminal, lines have at most 100 columns, and only names and sites are
 * shortened. */

struct table_layout {
    size_t widths[MT_TABLE_COLUMNS];
    const char *titles;  /* borrowed; each ends with a NUL */
    size_t columns;      /* width of the terminal, or 100 */
    bool splits_titles;  /* titles that are wider than their column break at spaces */
    size_t apart;        /* column that gets lines of its own; MT_TABLE_COLUMNS = none */
    size_t room_columns; /* if `apart` is the last column: the room for it at the end of its row;
                            else 0 */
};

enum { MIN_WIDTH = 8, MIN_SITE_WIDTH = 20, GAP = 2 };

/* Natural and minimal widths of a column. */
struct demand {
    size_t cells;      /* widest cell */
    size_t heads;      /* widest cell, for sites without the user's place */
    size_t title;      /* title in one line */
    size_t title_word; /* longest word of the title */
    bool is_site;
};

static size_t longest_word(const char *title)
{
    size_t most = 0;

    for (const char *at = title; *at; at += *at == ' ') {
        size_t length = strcspn(at, " ");

        most = mt_max_u64(most, mt_text_columns(at, length));
        at += length;
    }
    return most;
}

static void add_demand(struct demand *demand, const struct mt_table_cell *cell, const char *words)
{
    size_t length = strlen(words);
    bool is_site = cell->type == MT_TABLE_SITE;

    demand->is_site |= is_site;
    demand->cells = mt_max_u64(demand->cells, mt_text_columns(words, length));
    if (is_site)
        length = mt_site_label_head(words);
    demand->heads = mt_max_u64(demand->heads, mt_text_columns(words, length));
}

static void find_demands(const struct mt_table *table, const char *words, struct demand *demands)
{
    for (size_t i = 0; i < table->column_count; i++, words += strlen(words) + 1) {
        demands[i] = (struct demand){.title = mt_text_columns(words, strlen(words)),
                                     .title_word = longest_word(words)};
    }
    for (size_t i = 0; i < table->cell_count; i++, words += strlen(words) + 1)
        add_demand(&demands[i % table->column_count], &table->cells[i], words);
}

static size_t total(const struct table_layout *layout, const struct mt_table *table, size_t indent)
{
    size_t columns = indent, shown = 0;

    for (size_t i = 0; i < table->column_count; i++)
        if (i != layout->apart)
            columns += layout->widths[i] + (shown++ ? GAP : 0);
    return columns;
}

/* Narrows a column by at most `too_much`. Returns the rest of `too_much`. */
static size_t give_way(size_t *width, size_t least, size_t too_much)
{
    size_t gives = mt_min_u64(mt_sub_or_0_u64(*width, least), too_much);

    *width -= gives;
    return too_much - gives;
}

static void be_natural(struct table_layout *layout, const struct mt_table *table,
                       const struct demand *demands)
{
    for (size_t i = 0; i < table->column_count; i++)
        layout->widths[i] = mt_max_u64(
            demands[i].cells, layout->splits_titles ? demands[i].title_word : demands[i].title);
}

/* Fits a table for output that is not a terminal. */
static void fit_page(struct table_layout *layout, const struct mt_table *table,
                     const struct demand *demands, size_t too_much)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].kind == MT_NAME ||
            (table->columns[i].kind == MT_KEY && demands[i].is_site))
            too_much = give_way(&layout->widths[i], MIN_WIDTH, too_much);
}

/* Shortens columns of one kind, except sites and the separate column. Always shortens the widest
 * column, so that short words stay complete. */
static size_t shorten_words(struct table_layout *layout, const struct mt_table *table,
                            const struct demand *demands, enum mt_column_kind kind, size_t too_much)
{
    size_t *widest, least = MIN_WIDTH;

    for (; too_much; too_much--, --*widest) {
        widest = &least;
        for (size_t i = 0; i < table->column_count; i++)
            if (table->columns[i].kind == kind && !demands[i].is_site && i != layout->apart &&
                layout->widths[i] > *widest)
                widest = &layout->widths[i];
        if (widest == &least)
            break;
    }
    return too_much;
}

/* Narrows columns without shortening sites. Returns by how many characters the table is still too
 * wide. */
static size_t fit_columns(struct table_layout *layout, const struct mt_table *table,
                          const struct demand *demands, size_t indent)
{
    be_natural(layout, table, demands);
    size_t too_much = mt_sub_or_0_u64(total(layout, table, indent), layout->columns);
    for (size_t i = 0; i < table->column_count; i++)
        if (demands[i].is_site && table->columns[i].kind != MT_KEY)
            too_much = give_way(&layout->widths[i],
                                mt_max_u64(demands[i].heads, demands[i].title_word), too_much);
    too_much = shorten_words(layout, table, demands, MT_NAME, too_much);
    return shorten_words(layout, table, demands, MT_WORDS, too_much);
}

static size_t shorten_sites(struct table_layout *layout, const struct mt_table *table,
                            const struct demand *demands, size_t least, size_t too_much)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (demands[i].is_site && table->columns[i].kind != MT_KEY)
            too_much = give_way(&layout->widths[i], least, too_much);
    return too_much;
}

static void fit_terminal(struct table_layout *layout, const struct mt_table *table,
                         const struct demand *demands, size_t indent)
{
    layout->splits_titles = true;
    size_t too_much = fit_columns(layout, table, demands, indent);
    for (size_t i = 0; too_much && i < table->column_count; i++)
        if (table->columns[i].kind == MT_KEY) {
            layout->apart = i;
            too_much = fit_columns(layout, table, demands, indent);
            break;
        }
    too_much = shorten_sites(layout, table, demands, MIN_SITE_WIDTH, too_much);
    (void)shorten_sites(layout, table, demands, MIN_WIDTH, too_much);
}

/* Fills *layout. `words` has the titles, then the cells. Each ends with a NUL. */
static void table_lay_out(struct table_layout *layout, const struct mt_table *table,
                          const char *words, size_t indent)
{
    const struct mt_screen screen = mt_stdout_screen();
    struct demand demands[MT_TABLE_COLUMNS];

    *layout = (struct table_layout){
        .columns = screen.columns, .apart = MT_TABLE_COLUMNS, .titles = words};
    find_demands(table, words, demands);
    be_natural(layout, table, demands);
    size_t all = total(layout, table, indent);
    if (all > layout->columns && screen.is_terminal)
        fit_terminal(layout, table, demands, indent);
    else if (all > layout->columns)
        fit_page(layout, table, demands, all - layout->columns);
    all = total(layout, table, indent);
    if (layout->apart + 1 == table->column_count && all + GAP < layout->columns)
        layout->room_columns = layout->columns - all - GAP;
}

/* Returns true for a unit, also with punctuation after it: "GiB", "GiB),". */
static bool is_unit(const char *word, size_t length)
{
    while (length && strchr(").,;:", word[length - 1]))
        length--;
    return mt_units_is_unit(word, length);
}

/* Returns the length of a word, including the next word if that is the unit of a number. A line
 * never breaks within this length. */
static size_t unbroken_length(const char *text)
{
    size_t length = strcspn(text, " ");

    if (!length || text[length - 1] < '0' || text[length - 1] > '9' || text[length] != ' ')
        return length;
    size_t next = strcspn(text + length + 1, " ");
    return is_unit(text + length + 1, next) ? length + 1 + next : length;
}

void mt_text_table_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent)
{
    size_t screen = mt_stdout_screen().columns;
    size_t most = screen < MT_TEXT_COLUMNS ? screen : MT_TEXT_COLUMNS;
    struct mt_buf safe = {0};
    bool first = true;

    mt_buf_add_printable_text(&safe, text);
    for (const char *at = safe.data; at && *at; at += *at == ' ') {
        size_t length = unbroken_length(at), columns = mt_text_columns(at, length);

        if (!first && column + 1 + columns > most) {
            mt_buf_add_char(out, '\n');
            mt_buf_add_blanks(out, indent);
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
    mt_buf_release(&safe);
}

void mt_text_table_add_note(struct mt_buf *out, size_t indent, const char *format, ...)
{
    struct mt_buf text = {0};
    va_list args;

    va_start(args, format);
    mt_buf_vprintf(&text, format, args);
    va_end(args);
    mt_buf_add_blanks(out, indent);
    if (text.data)
        mt_text_table_add_wrapped(out, text.data, indent, indent);
    mt_buf_add_char(out, '\n');
    mt_buf_release(&text);
}

static size_t columns_in(const char *text, size_t length)
{
    return mt_text_columns(text, length);
}

static size_t columns_of(const char *text)
{
    return columns_in(text, strlen(text));
}

/* Returns the number of bytes at the end of `text` that are a place: " modeling_llama.py:175".
 * Returns 0 if there is no place, or if it leaves too little room for the rest. */
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

/* Adds text, shortened if necessary. A site loses the user's place, then the end of the name of the
 * function. Other text loses its middle. */
static void add_middle(struct mt_buf *out, const char *text, size_t columns, bool is_site)
{
    size_t length = columns_of(text), end = strlen(text);

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
    size_t tail = place_length(text, end, columns);
    if (!tail)
        tail = end - mt_text_tail(text, end, columns / 2);
    mt_buf_add(out, text,
               mt_text_head(text, end, columns - 1 - columns_in(text + end - tail, tail)));
    mt_buf_add_text(out, "…");
    mt_buf_add(out, text + end - tail, tail);
}

void mt_text_table_add_shortened(struct mt_buf *out, const char *text, size_t columns)
{
    struct mt_buf safe = {0};

    mt_buf_add_printable_text(&safe, text);
    if (safe.data)
        add_middle(out, safe.data, columns, false);
    mt_buf_release(&safe);
}

/* The format of a title or a cell. */
struct cell_form {
    size_t columns;
    bool is_right, is_site;
};

/* Appends titles, then cells, each with a NUL at its end. */
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

/* Pads the text in `out` from `start` to `columns`. */
static void fill_up(struct mt_buf *out, size_t start, size_t columns)
{
    size_t written = out->data ? columns_in(out->data + start, out->length - start) : 0;

    mt_buf_add_blanks(out, columns > written ? columns - written : 0);
}

/* Adds one title or cell, `columns` wide. */
static void add_cell(struct mt_buf *out, const char *words, const struct cell_form *form)
{
    size_t start = out->length, columns = columns_of(words);

    if (form->is_right)
        mt_buf_add_blanks(out, columns < form->columns ? form->columns - columns : 0);
    add_middle(out, words, form->columns, form->is_site);
    if (!form->is_right)
        fill_up(out, start, form->columns);
}

static void end_line(struct mt_buf *out)
{
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    mt_buf_add_char(out, '\n');
}

static bool stands_in_row(const struct table_layout *layout, size_t column, const char *words)
{
    return column != layout->apart || columns_of(words) <= layout->room_columns;
}

static const char *words_of(const struct mt_table *table, const char *row, size_t column)
{
    for (MT_ASSERT(column < table->column_count); column; column--)
        row += strlen(row) + 1;
    return row;
}

/* Adds the cell of the separate column on its own line. The title of the column is before the cell
 * if it does not fit above the last column. Only a site is shortened. */
static void add_apart(const struct mt_table *table, const struct table_layout *layout,
                      const struct mt_table_cell *cell, const char *words, size_t indent,
                      struct mt_buf *out)
{
    const char *title = words_of(table, layout->titles, layout->apart);
    bool is_site = cell->type == MT_TABLE_SITE;
    size_t start = out->length;

    if (!*words)
        return;
    mt_buf_add_blanks(out, indent);
    if (layout->apart && !stands_in_row(layout, layout->apart, title))
        mt_buf_printf(out, "%s ", title);
    size_t taken = out->length - start;
    add_middle(out, words, is_site ? mt_sub_or_0_u64(layout->columns, taken) : SIZE_MAX, is_site);
    mt_buf_add_char(out, '\n');
}

/* Adds a row. Returns the words of the next row. */
static const char *add_row(const struct mt_table *table, const struct table_layout *layout,
                           const struct mt_table_cell *cells, const char *words, size_t indent,
                           struct mt_buf *out)
{
    bool has_apart = layout->apart < table->column_count;
    const char *apart = has_apart ? words_of(table, words, layout->apart) : NULL;
    size_t shown = 0;

    if (has_apart && layout->apart == 0)
        add_apart(table, layout, cells, apart, indent, out);
    mt_buf_add_blanks(out, indent);
    for (size_t i = 0; i < table->column_count; i++, words += strlen(words) + 1) {
        const struct cell_form form = {.columns = layout->widths[i],
                                       .is_right = table->columns[i].kind == MT_NUMBER,
                                       .is_site = cells[i].type == MT_TABLE_SITE};

        if (!stands_in_row(layout, i, words))
            continue;
        mt_buf_add_blanks(out, shown++ ? 2 : 0);
        add_cell(out, words, &form);
    }
    end_line(out);
    if (has_apart && layout->apart && !stands_in_row(layout, layout->apart, apart))
        add_apart(table, layout, &cells[layout->apart], apart, indent + 4, out);
    return words;
}

/* Splits the title into as few lines as `columns` allow. Returns the text of line `line` and its
 * length in bytes, or NULL. */
static const char *title_line(const char *title, size_t columns, size_t line, size_t *length)
{
    for (;;) {
        size_t taken = 0;

        while (title[taken]) {
            size_t next = taken + (taken ? 1 : 0);

            next += strcspn(title + next, " ");
            if (taken && columns_in(title, next) > columns)
                break;
            taken = next;
        }
        *length = taken;
        if (!line-- || !title[taken])
            return line == SIZE_MAX ? title : NULL;
        title += taken + 1;
    }
}

static size_t count_title_lines(const struct table_layout *layout, const char *title, size_t column)
{
    size_t lines = 1, length;

    while (layout->splits_titles && title_line(title, layout->widths[column], lines, &length))
        lines++;
    return lines;
}

/* Adds the line of a title that has `above` lines below it. Short titles are in the last line. */
static void add_title(const struct mt_table *table, const struct table_layout *layout,
                      size_t column, const char *title, size_t above, struct mt_buf *out)
{
    size_t lines = count_title_lines(layout, title, column), length = strlen(title);
    const struct cell_form form = {.columns = layout->widths[column],
                                   .is_right = table->columns[column].kind == MT_NUMBER};
    struct mt_buf part = {0};

    if (layout->splits_titles)
        title = above < lines
                    ? title_line(title, layout->widths[column], lines - 1 - above, &length)
                    : NULL;
    if (title)
        mt_buf_add(&part, title, length);
    add_cell(out, part.data ? part.data : "", &form);
    mt_buf_release(&part);
}

/* Adds all titles. Returns the words of the first row. */
static const char *add_titles(const struct mt_table *table, const struct table_layout *layout,
                              const char *words, size_t indent, struct mt_buf *out)
{
    const char *title = words;
    size_t lines = 1;

    for (size_t i = 0; i < table->column_count; i++, title += strlen(title) + 1)
        lines = mt_max_u64(lines, count_title_lines(layout, title, i));
    while (lines--) {
        size_t shown = 0;

        mt_buf_add_blanks(out, indent);
        title = words;
        for (size_t i = 0; i < table->column_count; i++, title += strlen(title) + 1) {
            if (!stands_in_row(layout, i, title))
                continue;
            mt_buf_add_blanks(out, shown++ ? 2 : 0);
            add_title(table, layout, i, title, lines, out);
        }
        end_line(out);
    }
    return title;
}

/* The user's places that did not fit in the column of sites, each once. */
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

static struct callers find_callers(const struct mt_table *table, const struct table_layout *layout,
                                   const char *words)
{
    struct callers callers = {0};

    for (size_t i = 0; i < table->column_count; i++)
        words += strlen(words) + 1;
    for (size_t i = 0; i < table->cell_count; i++) {
        const char *place = mt_site_label_own(words);

        if (place && table->cells[i].type == MT_TABLE_SITE &&
            i % table->column_count != layout->apart &&
            columns_of(words) > layout->widths[i % table->column_count])
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
        mt_buf_add_blanks(out, indent);
        mt_buf_add_text(out, style->dim);
        mt_text_table_add_wrapped(out, line.data, indent, indent + 2);
        mt_buf_add_text(out, style->reset);
        mt_buf_add_char(out, '\n');
    }
    mt_buf_release(&line);
}

void mt_text_table_add(struct mt_buf *out, struct mt_table *table, unsigned indent,
                       const struct mt_style *style)
{
    size_t rows = mt_table_rows(table);
    struct table_layout layout;
    struct mt_buf words = {0};

    add_words(&words, table);
    if (rows) {
        table_lay_out(&layout, table, words.data, indent);
        mt_buf_add_text(out, style->dim);
        const char *at = add_titles(table, &layout, words.data, indent, out);
        mt_buf_add_text(out, style->reset);
        for (size_t i = 0; i < rows; i++)
            at = add_row(table, &layout, &table->cells[i * table->column_count], at, indent, out);
        struct callers callers = find_callers(table, &layout, words.data);
        add_callers(out, &callers, indent, style);
    }
    mt_buf_release(&words);
    mt_table_release(table);
}
