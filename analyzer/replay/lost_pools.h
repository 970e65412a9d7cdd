/* Pools that a trace has lost. A PyTorch snapshot names the pool of a segment
 * only if the segment is there at the dump: of a CUDA graph or a
 * torch.cuda.MemPool that was deleted before, it does not know any more which
 * segments were its own, and they look like the default pool's.
 *
 * Method: what must have been in different pools (pool_evidence.h) is a graph,
 * and pools are its colours. Known pools are fixed; from them outward each
 * segment gets the first colour that none of its neighbours has, the default
 * pool before others. In parts of the graph without a known pool the two first
 * colours may be the wrong way round. There decide, in this order: a colour
 * that gave memory back and went on being used is the default pool's (a
 * private pool gives back only when it is deleted); a segment that stayed
 * where the default pool's went is private; and what was used in turn with
 * segments of a pool is likely in that pool. If nothing decides, the first part
 * counts as it came, and the others by it.
 *
 * Limits: this is a guess, which only a replay confirms. The caller replays
 * with it, turns parts around where the replay still differs, and keeps what
 * brings the replay further. Two deleted pools that never had to compete are
 * taken for one, which no counter can tell. An OOM has no address: it is taken
 * for one of the pool that the trace says. */
#ifndef MT_ANALYZER_LOST_POOLS_H
#define MT_ANALYZER_LOST_POOLS_H

#include "pool_evidence.h"

#define MT_NO_PART UINT32_MAX

struct mt_lost_pools {
    const struct mt_pool_evidence *evidence; /* borrowed */
    /* PRIVATE: by instance */
    uint32_t *part; /* of the graph; MT_NO_PART = fixed by a known pool */
    uint16_t *colour;
    /* PRIVATE: by part */
    bool *turned;  /* colours 0 and 1 change places */
    bool *certain; /* the way round is no guess */
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

/* The part that could be turned around of what event number `seq` is about,
 * MT_NO_PART if there is none. */
uint32_t mt_lost_pools_part_at(const struct mt_lost_pools *pools, uint64_t seq);
void mt_lost_pools_turn(struct mt_lost_pools *pools, uint32_t part);
/* All parts at once that could be the wrong way round. */
void mt_lost_pools_turn_all(struct mt_lost_pools *pools);

#endif
