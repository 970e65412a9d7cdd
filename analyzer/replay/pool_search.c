#include "pool_search.h"

#include "pool_evidence.h"

#include <string.h>

/* Number of trials, and of events examined after the first difference: the cause is close to it. */
enum { MAX_TRIALS = 24, NEAR_EVENTS = 64 };

bool mt_pool_reach_is_further(struct mt_pool_reach a, struct mt_pool_reach b)
{
    return a.event > b.event || (a.event == b.event && a.exact > b.exact);
}

/* Rotates a part, or all, and back if the agreement does not extend. */
static enum mt_status try_turned(const struct mt_pool_trial *trial, struct mt_lost_pools *pools,
                                 uint32_t part, struct mt_pool_reach *best, struct mt_error *error)
{
    uint16_t ways = mt_lost_pools_ways(pools, part), way;
    struct mt_pool_reach reach;

    for (way = 1; way < ways; way++) {
        enum mt_status status;
        mt_lost_pools_turn(pools, part);
        status = trial->run(trial->context, pools, &reach, error);
        if (status != MT_OK)
            return status;
        if (mt_pool_reach_is_further(reach, *best)) {
            *best = reach;
            return MT_OK;
        }
    }
    mt_lost_pools_turn(pools, part);
    return MT_OK;
}

/* Rotates parts near the difference, one after the other. */
static enum mt_status improve_pools(const struct mt_pool_trial *trial, struct mt_lost_pools *pools,
                                    struct mt_pool_reach *best, struct mt_error *error)
{
    enum mt_status status = MT_OK;
    uint32_t part, last = MT_NO_PART;
    uint64_t seq;
    int trials = 0;

    if (best->event != UINT64_MAX)
        status = try_turned(trial, pools, MT_NO_PART, best, error);
    for (seq = best->event; status == MT_OK && best->event != UINT64_MAX && trials < MAX_TRIALS &&
                            seq < best->event + NEAR_EVENTS;
         seq++) {
        struct mt_pool_reach before = *best;
        part = mt_lost_pools_part_at(pools, seq);
        if (part == MT_NO_PART || part == last)
            continue;
        last = part;
        trials++;
        status = try_turned(trial, pools, part, best, error);
        if (mt_pool_reach_is_further(*best, before))
            seq = best->event - 1;
    }
    return status;
}

enum mt_status mt_pool_search(struct mt_source *source, const struct mt_pool_trial *trial,
                              struct mt_pool_evidence *evidence, struct mt_lost_pools *pools,
                              struct mt_pool_reach *best, struct mt_error *error)
{
    enum mt_status status;

    memset(evidence, 0, sizeof *evidence);
    memset(pools, 0, sizeof *pools);
    *best = (struct mt_pool_reach){0, 0};
    status = mt_source_rewind(source, error);
    if (status == MT_OK)
        status = mt_pool_evidence_collect(source, evidence, error);
    if (status != MT_OK || evidence->gave_up || evidence->unequal.count + evidence->kept.count == 0)
        return status;
    mt_lost_pools_guess(evidence, pools);
    status = trial->run(trial->context, pools, best, error);
    return status == MT_OK ? improve_pools(trial, pools, best, error) : status;
}
