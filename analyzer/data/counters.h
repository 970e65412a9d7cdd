/* Counters of an allocator, in bytes: requested by the program, allocated (blocks in use), active
 * (those, and freed ones that wait for another stream), reserved (taken from the driver). */
#ifndef MT_ANALYZER_COUNTERS_H
#define MT_ANALYZER_COUNTERS_H

#include <stdint.h>

#include "check.h"

/* A level and its largest value so far. */
struct mt_level {
    uint64_t now, peak;
};

static inline void mt_level_add(struct mt_level *level, uint64_t amount)
{
    MT_ASSERT(level->now <= level->peak);
    level->now += amount;
    if (level->now > level->peak)
        level->peak = level->now;
}

static inline void mt_level_sub(struct mt_level *level, uint64_t amount)
{
    MT_ASSERT(amount <= level->now);
    level->now -= amount;
}

/* In bytes, except segments and the counts. */
struct mt_counters {
    struct mt_level requested, allocated, active, reserved, inactive_split;
    struct mt_level segments;
    uint64_t allocations, frees;
    uint64_t device_allocs, device_frees; /* driver calls, including map and unmap */
    uint64_t retries;                     /* the allocator flushed its cache and tried again */
    uint64_t ooms;
};

/* The four levels that reports quote together, at one instant. */
struct mt_bytes {
    uint64_t requested, allocated, active, reserved;
};

static inline struct mt_bytes mt_counters_bytes(const struct mt_counters *counters)
{
    struct mt_bytes bytes = {counters->requested.now, counters->allocated.now, counters->active.now,
                             counters->reserved.now};
    return bytes;
}

/* Returns whether requested <= active, allocated <= active, active <= reserved and inactive_split
 * <= reserved, and whether no level exceeds its peak (not checked for inactive_split). */
static inline bool mt_counters_agree(const struct mt_counters *counters)
{
    return counters->requested.now <= counters->active.now &&
           counters->allocated.now <= counters->active.now &&
           counters->active.now <= counters->reserved.now &&
           counters->inactive_split.now <= counters->reserved.now &&
           counters->requested.now <= counters->requested.peak &&
           counters->allocated.now <= counters->allocated.peak &&
           counters->active.now <= counters->active.peak &&
           counters->reserved.now <= counters->reserved.peak &&
           counters->segments.now <= counters->segments.peak;
}

/* Restarts counting: peaks become the current levels, counts become 0. */
static inline void mt_counters_restart(struct mt_counters *counters)
{
    counters->requested.peak = counters->requested.now;
    counters->allocated.peak = counters->allocated.now;
    counters->active.peak = counters->active.now;
    counters->reserved.peak = counters->reserved.now;
    counters->inactive_split.peak = counters->inactive_split.now;
    counters->segments.peak = counters->segments.now;
    counters->allocations = counters->frees = 0;
    counters->device_allocs = counters->device_frees = 0;
    counters->retries = counters->ooms = 0;
}

#endif
