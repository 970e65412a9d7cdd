/* The memory of a card that a run needs (card_use.h), in the words that text, page and Markdown
 * share. */
#ifndef MT_RENDER_CARD_WORDS_H
#define MT_RENDER_CARD_WORDS_H

#include "buf.h"
#include "card_use.h"

/* "about 9.22 GiB = PyTorch 8.06 + other libraries 0.13 + CUDA 1.03": all in the unit of the sum.
 * For a lower bound "at least ...: why". The framework's name is escaped. */
void mt_card_words_add(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_card_use *use);

/* "; fits RTX 3060 12 GB, T4 16 GB, V100 16 GB and 11 larger": at most `most` names. Nothing for a
 * lower bound. */
void mt_card_words_add_cards(struct mt_buf *out, const struct mt_card_use *use, size_t most);

#endif
