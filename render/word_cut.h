/* Cuts a text between words. Words end at spaces and at the separators of names and paths;
 * "getItem" is two words. Text is UTF-8; nothing is allocated. */
#ifndef MT_RENDER_WORD_CUT_H
#define MT_RENDER_WORD_CUT_H

#include <stddef.h>

/* Returns the length of a prefix of `text`, at most `head` bytes. It is shorter where that loses
 * little ("LlamaDecoder" instead of "LlamaDecoderLay"), and always ends before a number or its
 * unit, since a truncated number is another number. 0 if only a part of a number would remain.
 * `head` is at most the length of `text` and a boundary of characters. */
size_t mt_cut_head(const char *text, size_t head);

/* Returns `tail`, a suffix of `text`, or a shorter suffix that starts with a whole word, where
 * that loses little: "llama.py:175" instead of "g_llama.py:175". */
const char *mt_cut_tail(const char *text, const char *tail);

#endif
