/* Number of terminal columns of a text. No locale: the text is UTF-8. East Asian wide letters and
 * emoji take two columns, and combining marks none. Every other character takes one, and so does a
 * byte that is not UTF-8. Unicode 14; other versions differ only in letters that names in programs
 * rarely use. */
#ifndef MT_BASE_TEXT_WIDTH_H
#define MT_BASE_TEXT_WIDTH_H

#include <stddef.h>

size_t mt_text_columns(const char *text, size_t length);

/* Returns the bytes of the longest prefix of `text` that takes at most `columns`. The prefix
 * includes the marks of its last letter and never ends within a character. */
size_t mt_text_head(const char *text, size_t length, size_t columns);

/* Returns the offset in bytes of the longest suffix of `text` that takes at most `columns`. */
size_t mt_text_tail(const char *text, size_t length, size_t columns);

#endif
