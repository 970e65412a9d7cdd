/* Sentences in report.html. */
#ifndef MT_RENDER_PAGE_WORDS_H
#define MT_RENDER_PAGE_WORDS_H

#include "buf.h"

/* Appends text of a trace or of the program, escaped and shortened as in mt_add_page_name. Prevents
 * a line break between a number and its unit: "7.47 GiB", "114 ms". */
void mt_add_page_words(struct mt_buf *out, const char *words);

#endif
