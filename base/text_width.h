/* How many columns of a terminal a text takes. No locale: the text is UTF-8. Wide are the letters
 * that East Asian typography sets in two columns, and emoji; combining marks take none. Every other
 * character, and a byte that is no UTF-8, takes one. Unicode 14; a terminal may follow another
 * version, but letters of programs are older than their differences. */
#ifndef MT_BASE_TEXT_WIDTH_H
#define MT_BASE_TEXT_WIDTH_H

#include <stddef.h>

size_t mt_text_columns(const char *text, size_t length);

/* Bytes of the longest beginning of `text` that takes no more than `columns`; marks that belong to
 * its last letter are in it. Never within a character. */
size_t mt_text_head(const char *text, size_t length, size_t columns);

/* The same of its end: where that begins. */
size_t mt_text_tail(const char *text, size_t length, size_t columns);

#endif
