/* One block of a device, from its request until every stream has finished with it. The pass
 * `blocks` keeps one for each block; models of charts read it there. */
#ifndef MT_ANALYZER_BLOCK_LIFE_H
#define MT_ANALYZER_BLOCK_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "holding.h"

enum mt_block_life_state { MT_LIFE_UNUSED, MT_LIFE_LIVE, MT_LIFE_WAITING };

struct mt_block_life {
    uint64_t addr, requested_bytes, block_bytes;
    uint64_t birth_t_ns, birth_event;
    uint32_t block;   /* unique among blocks that live at the same time: its index in the pass;
                         if unused, index + 1 of the next unused one, 0: none */
    uint32_t stack;   /* MT_NO_ID = none recorded */
    uint32_t tied;    /* see mt_holding */
    uint32_t tied_to; /* the owner block at its allocation; MT_NO_ID: none, or ambiguous */
    uint32_t stream;  /* symbols */
    uint32_t tag;     /* string id, MT_NO_ID = none */
    int32_t phase;    /* innermost, at its allocation */
    uint16_t device, heap, pool;
    uint8_t role, tie;  /* enum mt_role, enum mt_tie */
    uint8_t state;      /* enum mt_block_life_state; waiting: freed, but a stream uses it */
    bool initial;       /* it is older than the recorded history */
    bool role_recorded; /* the trace has the role; otherwise it is inferred */
};

/* The request to free a block. event UINT64_MAX: the block exists at the end. */
struct mt_block_end {
    uint64_t t_ns, event;
};

static inline bool mt_block_is_live(const struct mt_block_life *block, uint16_t device)
{
    return block->state == MT_LIFE_LIVE && block->device == device;
}

/* A group of this block alone. */
static inline struct mt_holding mt_holding_of(const struct mt_block_life *block)
{
    return (struct mt_holding){.stack = block->stack,
                               .tied = block->tied,
                               .tie = (enum mt_tie)block->tie,
                               .phase = block->phase,
                               .role = (enum mt_role)block->role,
                               .role_recorded = block->role_recorded,
                               .tag = block->tag,
                               .block_bytes = block->block_bytes,
                               .blocks = 1,
                               .bytes = block->block_bytes,
                               .requested_bytes = block->requested_bytes,
                               .first_birth_t_ns = block->birth_t_ns,
                               .first_birth_event = block->birth_event};
}

#endif
