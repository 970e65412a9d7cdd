#include "pool_walk.h"

#include "grow.h"

size_t mt_pool_place_above(const struct mt_pool_walk *walk, const struct mt_pool_lane *lane,
                           uint64_t addr)
{
    size_t low = 0, high = lane->alive_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (walk->evidence->instances[lane->alive[middle]].base <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum mt_status mt_pool_push(uint32_t **items, size_t *count, size_t *capacity, uint32_t item)
{
    enum mt_status status = mt_grow(items, capacity, *count + 1, sizeof **items);

    if (status == MT_OK)
        (*items)[(*count)++] = item;
    return status;
}

enum mt_status mt_pool_set_unequal(struct mt_pool_walk *walk, uint32_t a, uint32_t b)
{
    return mt_pool_pairs_add(&walk->evidence->unequal, a < b ? a : b, a < b ? b : a);
}

uint32_t mt_pool_instance_at(const struct mt_pool_walk *walk, const struct mt_pool_lane *lane,
                             uint64_t addr)
{
    size_t above = mt_pool_place_above(walk, lane, addr);

    if (!above || addr >= walk->evidence->instances[lane->alive[above - 1]].end)
        return MT_NO_INSTANCE;
    return lane->alive[above - 1];
}
