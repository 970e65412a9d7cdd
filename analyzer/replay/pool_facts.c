#include "pool_facts.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

void mt_pool_pairs_add(struct mt_pool_pairs *pairs, uint32_t a, uint32_t b)
{
    uint64_t key = (uint64_t)a << 32 | b;

    if (mt_map_get(&pairs->seen, key) != MT_MAP_NONE)
        return;
    mt_map_put(&pairs->seen, key, 1);
    mt_grow_to(&pairs->items, &pairs->capacity, pairs->count + 1, sizeof *pairs->items);
    pairs->items[pairs->count++] = (struct mt_pool_pair){a, b};
}

void mt_pool_pairs_release(struct mt_pool_pairs *pairs)
{
    free(pairs->items);
    mt_map_release(&pairs->seen);
    memset(pairs, 0, sizeof *pairs);
}

void mt_pool_evidence_release(struct mt_pool_evidence *evidence)
{
    free(evidence->instances);
    mt_pool_pairs_release(&evidence->unequal);
    mt_pool_pairs_release(&evidence->kept);
    mt_pool_pairs_release(&evidence->turns);
    free(evidence->instance_of);
    memset(evidence, 0, sizeof *evidence);
}
