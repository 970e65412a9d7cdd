/* Where a text may be cut so that what stays consists of whole words. Words end at spaces and at
 * the marks of names and paths, and "getItem" is two words. Text is UTF-8; nothing is allocated. */
#ifndef MT_RENDER_WORD_CUT_H
#define MT_RENDER_WORD_CUT_H

#include <stddef.h>

/* At most `head` bytes of `text`: fewer where that loses little, such as "LlamaDecoder" instead of
 * "LlamaDecoderLay", and always before a number or the unit of one, since a number that is cut is
 * another number. 0 if only a part of a number would stay. `head` is at most the length of `text`
 * and a boundary of characters. */
size_t mt_cut_head(const char *text, size_t head);

/* `tail`, an end of `text`, or a shorter one that begins with a whole word, where that loses
 * little: "llama.py:175" instead of "g_llama.py:175". */
const char *mt_cut_tail(const char *text, const char *tail);

#endif
