/* Wraps prose into lines of at most 100 columns, because wider lines are hard to read. In a narrow
 * terminal, lines are shorter. A number and its unit stay on one line. */
#ifndef MT_CLI_WRAPPED_TEXT_H
#define MT_CLI_WRAPPED_TEXT_H

#include "cli.h"

/* Appends text, escaped, in lines that break at spaces. `column` is the current position in the
 * first line. The other lines begin with `indent` spaces. */
void mt_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent);

/* Appends text of any length in lines that all begin with `indent` spaces. */
void mt_add_note(struct mt_buf *out, size_t indent, const char *format, ...) MT_PRINTF(3, 4);

void mt_add_blanks(struct mt_buf *out, size_t count);

#endif
