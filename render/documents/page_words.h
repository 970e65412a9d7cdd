/* Sentences of the page. */
#ifndef MT_RENDER_PAGE_WORDS_H
#define MT_RENDER_PAGE_WORDS_H

#include "buf.h"

/* Text of a trace or of the program, escaped and cut like in mt_add_page_name. A number and its
 * unit stay on one line: "7.47 GiB", "43.1%", "114 ms". */
void mt_add_page_words(struct mt_buf *out, const char *words);

#endif
