/* Live blocks of one instant, grouped by what they have in common. */
#ifndef MT_ANALYZER_HOLDING_H
#define MT_ANALYZER_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "role.h"
#include "symbols.h"

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

#endif
