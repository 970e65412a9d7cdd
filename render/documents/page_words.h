/* Sentences of the page. */
#ifndef MT_RENDER_PAGE_WORDS_H
#define MT_RENDER_PAGE_WORDS_H

#include "buf.h"

/* Text of a trace or of the program, escaped and cut as mt_add_page_name does it. No line ends
 * between a number and its unit: "7.47 GiB", "114 ms". */
void mt_add_page_words(struct mt_buf *out, const char *words);

#endif
