/* Computes the widths of a table's columns for standard output.
 *
 * A table that is wider than the terminal becomes narrower in these steps, until it fits:
 *
 *  1. Titles take several lines.
 *  2. Sites lose the user's place.
 *  3. Names are shortened, then other words.
 *  4. A key ("!"), which is never shortened, gets lines of its own.
 *  5. Sites are shortened.
 *
 * If the output is not a terminal, lines have at most 100 columns, and only names and sites are
 * shortened. */
#ifndef MT_CLI_TABLE_LAYOUT_H
#define MT_CLI_TABLE_LAYOUT_H

#include "table.h"

struct mt_table_layout {
    size_t widths[MT_TABLE_COLUMNS];
    const char *titles;  /* borrowed; each ends with a NUL */
    size_t columns;      /* width of the terminal, or 100 */
    bool splits_titles;  /* titles that are wider than their column break at spaces */
    size_t apart;        /* column that gets lines of its own; MT_TABLE_COLUMNS = none */
    size_t room_columns; /* if `apart` is the last column: the room for it at the end of its row;
                            else 0 */
};

/* Fills *layout. `words` has the titles, then the cells. Each ends with a NUL. */
void mt_table_lay_out(struct mt_table_layout *layout, const struct mt_table *table,
                      const char *words, size_t indent);

#endif
