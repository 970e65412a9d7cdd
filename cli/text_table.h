/* Tables for people. Columns are as wide as their cells, but some shrink so that lines fit the
 * terminal, or 100 columns without one. Width is counted in characters. */
#ifndef MT_CLI_TEXT_TABLE_H
#define MT_CLI_TEXT_TABLE_H

#include "cli.h"
#include "table.h"

/* Writes the table, titles in the style's `dim`, and releases it. Writes nothing without rows.
 * Control characters are escaped. */
void mt_add_text_table(struct mt_buf *out, struct mt_table *table, unsigned indent,
                       const struct mt_style *style);

/* Appends text, escaped, shortened in the middle to `columns`. A NULL text means that memory ran
 * out when it was made; it sets the failure of the output. */
void mt_add_shortened(struct mt_buf *out, const char *text, size_t columns);

#endif
