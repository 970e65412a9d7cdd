/* The key of a block in a page's charts and data: address and start, which together are unique. */
#ifndef MT_RENDER_BLOCK_KEY_H
#define MT_RENDER_BLOCK_KEY_H

#include "arena.h"
#include "kept_blocks.h"

/* "7f3a00000000.6454". In the arena; NULL if memory runs out. */
static inline const char *mt_block_key(struct mt_arena *arena, const struct mt_block_shape *block)
{
    return mt_arena_printf(arena, "%llx.%llu", (unsigned long long)block->addr,
                           (unsigned long long)block->birth_event);
}

#endif
