/* Pools that a trace has lost. A PyTorch snapshot names the pool of a segment
 * only if the segment is there at the dump: of a CUDA graph or a
 * torch.cuda.MemPool that was deleted before, it does not know any more which
 * segments were its own, and they look like the default pool's.
 *
 * Method: what must have been in different pools (pool_evidence.h) is a graph,
 * and pools are its colours. Known pools are fixed; from them outward each
 * segment gets a colour that none of its neighbours has, those first that can
 * choose least: the default pool if possible, else a private one, the same for
 * all that went in one flush. In parts of the graph without a known pool any
 * colour may be the default pool's. There decide, in this order: a colour that
 * gave memory back and went on being used is the default pool's (a private pool
 * gives back only when it is deleted); a segment that stayed where the default
 * pool's went is private; and what was used in turn with segments of a pool is
 * likely in that pool. If nothing decides, the first part counts as it came,
 * and the others by it.
 *
 * Limits: this is a guess, which only a replay confirms. The caller replays
 * with it, turns parts around where the replay still differs, and keeps what
 * brings the replay further (pool_search.h). One deleted pool is found; of
 * random programs with two that compete with each other and with the default
 * pool, a quarter stays unexplained (tests/property). Pools that never had to
 * compete are taken for one, which no counter can tell. An OOM has no address:
 * it is taken for one of the pool that the trace says. */
#ifndef MT_ANALYZER_LOST_POOLS_H
#define MT_ANALYZER_LOST_POOLS_H

#include "event.h"
#include "pool_facts.h"

#define MT_NO_PART UINT32_MAX

/* A part of the graph without a known pool. */
struct mt_lost_part {
    uint32_t offset;         /* PRIVATE */
    uint16_t colours;        /* at least 2 */
    uint16_t default_colour; /* changes places with colour 0 */
    bool is_certain;         /* that one is no guess */
};

struct mt_lost_pools {
    const struct mt_pool_evidence *evidence; /* borrowed */
    /* PRIVATE: by instance */
    uint32_t *part; /* MT_NO_PART = fixed by a known pool */
    uint16_t *colour;
    struct mt_lost_part *parts;
    uint32_t part_count;
};

enum mt_status mt_lost_pools_guess(const struct mt_pool_evidence *evidence,
                                   struct mt_lost_pools *pools) MT_MUST_USE;
void mt_lost_pools_release(struct mt_lost_pools *pools);

/* The pool of the segment that an event is about or lies in. */
uint16_t mt_lost_pools_of(const struct mt_lost_pools *pools, const struct mt_event *event);

/* Segments (or reservations) in private pools of which the trace does not, or
 * not everywhere, say so. */
uint32_t mt_lost_pools_count(const struct mt_lost_pools *pools, uint16_t device);

/* The part of what event number `seq` is about, MT_NO_PART if its pool is
 * known. */
uint32_t mt_lost_pools_part_at(const struct mt_lost_pools *pools, uint64_t seq);

/* Makes the next colour of a part the default pool's; after as many turns as
 * there are ways it is as before. MT_NO_PART: all parts at once that are not
 * certain, which has two ways. */
void mt_lost_pools_turn(struct mt_lost_pools *pools, uint32_t part);
uint16_t mt_lost_pools_ways(const struct mt_lost_pools *pools, uint32_t part);

#endif
