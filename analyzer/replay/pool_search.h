/* Searches for lost pools (lost_pools.h): replays a guess from the evidence, and rotates the colors
 * of parts where the replay still differs. */
#ifndef MT_ANALYZER_POOL_SEARCH_H
#define MT_ANALYZER_POOL_SEARCH_H

#include "lost_pools.h"
#include "source.h"

/* How far a replay agrees with the trace. */
struct mt_pool_reach {
    uint64_t event; /* the first event that differs, UINT64_MAX = none */
    uint64_t exact;
};

bool mt_pool_reach_is_further(struct mt_pool_reach a, struct mt_pool_reach b);

/* A replay of the whole trace with these pools. */
struct mt_pool_trial {
    void *context;
    enum mt_status (*run)(void *context, const struct mt_lost_pools *pools,
                          struct mt_pool_reach *reach, struct mt_error *error);
};

/* Reads the source from its start. *pools is the best result, to be released before *evidence;
 * best->event is 0 if there was nothing to try. */
enum mt_status mt_pool_search(struct mt_source *source, const struct mt_pool_trial *trial,
                              struct mt_pool_evidence *evidence, struct mt_lost_pools *pools,
                              struct mt_pool_reach *best, struct mt_error *error) MT_MUST_USE;

#endif
