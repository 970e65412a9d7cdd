/* Tables for people: columns as wide as their cells, some of them give way so
 * that lines stay within the terminal, or 100 columns where there is none. Width is
 * counted in characters. */
#ifndef MT_CLI_TEXT_TABLE_H
#define MT_CLI_TEXT_TABLE_H

#include <stdbool.h>

#include "buf.h"

#define MT_TABLE_COLUMNS 10

struct mt_text_column {
    const char *title; /* NULL ends the list */
    bool right;        /* numbers */
    bool gives_way;    /* shortened if the line is too long */
};

struct mt_text_table {
    const struct mt_text_column *columns;
    size_t column_count, row_count;
    unsigned indent;
    struct mt_buf cells; /* NUL-terminated, row after row */
};

void mt_table_begin(struct mt_text_table *table, const struct mt_text_column *columns,
                    unsigned indent);
/* In this file a NULL text means that there was no memory to make it: the output is marked as
 * failed. */

/* Cells in order; control characters are escaped. */
void mt_table_cell(struct mt_text_table *table, const char *text);
/* Writes the table (titles in `dim`) and releases it. Nothing without rows. */
void mt_table_end(struct mt_text_table *table, struct mt_buf *out, const char *dim,
                  const char *reset);

/* Characters of UTF-8 text, as a terminal counts columns of Western ones. */
size_t mt_text_columns(const char *text);

/* Appends text, escaped, shortened in the middle to `columns`. */
void mt_add_shortened(struct mt_buf *out, const char *text, size_t columns);

/* Appends text, escaped, in lines of at most 100 columns (fewer in a narrow
 * terminal: wider lines are hard to read), broken at spaces;
 * lines after the first begin with `indent` spaces. `column`: where the cursor
 * is. */
void mt_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent);

#endif
