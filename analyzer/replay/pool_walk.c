#include "pool_walk.h"

#include "grow.h"
#include "util.h"

/* Maximum number of pairs of each kind. n segments can have n * n / 2 pairs, and at 100 bytes a
 * pair a trace of 1 KB could take 400 MiB. The captures have at most one pair per nine events. */
static const size_t MAX_PAIRS = (size_t)1 << 22;
enum { FREE_PAIRS = 4096, PAIRS_PER_EVENT = 4 };

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

void mt_pool_push(uint32_t **items, size_t *count, size_t *capacity, uint32_t item)
{
    mt_grow_to(items, capacity, *count + 1, sizeof **items);
    (*items)[(*count)++] = item;
}

/* Adds a pair. With too many pairs the search gives up. */
static void add_pair(struct mt_pool_evidence *evidence, struct mt_pool_pairs *pairs, uint32_t a,
                     uint32_t b)
{
    size_t most =
        mt_min_u64(MAX_PAIRS, FREE_PAIRS + (uint64_t)PAIRS_PER_EVENT * evidence->event_count);

    if (!evidence->gave_up)
        mt_pool_pairs_add(pairs, a, b);
    evidence->gave_up |= pairs->count > most;
}

void mt_pool_set_unequal(struct mt_pool_walk *walk, uint32_t a, uint32_t b)
{
    add_pair(walk->evidence, &walk->evidence->unequal, a < b ? a : b, a < b ? b : a);
}

void mt_pool_set_kept(struct mt_pool_walk *walk, uint32_t stayed, uint32_t gone)
{
    add_pair(walk->evidence, &walk->evidence->kept, stayed, gone);
}

uint32_t mt_pool_instance_at(const struct mt_pool_walk *walk, const struct mt_pool_lane *lane,
                             uint64_t addr)
{
    size_t above = mt_pool_place_above(walk, lane, addr);

    if (!above || addr >= walk->evidence->instances[lane->alive[above - 1]].end)
        return MT_NO_INSTANCE;
    return lane->alive[above - 1];
}
