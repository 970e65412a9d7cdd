/* Infers pools that are missing in a trace. A PyTorch snapshot names the pool of a segment only if
 * the segment exists at the dump. It has no pools for segments of a CUDA graph or
 * torch.cuda.MemPool that was deleted before, so these segments look like those of the default
 * pool.
 *
 * Method: segments that must have been in different pools (pool_search.h) form a graph, and pools
 * are its colors. Known pools are fixed. Starting from them, each segment gets a color that none of
 * its neighbors has, the most constrained segments first. It is the default pool if possible,
 * otherwise a private one; segments that one flush released get the same color. In parts of the
 * graph without a known pool, any color can be the default pool. These rules then decide, in this
 * order: a color that released memory and remained in use is the default pool (a private pool
 * releases memory only when it is deleted); a segment that stayed when those of the default pool
 * were released is private; segments used in alternation with those of a pool are likely in that
 * pool. If nothing decides, the first part keeps its order, and the other parts follow it.
 *
 * Limits: the result is a guess that only a replay confirms. The caller replays with it, rotates
 * the colors of parts where the replay still differs, and keeps the changes that extend the
 * agreement (pool_search.h). One deleted pool is found. In random programs with two deleted pools
 * that compete with each other and with the default pool, a quarter remains unexplained
 * (tests/property). Pools that never competed count as one, because no counter distinguishes them.
 * An OOM has no address, so its pool is the one in the trace. */
#ifndef MT_ANALYZER_LOST_POOLS_H
#define MT_ANALYZER_LOST_POOLS_H

#include "event.h"
#include "pool_tracks.h"

#define MT_NO_PART UINT32_MAX

/* A part of the graph without a known pool. */
struct mt_lost_part {
    uint32_t offset;        /* PRIVATE */
    uint16_t colors;        /* at least 2 */
    uint16_t default_color; /* the color that is swapped with color 0 */
    bool is_certain;        /* default_color is certain */
};

struct mt_lost_pools {
    const struct mt_pool_evidence *evidence; /* borrowed */
    /* PRIVATE: by instance */
    uint32_t *part; /* MT_NO_PART = fixed by a known pool */
    uint16_t *color;
    struct mt_lost_part *parts;
    uint32_t part_count;
};

/* Fills *pools with the guess. Release it. */
void mt_lost_pools_guess(const struct mt_pool_evidence *evidence, struct mt_lost_pools *pools);
void mt_lost_pools_release(struct mt_lost_pools *pools);

/* Returns the pool of the segment that an event concerns. */
uint16_t mt_lost_pools_of(const struct mt_lost_pools *pools, const struct mt_event *event);

/* Returns the number of segments (or reservations) in private pools for which at least one event
 * does not name the pool. */
uint32_t mt_lost_pools_count(const struct mt_lost_pools *pools, uint16_t device);

/* Returns the part that event number `seq` concerns, or MT_NO_PART if its pool is known. */
uint32_t mt_lost_pools_part_at(const struct mt_lost_pools *pools, uint64_t seq);

/* mt_lost_pools_turn makes the next color of a part the default pool. mt_lost_pools_ways returns
 * the number of calls after which the part is as before. MT_NO_PART stands for all uncertain parts
 * together, with two alternatives. */
void mt_lost_pools_turn(struct mt_lost_pools *pools, uint32_t part);

static inline uint16_t mt_lost_pools_ways(const struct mt_lost_pools *pools, uint32_t part)
{
    return part < pools->part_count ? pools->parts[part].colors : 2;
}

#endif
