/* Blocks alive at one instant, grouped by what they have in common. */
#ifndef MT_ANALYZER_HOLDING_H
#define MT_ANALYZER_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "role.h"
#include "symbols.h"

/* What a block without a stack belongs to, as far as that shows. */
enum mt_tie {
    MT_TIE_NONE,      /* it has a stack, or nothing shows */
    MT_TIE_PARAMETER, /* a gradient: of a parameter of its size */
    MT_TIE_FORWARD,   /* made by backward: of a block of its size that forward made */
    MT_TIE_LIBRARY,   /* a workspace: of the library that takes such */
    MT_TIE_PHASE,     /* only of the phase that it was born in */
    MT_TIE_BEFORE     /* born before the recorded history, which does not tell */
};
enum { MT_TIE_COUNT = MT_TIE_BEFORE + 1 };

/* "nothing", "parameter", "forward_site", "library", "phase", "before". */
const char *mt_tie_name(enum mt_tie tie);

/* Blocks alive at one instant that share stack, phase of birth, role, tag and size:
 * the leaves of an icicle. Sorted by bytes descending, then stack, phase,
 * role, size. */
struct mt_holding {
    uint32_t stack; /* MT_NO_ID = none recorded */
    uint32_t tied;  /* PARAMETER, FORWARD: stack of what it belongs to; else MT_NO_ID */
    enum mt_tie tie;
    int32_t phase; /* of birth */
    enum mt_role role;
    bool role_recorded;   /* the trace says so, else it is inferred */
    uint32_t tag;         /* string id: what the program said that it is; MT_NO_ID = nothing */
    uint64_t block_bytes; /* of each */
    uint64_t blocks, bytes, requested_bytes;
    uint64_t first_birth_t_ns, first_birth_event;
};

/* The stack whose site a block has: that of what it belongs to, else its own. A library's workspace
 * has none, whatever native frames were recorded. */
static inline uint32_t mt_stack_of_site(enum mt_tie tie, uint32_t tied, uint32_t stack)
{
    if (tied != MT_NO_ID)
        return tied;
    return tie == MT_TIE_LIBRARY ? MT_NO_ID : stack;
}

#endif
