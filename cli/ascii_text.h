/* Answers for a terminal whose locale is not UTF-8. */
#ifndef MT_CLI_ASCII_TEXT_H
#define MT_CLI_ASCII_TEXT_H

#include "buf.h"

/* Adds the text of an answer with ASCII for every character that memtrace itself writes: "−1.94
 * GiB"
 * -> "-1.94 GiB", "13 µs" -> "13 us". Each takes as many columns as before, so that tables stay
 * aligned. Characters of names from a file that are none of these are kept. */
void mt_add_ascii_text(struct mt_buf *out, const char *text, size_t length);

#endif
