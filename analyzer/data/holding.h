/* A block: its role, its life, and groups of equal blocks. */
#ifndef MT_ANALYZER_HOLDING_H
#define MT_ANALYZER_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols.h"

/* Roles: the purpose of a block. */

enum mt_role {
    MT_ROLE_PARAMETERS,
    MT_ROLE_OPTIMIZER_STATE,
    MT_ROLE_GRADIENTS,
    MT_ROLE_ACTIVATIONS,
    MT_ROLE_TEMPORARIES,
    MT_ROLE_WORKSPACE,
    MT_ROLE_INPUTS,
    MT_ROLE_KV_CACHE,
    MT_ROLE_OTHER,
    MT_ROLE_WEIGHT_COPIES /* of parameters in half precision, which autocast keeps */
};
enum { MT_ROLE_COUNT = MT_ROLE_WEIGHT_COPIES + 1 };

/* "parameters", "optimizer state", ... */
const char *mt_role_name(enum mt_role role);

/* Live blocks of one instant, grouped by what they have in common. */

/* What a block without a stack belongs to, if that can be inferred. */
enum mt_tie {
    MT_TIE_NONE,      /* it has a stack, or nothing can be inferred */
    MT_TIE_PARAMETER, /* a gradient: belongs to a parameter of its size */
    MT_TIE_FORWARD,   /* made by backward: belongs to a block of its size that forward made */
    MT_TIE_LIBRARY,   /* a workspace: belongs to the library that takes such sizes */
    MT_TIE_PHASE,     /* only the phase in which it was allocated is known */
    MT_TIE_BEFORE     /* allocated before the recorded history */
};
enum { MT_TIE_COUNT = MT_TIE_BEFORE + 1 };

/* "nothing", "parameter", "forward_site", "library", "phase", "before". */
const char *mt_tie_name(enum mt_tie tie);

/* Live blocks of one instant with the same stack, phase of allocation, role, tag and size: the
 * leaves of an icicle. Sorted by bytes descending, then stack, phase, role, size. */
struct mt_holding {
    uint32_t stack; /* MT_NO_ID = none recorded */
    uint32_t tied;  /* PARAMETER, FORWARD: stack of the owner; otherwise MT_NO_ID */
    enum mt_tie tie;
    int32_t phase; /* of allocation */
    enum mt_role role;
    bool role_recorded;   /* the trace has the role; otherwise it is inferred */
    uint32_t tag;         /* string id: the program's own name for it; MT_NO_ID = none */
    uint64_t block_bytes; /* of each */
    uint64_t blocks, bytes, requested_bytes;
    uint64_t first_birth_t_ns, first_birth_event;
};

/* The stack that determines a block's site: that of its owner, otherwise its own. A library's
 * workspace has none, even if native frames were recorded. */
static inline uint32_t mt_stack_of_site(enum mt_tie tie, uint32_t tied, uint32_t stack)
{
    if (tied != MT_NO_ID)
        return tied;
    return tie == MT_TIE_LIBRARY ? MT_NO_ID : stack;
}

/* One block of a device, from its request until every stream has finished with it. The pass
 * `blocks` keeps one for each block; models of charts read it there. */

enum mt_block_life_state { MT_LIFE_UNUSED, MT_LIFE_LIVE, MT_LIFE_WAITING };

/* An event that ends a block: the request to free it, or its completion, after which no stream uses
 * it. event UINT64_MAX: there is none in the trace. */
struct mt_block_end {
    uint64_t t_ns, event;
};

struct mt_block_life {
    uint64_t addr, requested_bytes, block_bytes;
    uint64_t birth_t_ns, birth_event;
    struct mt_block_end end; /* of a block that waits: the request */
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
