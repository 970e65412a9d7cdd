/* The live blocks of the driver. A free has only an address; its heap, size and device are looked
 * up here. The lookup also prevents recording a block twice. Each kind of handle is a separate
 * space. Any thread may call these functions; each holds the lock of one partition for a hash
 * lookup. */
#ifndef MT_INJECT_CUPTI_LIVE_H
#define MT_INJECT_CUPTI_LIVE_H

#include <stdbool.h>
#include <stdint.h>

enum mt_cupti_live_space {
    MT_LIVE_NONE,
    MT_LIVE_DEVICE, /* addresses that cuMemFree, cuMemFreeAsync and cuIpcCloseMemHandle accept */
    MT_LIVE_HOST,
    MT_LIVE_ARRAY, /* handles of arrays */
    MT_LIVE_MIPMAPPED,
    MT_LIVE_PHYSICAL, /* handles of cuMemCreate */
    MT_LIVE_MAPPED,   /* addresses where physical memory is mapped */
    MT_LIVE_RESERVED
};

struct mt_cupti_live_block {
    uint64_t addr;
    uint64_t size_bytes;
    uint64_t context; /* the block ends with this context; 0 = it does not end with a context */
    uint64_t handle;  /* MAPPED: physical memory behind it */
    uint32_t pool;
    uint32_t references, mappings; /* the block lives while one of them is not 0 */
    uint8_t space, heap, device;
};

/* Adds a block. If an older block at this address is still alive, its free was missed: the new
 * block replaces it, and *replaced is a copy of the older one. Otherwise replaced->space is
 * MT_LIVE_NONE. Returns false and changes nothing if memory runs out. */
bool mt_cupti_live_put(const struct mt_cupti_live_block *block,
                       struct mt_cupti_live_block *replaced);

bool mt_cupti_live_find(enum mt_cupti_live_space space, uint64_t addr,
                        struct mt_cupti_live_block *found);

/* Removes a block, regardless of its counts, and copies it to *taken. Returns false if there is
 * none. */
bool mt_cupti_live_take(enum mt_cupti_live_space space, uint64_t addr,
                        struct mt_cupti_live_block *taken);

/* The result of mt_cupti_live_count. */
enum mt_cupti_live_outcome { MT_LIVE_UNKNOWN, MT_LIVE_STAYS, MT_LIVE_GONE };

/* Adds to the counts, which never fall below 0. Removes the block when both are 0. */
enum mt_cupti_live_outcome mt_cupti_live_count(enum mt_cupti_live_space space, uint64_t addr,
                                               int references, int mappings,
                                               struct mt_cupti_live_block *block);

/* Removes all blocks of the context, in no particular order, and passes each to `visit`. A lock is
 * held, so `visit` must not call functions of this file. */
typedef void mt_cupti_live_visit(void *user, const struct mt_cupti_live_block *taken);
void mt_cupti_live_take_of_context(uint64_t context, mt_cupti_live_visit *visit, void *user);

/* Call it in a forked child. Removes all blocks without taking a lock. */
void mt_cupti_live_forget(void);

#endif
