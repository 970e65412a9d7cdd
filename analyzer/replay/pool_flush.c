#include "pool_flush.h"

#include "recorded.h"
#include "util.h"

/* Whether a flush of its pool would release this free block, or chunks of it. */
static bool can_go(const struct mt_pool_walk *walk, const struct mt_block *block,
                   const struct mt_pool_instance *instance)
{
    uint64_t chunk = instance->is_small ? MT_PYTORCH_SMALL_SEGMENT
                                        : mt_max_u64(walk->config.large_segment_bytes, 1);
    uint64_t offset = block->addr - instance->base;

    if (!block->expandable)
        return !mt_block_is_split(block);
    return block->size_bytes >= chunk &&
           mt_round_down(offset + block->size_bytes, chunk) > mt_round_up(offset, chunk);
}

void mt_pool_note_idle(struct mt_pool_walk *walk, struct mt_pool_lane *lane)
{
    const struct mt_block_store *store = mt_recorded_blocks(lane->lane.policy);
    uint32_t i;

    lane->is_flush = true;
    lane->idle_count = 0;
    walk->looks += store->count;
    for (i = 0; i < store->count; i++) {
        const struct mt_block *block = &store->blocks[i];
        uint32_t id;
        if (block->state != MT_BLOCK_FREE)
            continue;
        id = mt_pool_instance_at(walk, lane, block->addr);
        if (id != MT_NO_INSTANCE && can_go(walk, block, &walk->evidence->instances[id]))
            mt_pool_push(&lane->idle, &lane->idle_count, &lane->idle_capacity, id);
    }
}

/* A flush releases all that it can of a pool: a segment that stayed is in another pool than all
 * that were released. */
static void compare_flushed(struct mt_pool_walk *walk, struct mt_pool_lane *lane, uint32_t stayed)
{
    size_t i;

    mt_pool_set_kept(walk, stayed, lane->gone[0]);
    walk->looks += lane->gone_count;
    for (i = 0; !walk->evidence->gave_up && i < lane->gone_count; i++)
        mt_pool_set_unequal(walk, stayed, lane->gone[i]);
}

static uint64_t stream_handle(const struct mt_pool_walk *walk, uint32_t stream)
{
    const struct mt_symbols *symbols = &walk->source->symbols;

    return stream < symbols->stream_count ? symbols->streams[stream].handle : stream;
}

/* Whether one flush of a pool releases whole segments in this order: by stream, size, address. */
static bool is_in_order(const struct mt_pool_walk *walk, const struct mt_pool_instance *a,
                        const struct mt_pool_instance *b)
{
    uint64_t size_a = a->end - a->base, size_b = b->end - b->base;

    if (a->is_small != b->is_small || a->expandable || b->expandable)
        return true;
    if (a->stream != b->stream)
        return stream_handle(walk, a->stream) < stream_handle(walk, b->stream);
    return size_a < size_b || (size_a == size_b && a->base <= b->base);
}

/* Segments released in another order than that of one flush belong to two pools. */
static void compare_order(struct mt_pool_walk *walk, struct mt_pool_lane *lane)
{
    const struct mt_pool_instance *instances = walk->evidence->instances;
    size_t i, k;

    for (i = 0; i < lane->gone_count; i++) {
        walk->looks += i;
        for (k = 0; !walk->evidence->gave_up && k < i; k++)
            if (!is_in_order(walk, &instances[lane->gone[k]], &instances[lane->gone[i]]))
                mt_pool_set_unequal(walk, lane->gone[k], lane->gone[i]);
    }
}

void mt_pool_end_group(struct mt_pool_walk *walk, struct mt_pool_lane *lane)
{
    size_t i;

    for (i = 0; !walk->evidence->gave_up && i < lane->idle_count && lane->gone_count; i++)
        if (walk->evidence->instances[lane->idle[i]].group != walk->group)
            compare_flushed(walk, lane, lane->idle[i]);
    if (lane->is_flush)
        compare_order(walk, lane);
    walk->group += lane->gone_count > 0;
    lane->is_flush = false;
    lane->idle_count = lane->gone_count = 0;
    lane->grew = false;
}
