/* Output for a terminal whose locale is not UTF-8. */
#ifndef MT_CLI_ASCII_TEXT_H
#define MT_CLI_ASCII_TEXT_H

#include "buf.h"

/* Appends text with ASCII for every non-ASCII character that memtrace itself prints: "−1.94 GiB"
 * -> "-1.94 GiB", "13 µs" -> "13 us". Each replacement has the same width, so tables stay
 * aligned. Other characters, from names in a file, are kept. */
void mt_add_ascii_text(struct mt_buf *out, const char *text, size_t length);

#endif
