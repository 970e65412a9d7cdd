#include "block_words.h"

enum mt_status mt_block_words_find(const struct mt_attribution *attribution,
                                   const struct mt_holding *holding, struct mt_block_words *words)
{
    struct mt_attributed row = mt_attributed_of(attribution, holding);

    words->site = mt_attributed_site(attribution, &row);
    words->operation = mt_attributed_operation(attribution, &row);
    words->head = words->site ? mt_arena_text(attribution->arena, words->site,
                                              mt_site_label_head(words->site))
                              : NULL;
    return words->head ? MT_OK : MT_ERR_MEMORY;
}

enum mt_status mt_block_words_name(const struct mt_attribution *attribution,
                                   struct mt_block_shape *blocks, uint32_t count)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
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

        status = mt_block_words_find(attribution, &holding, &words);
        block->site = words.site;
        block->head = words.head;
        block->operation = words.operation;
    }
    return status;
}
