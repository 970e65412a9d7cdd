/* The holders of the memory of an instant as a tree: callers above callees, blocks as leaves.
 * Plumbing frames are omitted, and their bytes count for their callers. Blocks without a stack are
 * below one node per name of the phase in which they were allocated. If the owner of such a block
 * is known, the block is below a node for the owner there. */
#ifndef MT_ANALYZER_ICICLE_H
#define MT_ANALYZER_ICICLE_H

#include "buf.h"
#include "holding.h"
#include "phase.h"
#include "symbols.h"
#include "units.h"

enum mt_node_kind {
    MT_NODE_ROOT,
    MT_NODE_FRAME,
    MT_NODE_NO_STACK, /* blocks without a stack, allocated in `phase`; MT_NO_PHASE: in none */
    MT_NODE_TIED,     /* the owner of the blocks below it (mt_tie_label) */
    MT_NODE_BLOCKS    /* a leaf: blocks of one size and role, of one parent */
};

/* The quantity that the width of a node shows. */
enum mt_weigh { MT_WEIGH_ALLOCATED, MT_WEIGH_REQUESTED, MT_WEIGH_COUNT };
enum { MT_WEIGH_KINDS = MT_WEIGH_COUNT + 1 };

/* "allocated", "requested", "count". */
const char *mt_weigh_name(enum mt_weigh weigh);

/* Formats a weight: "6.45 GiB", "692 blocks". Returns `text`. */
char *mt_weigh_format(char text[MT_UNITS_TEXT], enum mt_weigh weigh, uint64_t weight);

struct mt_node {
    enum mt_node_kind kind;
    uint32_t parent;        /* index; the root is its own */
    uint32_t depth;         /* 0 at the root */
    uint32_t end;           /* index after the last node below this one */
    uint32_t frame;         /* FRAME: frame id; TIED: frame of the owner's site, or MT_NO_ID */
    uint32_t own;           /* TIED: the user's frame of that site (site.h), or MT_NO_ID */
    enum mt_tie tie;        /* TIED: kind of the owner */
    int32_t phase;          /* NO_STACK: shown phase; BLOCKS: phase in which one was allocated */
    const char *phase_name; /* NO_STACK: of the phase, "" = none */
    bool is_engine;         /* NO_STACK: in backward, so the autograd engine allocated the blocks */
    bool is_initial;        /* NO_STACK: the blocks were alive when the trace began */
    enum mt_role role;      /* BLOCKS: their role; otherwise that of most of the own bytes */
    uint64_t block_bytes;   /* BLOCKS: bytes of each block; 0 = of several sizes */
    uint64_t bytes, blocks, requested_bytes; /* including all nodes below */
    uint64_t own_bytes, own_blocks;          /* of BLOCKS directly below */
    uint64_t weight, own_weight;             /* in the unit of mt_icicle_options.weigh */
    uint64_t offset;                         /* weight between the root's left edge and this node */
};

struct mt_icicle {
    struct mt_node *nodes; /* the root first, each node before the nodes below it; siblings by
                              weight, largest first, then by name */
    uint32_t count;
    uint32_t depth; /* of the deepest node */
    enum mt_weigh weigh;
};

struct mt_icicle_options {
    bool reversed; /* the innermost frame at the top, its callers below it */
    enum mt_weigh weigh;
    uint64_t first_event; /* blocks with an earlier birth were alive when the trace began */
};

/* Builds the tree in the arena. The holdings refer to `phases` and `symbols`. O(n log n). */
void mt_icicle_build(struct mt_arena *arena, const struct mt_holding *holdings,
                     uint32_t holding_count, const struct mt_phase *phases, uint32_t phase_count,
                     const struct mt_symbols *symbols, const struct mt_icicle_options *options,
                     struct mt_icicle **icicle);

/* Returns the label of a node, in the arena: "forward train.py:47", "autograd engine", "no stack,
 * in warm-up", "backward of Net.forward model.py:77", "allocated before recording started", "30 ×
 * 16.0 MiB", "30 blocks", "all". */
const char *mt_node_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                          const struct mt_node *node);

/* Appends folded stacks: one line for each node with blocks of its own, or for each leaf if
 * `with_blocks`. A line has the names from the root joined by ';', a space, and the weight. A ';'
 * in a name becomes ':'. */
void mt_icicle_fold(const struct mt_icicle *icicle, const struct mt_symbols *symbols,
                    bool with_blocks, struct mt_buf *out);

/* Returns the phase that pictures name: the phase itself, or the nearest one around it that the
 * framework did not insert; MT_NO_PHASE if there is none. */
int32_t mt_shown_phase(const struct mt_phase *phases, uint32_t phase_count, int32_t phase);

/* Returns whether the name of the phase, or of a phase around it, means backward. */
bool mt_phase_is_backward(const struct mt_phase *phases, uint32_t phase_count, int32_t phase);

#endif
