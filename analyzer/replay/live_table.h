/* Live allocations of the trace by recorded address. */
#ifndef MT_ANALYZER_LIVE_TABLE_H
#define MT_ANALYZER_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

/* Handle of an allocation that the policy could not serve, and of unused slots. */
#define MT_LIVE_NO_HANDLE UINT32_MAX

struct mt_live {
    uint64_t addr;                    /* recorded */
    uint64_t block_addr, block_bytes; /* the policy's block */
    uint64_t requested_bytes;
    uint64_t allocation; /* number of the allocation in the trace */
    uint32_t handle;     /* the policy's name for the block */
    bool free_requested;
    bool is_tracked; /* the block is in the pool tracks (pool_tracks.h) */
    uint16_t pool;   /* the pool in the run */
    uint32_t next;   /* 1 + the next slot in the chain, or the next unused one; 0 = none */
};

/* A hash table with chains of slots. Zeroed memory is an empty table. Slots are reused. */
struct mt_live_table {
    uint32_t *chains; /* by hash: 1 + the first slot, 0 = none */
    struct mt_live *slots;
    uint32_t count;  /* slots: a power of two; some are unused */
    uint32_t unused; /* 1 + the slot to use next, 0 = none */
};

enum { MT_LIVE_CHAINS = 2 }; /* for each slot */

/* PRIVATE: the chain of an address; only after the first allocation. */
static inline uint32_t *mt_live_chain(const struct mt_live_table *table, uint64_t addr)
{
    return &table->chains[mt_hash_u64(addr) & (MT_LIVE_CHAINS * (size_t)table->count - 1)];
}

/* Returns the live allocation at an address, or NULL. */
static inline struct mt_live *mt_live_find(const struct mt_live_table *table, uint64_t addr)
{
    uint32_t id = table->count ? *mt_live_chain(table, addr) : 0;

    while (id && table->slots[id - 1].addr != addr)
        id = table->slots[id - 1].next;
    return id ? &table->slots[id - 1] : NULL;
}

/* Adds an allocation at an address that has none. The caller fills all other fields, except the
 * link. */
struct mt_live *mt_live_add(struct mt_live_table *table, uint64_t addr);
void mt_live_remove(struct mt_live_table *table, struct mt_live *live);

/* Checks that each slot is unused or belongs to one address. */
bool mt_live_is_sound(const struct mt_live_table *table, const char **why);

void mt_live_release(struct mt_live_table *table);

#endif
