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

/* Appends text, escaped, shortened in the middle to `columns`. A NULL text means that there was no
 * memory to make it: the output is marked as failed. */
void mt_add_shortened(struct mt_buf *out, const char *text, size_t columns);

#endif
