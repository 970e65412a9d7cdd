/* Live allocations of the trace by recorded address. */
#ifndef MT_ANALYZER_LIVE_TABLE_H
#define MT_ANALYZER_LIVE_TABLE_H

#include <stdbool.h>

#include "map.h"

/* Handle of an allocation that the policy could not serve. */
#define MT_LIVE_NO_HANDLE UINT32_MAX

struct mt_live {
    uint64_t block_addr, block_bytes; /* the policy's block */
    uint64_t requested_bytes;
    uint64_t allocation; /* number of the allocation in the trace */
    uint32_t handle;     /* the policy's name for the block */
    bool free_requested;
    bool is_tracked; /* the block is in the pool tracks (pool_tracks.h) */
    uint16_t pool;   /* the pool in the run */
};

/* Zeroed memory is an empty table. Slots are reused. */
struct mt_live_table {
    struct mt_map ids; /* recorded address -> slot */
    struct mt_live *slots;
    uint32_t count;
    uint32_t *unused;
    uint32_t unused_count;
    size_t capacity, unused_capacity;
};

/* Returns the live allocation at an address, or NULL. */
struct mt_live *mt_live_find(struct mt_live_table *table, uint64_t addr);

/* Adds an allocation at an address that has none. */
void mt_live_add(struct mt_live_table *table, uint64_t addr, const struct mt_live *live);
void mt_live_remove(struct mt_live_table *table, uint64_t addr);

/* Checks that each slot is unused or belongs to one address. */
bool mt_live_is_sound(const struct mt_live_table *table, const char **why);

void mt_live_release(struct mt_live_table *table);

#endif
