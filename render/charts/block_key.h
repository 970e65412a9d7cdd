/* The key that identifies a block in the charts and the data of a page: the address of the block
 * and the event that allocated it. No other block has both. */
#ifndef MT_RENDER_BLOCK_KEY_H
#define MT_RENDER_BLOCK_KEY_H

#include "arena.h"
#include "blocks_model.h"

/* Returns the key, as in "7f3a00000000.6454", in the arena. */
static inline const char *mt_block_key(struct mt_arena *arena, const struct mt_block_shape *block)
{
    return mt_arena_printf(arena, "%llx.%llu", (unsigned long long)block->life.addr,
                           (unsigned long long)block->life.birth_event);
}

#endif
