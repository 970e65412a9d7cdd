/* Output for a terminal whose locale is not UTF-8. */
#ifndef MT_CLI_MESSAGE_H
#define MT_CLI_MESSAGE_H

#include "buf.h"

/* Appends text, and replaces each non-ASCII character that memtrace itself prints with ASCII:
 * "−1.94 GiB" becomes "-1.94 GiB", and "13 µs" becomes "13 us". A replacement has the same width as
 * the character, so tables stay aligned. Other characters, which are from names in a file, are
 * unchanged. */
void mt_message_add_ascii(struct mt_buf *out, const char *text, size_t length);

#endif
