/* The state that a replay shows after each event. */
#ifndef MT_ANALYZER_REPLAY_VIEW_H
#define MT_ANALYZER_REPLAY_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"

/* State after one event, as the observer sees it. */
struct mt_replay_view {
    const struct mt_counters *counters; /* of the event's device */
    /* ALLOC: the block that the policy allocated (0 bytes if it failed). FREE_*: the block of the
     * event. */
    uint64_t block_addr, block_bytes;
    /* ALLOC, FREE_*: number of the allocation, 0, 1, 2, ... in order of ALLOC
     * events of the whole trace (all devices), MT_NO_ALLOCATION if unknown. */
    uint64_t allocation;
    /* ALLOC, FREE_*, segment events: the pool of the run, including one that the trace does not
     * name (lost_pools.h). */
    uint16_t pool;
    /* ALLOC: the request was not passed to the policy, because it only fills a gap of a restored
     * pool, and the layout of the simulated pool differs (pool_tracks.h). Its block has 0 bytes,
     * but the request did not fail. */
    bool is_left_out;
};
#define MT_NO_ALLOCATION UINT64_MAX

#endif
