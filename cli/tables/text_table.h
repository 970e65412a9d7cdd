/* Tables as text. A column is as wide as its widest cell, but some columns shrink so
 * that lines fit the terminal, or 100 columns if the output is not a terminal. Widths are in
 * characters. */
#ifndef MT_CLI_TEXT_TABLE_H
#define MT_CLI_TEXT_TABLE_H

#include "cli.h"
#include "table.h"

/* Appends the table, with titles in style->dim and control characters escaped. Appends nothing if
 * the table has no rows. Releases the table in any case. */
void mt_text_table_add(struct mt_buf *out, struct mt_table *table, unsigned indent,
                       const struct mt_style *style);

/* Appends text, escaped, and shortened in the middle to at most `columns` characters. */
void mt_text_table_add_shortened(struct mt_buf *out, const char *text, size_t columns);

/* Wraps prose into lines of at most 100 columns, because wider lines are hard to read. In a narrow
 * terminal, lines are shorter. A number and its unit stay on one line. */

/* Appends text, escaped, in lines that break at spaces. `column` is the current position in the
 * first line. The other lines begin with `indent` spaces. */
void mt_text_table_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent);

/* Appends text of any length in lines that all begin with `indent` spaces. */
void mt_text_table_add_note(struct mt_buf *out, size_t indent, const char *format, ...)
    MT_PRINTF(3, 4);

#endif
