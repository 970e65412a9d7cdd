/* Whole-structure check of the policy `pytorch`. */
#include "check.h"
#include "pytorch_pools.h"

static bool set_is_sound(const struct mt_pytorch *self, uint32_t pool,
                         const struct mt_pytorch_free_list *free_list, enum mt_block_state state,
                         const char **why)
{
    const struct mt_free_set *set =
        state == MT_BLOCK_FREE ? &free_list->free : &free_list->unmapped;
    struct mt_free_cursor at = mt_free_set_find(set, 0, 0);

    if (!mt_free_set_is_sound(set, why))
        return false;
    for (; at.entry; at = mt_free_set_next(set, at)) {
        const struct mt_block *block = &self->store.blocks[at.entry->block];
        MT_SOUND(why, at.entry->block < self->store.count);
        MT_SOUND(why, block->state == state);
        MT_SOUND(why, block->addr == at.entry->addr);
        MT_SOUND(why, at.entry->age == (state == MT_BLOCK_FREE ? block->age : 0));
        MT_SOUND(why, block->age <= self->age_count);
        MT_SOUND(why, at.entry->size_bytes == (state == MT_BLOCK_FREE ? block->size_bytes : 0));
        MT_SOUND(why, block->pool == pool && block->stream == free_list->stream);
    }
    return true;
}

/* Reusable blocks are in exactly one set, under their own key; free lists ascend by stream. */
static bool pools_are_sound(const struct mt_pytorch *self, const char **why)
{
    uint32_t id, pool, free_list;
    size_t filed = 0, reusable = 0;

    for (id = 0; id < self->store.count; id++)
        reusable += self->store.blocks[id].state == MT_BLOCK_FREE ||
                    self->store.blocks[id].state == MT_BLOCK_UNMAPPED;
    for (pool = 0; pool < self->pool_count; pool++) {
        const struct mt_pytorch_pool *of = &self->pools[pool];
        MT_SOUND(why, of->owner == pool / 2 && of->is_small == (pool % 2 == 1));
        for (free_list = 0; free_list < of->free_list_count; free_list++) {
            const struct mt_pytorch_free_list *at = &of->free_lists[free_list];
            MT_SOUND(why, !free_list || at[-1].stream_handle <= at->stream_handle);
            if (!set_is_sound(self, pool, at, MT_BLOCK_FREE, why) ||
                !set_is_sound(self, pool, at, MT_BLOCK_UNMAPPED, why))
                return false;
            filed += at->free.count + at->unmapped.count;
        }
    }
    MT_SOUND(why, filed == reusable);
    return true;
}

/* free + used = reserved; the counters match the blocks. */
static bool counters_are_sound(const struct mt_pytorch *self, const char **why)
{
    const struct mt_counters *counters = &self->counters;
    uint64_t held = 0, allocated = 0, active = 0, inactive_split = 0, segments = 0;
    uint32_t id;

    for (id = 0; id < self->store.count; id++) {
        const struct mt_block *block = &self->store.blocks[id];
        if (block->state == MT_BLOCK_UNUSED || block->state == MT_BLOCK_UNMAPPED)
            continue;
        held += block->size_bytes;
        allocated += block->state == MT_BLOCK_ALLOCATED ? block->size_bytes : 0;
        active += block->state != MT_BLOCK_FREE ? block->size_bytes : 0;
        segments += !block->expandable && block->previous == MT_NO_BLOCK;
        if (block->state == MT_BLOCK_FREE && !block->expandable && mt_block_is_split(block))
            inactive_split += block->size_bytes;
    }
    MT_SOUND(why, held == counters->reserved.now);
    MT_SOUND(why, allocated == counters->allocated.now);
    MT_SOUND(why, active == counters->active.now);
    MT_SOUND(why, inactive_split == counters->inactive_split.now);
    MT_SOUND(why, segments == counters->segments.now);
    MT_SOUND(why, held <= 2 * MT_MAX_TOTAL_BYTES && mt_counters_agree(counters));
    return true;
}

bool mt_pytorch_is_sound(const struct mt_pytorch *self, const char **why)
{
    return mt_block_store_is_sound(&self->store, false, why) && pools_are_sound(self, why) &&
           counters_are_sound(self, why);
}
