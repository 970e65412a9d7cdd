/* State of the pass that collects evidence of pools, shared by pool_evidence.c and pool_flush.c. */
#ifndef MT_ANALYZER_POOL_WALK_H
#define MT_ANALYZER_POOL_WALK_H

#include "lane.h"
#include "pool_facts.h"
#include "pytorch_config.h"

/* One device of the pass. */
struct mt_pool_lane {
    struct mt_lane lane;
    struct mt_replay_result result;
    uint32_t *alive; /* instances, ascending by base */
    size_t alive_count, alive_capacity;
    uint32_t *idle; /* instances that could be released when the cache was emptied */
    size_t idle_count, idle_capacity;
    uint32_t *gone; /* instances that were released in this group, at least partly */
    size_t gone_count, gone_capacity;
    uint32_t last; /* instance of the last request */
    bool grew;     /* memory was added immediately before the request */
    bool is_flush; /* the cache is being emptied */
};

struct mt_pool_walk {
    struct mt_source *source;
    struct mt_pool_evidence *evidence;
    struct mt_pytorch_config config;
    struct mt_pool_lane *lanes[MT_MAX_DEVICES];
    uint64_t looks;
    uint32_t group; /* number of the group of segment events */
};

void mt_pool_push(uint32_t **items, size_t *count, size_t *capacity, uint32_t item);
/* Add a piece of evidence. If there are too many of either kind, the search gives up
 * (evidence->gave_up). */
void mt_pool_set_unequal(struct mt_pool_walk *walk, uint32_t a, uint32_t b);
void mt_pool_set_kept(struct mt_pool_walk *walk, uint32_t stayed, uint32_t gone);
/* mt_pool_place_above returns the index in `alive` of the first instance that begins above `addr`.
 * mt_pool_instance_at returns the instance that contains `addr`, or MT_NO_INSTANCE. */
size_t mt_pool_place_above(const struct mt_pool_walk *walk, const struct mt_pool_lane *lane,
                           uint64_t addr);
uint32_t mt_pool_instance_at(const struct mt_pool_walk *walk, const struct mt_pool_lane *lane,
                             uint64_t addr);

#endif
