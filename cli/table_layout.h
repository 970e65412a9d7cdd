/* Computes the widths of a table's columns for standard output.
 *
 * In a terminal, which would break lines, columns shrink in this order: titles take several
 * lines; sites lose the user's code line; names, then other words are shortened; then sites. A
 * key ("!") is never shortened: as a last resort it gets lines of its own. If the output is not a
 * terminal, it has 100 columns, and only names and sites are shortened. */
#ifndef MT_CLI_TABLE_LAYOUT_H
#define MT_CLI_TABLE_LAYOUT_H

#include "table.h"

struct mt_table_layout {
    size_t widths[MT_TABLE_COLUMNS];
    const char *titles;  /* borrowed: each with a NUL at its end */
    size_t columns;      /* of the screen */
    bool splits_titles;  /* at spaces, if they are wider than their column */
    size_t apart;        /* column that gets lines of its own; MT_TABLE_COLUMNS = none */
    size_t room_columns; /* for what stands apart, if it is the last column, in its row */
};

/* `words`: titles, then cells, each with a NUL at its end. */
void mt_table_lay_out(struct mt_table_layout *layout, const struct mt_table *table,
                      const char *words, size_t indent);

#endif
