/* Prose for people: lines of at most 100 columns, fewer in a narrow terminal, because wider lines
 * are hard to read. A number and its unit stay on one line. */
#ifndef MT_CLI_WRAPPED_TEXT_H
#define MT_CLI_WRAPPED_TEXT_H

#include "cli.h"

/* Appends text, escaped, broken at spaces; lines after the first begin with `indent` spaces.
 * `column`: current position of the cursor. A NULL text means that memory ran out when it was
 * made; it sets the failure of the output. */
void mt_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent);

/* Appends text of any length in lines that all begin with `indent` spaces. */
void mt_add_note(struct mt_buf *out, size_t indent, const char *format, ...) MT_PRINTF(3, 4);

void mt_add_blanks(struct mt_buf *out, size_t count);

#endif
