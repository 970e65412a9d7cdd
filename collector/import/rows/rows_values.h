/* Cells of rows: texts that are numbers, times and stacks. */
#ifndef MT_COLLECTOR_ROWS_VALUES_H
#define MT_COLLECTOR_ROWS_VALUES_H

#include "symbols.h"

#define MT_ROW_MAX_BYTES ((size_t)16 << 20)

struct mt_row_cell {
    const char *text; /* not terminated */
    size_t length;
    bool has_doubled_quotes; /* only while CSV is read */
};

/* Texts of cells as numbers. These return false if the text is something else, or too large. */

/* A decimal number, also "12.0", or a hexadecimal one that begins with 0x. */
bool mt_row_number(struct mt_row_cell cell, uint64_t *value);

/* A decimal number with fraction and exponent, multiplied by 10^scale; digits below 1 are cut. */
bool mt_row_decimal(struct mt_row_cell cell, int scale, uint64_t *value);

/* "23:59:59.123456" or a number of seconds. */
bool mt_row_clock(struct mt_row_cell cell, bool *is_time_of_day, uint64_t *t_ns);

/* Without blanks at its ends. */
struct mt_row_cell mt_row_cell_trim(struct mt_row_cell cell);

bool mt_row_cell_is(struct mt_row_cell cell, const char *text);

/* A frame is `function (file:line)`, or any text as a function. */
enum mt_row_stack_form {
    MT_ROW_STACK_TEXT,      /* frames separated by ';', outermost first; a backslash makes the next
                               character plain */
    MT_ROW_STACK_INNERMOST, /* frames separated by zero bytes, innermost first */
    MT_ROW_STACK_OUTERMOST
};

/* Sets *stack to the id of a stack. Returns a status. */
enum mt_status mt_row_stack(struct mt_symbols *symbols, struct mt_row_cell cell,
                            enum mt_row_stack_form form, uint32_t *stack) MT_MUST_USE;

#endif
