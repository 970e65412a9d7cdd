/* Words for single blocks: the site that allocated them, and the operation. */
#ifndef MT_ANALYZER_BLOCK_WORDS_H
#define MT_ANALYZER_BLOCK_WORDS_H

#include "attributed.h"
#include "kept_blocks.h"

struct mt_block_words {
    const char *site, *head; /* with the user's place, and without */
    const char *operation;   /* the operation; NULL if the site names it */
};

/* Fills *words. The texts are in the attribution's arena. */
void mt_block_words_find(const struct mt_attribution *attribution, const struct mt_holding *holding,
                         struct mt_block_words *words);

/* Sets site, head and operation of each. */
void mt_block_words_name(const struct mt_attribution *attribution, struct mt_block_shape *blocks,
                         uint32_t count);

#endif
