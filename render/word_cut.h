/* Cuts UTF-8 text between words. Words end at spaces and at the separators of names and paths;
 * "getItem" is two words. The functions allocate nothing. */
#ifndef MT_RENDER_WORD_CUT_H
#define MT_RENDER_WORD_CUT_H

#include <stddef.h>

/* Returns the length of a prefix of `text` with at most `head` bytes. The prefix ends after a whole
 * word if that loses little: "LlamaDecoder" instead of "LlamaDecoderLay". It never ends within a
 * number or between a number and its unit, because a truncated number is a different number.
 * Returns 0 if only a part of a number would remain. `head` must be at most the length of `text`
 * and at a boundary of characters. */
size_t mt_cut_head(const char *text, size_t head);

/* Returns a suffix of `text` that is at most as long as the suffix `tail`. The result starts with a
 * whole word if that loses little: "llama.py:175" instead of "g_llama.py:175". */
const char *mt_cut_tail(const char *text, const char *tail);

#endif
