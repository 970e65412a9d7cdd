/* One block of the pass `blocks`, from its request until every stream has finished with it. */
#ifndef MT_ANALYZER_LIVE_BLOCK_H
#define MT_ANALYZER_LIVE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A live block, or one that waits for streams. */
struct mt_holder {
    uint64_t addr, requested_bytes, block_bytes;
    uint64_t birth_t_ns, birth_event;
    uint32_t stack;
    uint32_t tied;    /* see mt_holding */
    uint32_t tied_to; /* index of the owner when this block was allocated; MT_NO_ID */
    uint32_t stream;
    uint32_t tag; /* string id, MT_NO_ID = none */
    int32_t phase;
    uint32_t next_free; /* index + 1, when unused */
    uint16_t device, heap, pool;
    uint8_t role, tie;
    uint8_t state; /* 0 unused, 1 live, 2 freed but waiting */
    bool initial;
    bool role_recorded;
};

static inline bool mt_holder_is_live(const struct mt_holder *block, uint16_t device)
{
    return block->state == 1 && block->device == device;
}

#endif
