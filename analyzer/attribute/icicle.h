/* Who holds the memory of an instant, as a tree: callers above callees, their
 * blocks as leaves. Plumbing frames are left out, their bytes stay with their
 * callers. Blocks without a stack hang below one node for each phase name in
 * which they were born, and there below what they belong to, if that is known. */
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
    MT_NODE_NO_STACK, /* `phase` has the name, MT_NO_PHASE: outside of any */
    MT_NODE_TIED,     /* below it: what blocks belong to (mt_tie_label) */
    MT_NODE_BLOCKS    /* a leaf: blocks of one size and role, of one parent */
};

/* What width is. */
enum mt_weigh { MT_WEIGH_ALLOCATED, MT_WEIGH_REQUESTED, MT_WEIGH_COUNT };
enum { MT_WEIGH_KINDS = MT_WEIGH_COUNT + 1 };

/* "allocated", "requested", "count". */
const char *mt_weigh_name(enum mt_weigh weigh);
/* "6.45 GiB", "692 blocks". Returns `text`. */
char *mt_weigh_format(char text[MT_UNITS_TEXT], enum mt_weigh weigh, uint64_t weight);

struct mt_node {
    enum mt_node_kind kind;
    uint32_t parent;        /* index; the root is its own */
    uint32_t depth;         /* 0 at the root */
    uint32_t end;           /* index behind the last node below this one */
    uint32_t frame;         /* FRAME: id; TIED: site of what it belongs to, or MT_NO_ID */
    uint32_t own;           /* TIED: the user's frame beside it, or MT_NO_ID */
    enum mt_tie tie;        /* TIED: how */
    int32_t phase;          /* NO_STACK: shown phase; BLOCKS: phase of birth of one */
    const char *phase_name; /* NO_STACK: of the phase, "" = none */
    bool is_engine;         /* NO_STACK: in backward, so the autograd engine's */
    bool is_initial;        /* NO_STACK: there when the trace began */
    enum mt_role role;      /* BLOCKS: theirs; else that of most of its own bytes */
    uint64_t block_bytes;   /* BLOCKS: of each; 0 = of several sizes */
    uint64_t bytes, blocks, requested_bytes;
    uint64_t own_bytes, own_blocks; /* of BLOCKS directly below */
    uint64_t weight, own_weight;    /* what its width says, by the options */
    uint64_t offset;                /* weight to the left of it, from the root's left edge */
};

struct mt_icicle {
    struct mt_node *nodes; /* the root first, each before what is below it;
                              siblings by weight descending, then name */
    uint32_t count;
    uint32_t depth; /* of the deepest node */
    enum mt_weigh weigh;
};

struct mt_icicle_options {
    bool reversed; /* innermost frame first, its callers below it */
    enum mt_weigh weigh;
    uint64_t first_event; /* what was born before was there when the trace began */
};

/* phases and symbols are those that the holdings refer to. O(n log n). */
enum mt_status mt_icicle_build(struct mt_arena *arena, const struct mt_holding *holdings,
                               uint32_t holding_count, const struct mt_phase *phases,
                               uint32_t phase_count, const struct mt_symbols *symbols,
                               const struct mt_icicle_options *options,
                               struct mt_icicle **icicle) MT_MUST_USE;

/* What a node is called: "forward train.py:47", "autograd engine", "no stack, in
 * warm-up", "backward of Net.forward model.py:77", "allocated before recording started", "30 × 16.0
 * MiB", "30 blocks", "all". */
const char *mt_node_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                          const struct mt_node *node);

/* Folded stacks, one line for each node with blocks of its own (or, with
 * blocks, for each leaf): names from the root joined by ';', a space, weight. A
 * ';' within a name becomes ':'. */
void mt_icicle_fold(const struct mt_icicle *icicle, const struct mt_symbols *symbols,
                    bool with_blocks, struct mt_buf *out);

/* The phase as pictures name it: itself or the nearest around it that the
 * framework did not insert; MT_NO_PHASE if there is none. */
int32_t mt_shown_phase(const struct mt_phase *phases, uint32_t phase_count, int32_t phase);

/* Is it, or is what is around it, called backward? */
bool mt_phase_is_backward(const struct mt_phase *phases, uint32_t phase_count, int32_t phase);

#endif
