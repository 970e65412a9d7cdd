/* Tables for people: columns as wide as their cells, some of them give way so
 * that lines stay within the terminal, or 100 columns where there is none. Width is
 * counted in characters. */
#ifndef MT_CLI_TEXT_TABLE_H
#define MT_CLI_TEXT_TABLE_H

#include "cli.h"
#include "table.h"

/* Writes the table, titles in the style's `dim`, and releases it. Nothing without rows. Control
 * characters are escaped. */
void mt_add_text_table(struct mt_buf *out, struct mt_table *table, unsigned indent,
                       const struct mt_style *style);

/* Below, a NULL text means that there was no memory to make it: the output is marked as failed. */

/* Appends text, escaped, shortened in the middle to `columns`. */
void mt_add_shortened(struct mt_buf *out, const char *text, size_t columns);

/* Appends text, escaped, in lines of at most 100 columns (fewer in a narrow
 * terminal: wider lines are hard to read), broken at spaces;
 * lines after the first begin with `indent` spaces. `column`: where the cursor
 * is. */
void mt_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent);

/* A sentence or more, in lines that all begin with `indent` spaces and stay within the columns of
 * mt_add_wrapped. */
void mt_add_note(struct mt_buf *out, size_t indent, const char *format, ...) MT_PRINTF(3, 4);

#endif
