#include "block_words.h"

void mt_block_words_find(const struct mt_attribution *attribution, const struct mt_holding *holding,
                         struct mt_block_words *words)
{
    struct mt_attributed row = mt_attributed_of(attribution, holding);

    words->site = mt_attributed_site(attribution, &row);
    words->operation = mt_attributed_operation(attribution, &row);
    words->head = words->site ? mt_arena_text(attribution->arena, words->site,
                                              mt_site_label_head(words->site))
                              : NULL;
}

void mt_block_words_name(const struct mt_attribution *attribution, struct mt_block_shape *blocks,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct mt_block_shape *block = &blocks[i];
        struct mt_holding holding = {.stack = block->stack,
                                     .tied = block->tied,
                                     .tie = block->tie,
                                     .phase = block->phase,
                                     .role = block->role,
                                     .block_bytes = block->block_bytes,
                                     .blocks = 1,
                                     .bytes = block->block_bytes,
                                     .requested_bytes = block->requested_bytes,
                                     .first_birth_t_ns = block->birth_t_ns,
                                     .first_birth_event = block->birth_event};
        struct mt_block_words words;

        mt_block_words_find(attribution, &holding, &words);
        block->site = words.site;
        block->head = words.head;
        block->operation = words.operation;
    }
}
