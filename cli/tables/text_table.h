/* Tables as text. A column is as wide as its widest cell, but some columns shrink (table_layout.h)
 * so that lines fit the terminal, or 100 columns if the output is not a terminal. Widths are in
 * characters. */
#ifndef MT_CLI_TEXT_TABLE_H
#define MT_CLI_TEXT_TABLE_H

#include "cli.h"
#include "table.h"

/* Appends the table, with titles in style->dim and control characters escaped. Appends nothing if
 * the table has no rows. Releases the table in any case. */
void mt_add_text_table(struct mt_buf *out, struct mt_table *table, unsigned indent,
                       const struct mt_style *style);

/* Appends text, escaped, and shortened in the middle to at most `columns` characters. */
void mt_add_shortened(struct mt_buf *out, const char *text, size_t columns);

#endif
