/* Evidence from the first blocks of a trace that begins in the middle, by size, for the rules of
 * initial_roles.h: how many blocks of a size stay, and how many backward, the optimizer and the
 * model's calls make and free. */
#ifndef MT_ANALYZER_EARLY_EVIDENCE_H
#define MT_ANALYZER_EARLY_EVIDENCE_H

#include "early_blocks.h"
#include "stack_kinds.h"

/* A leak is visible only if a second turn also leaves a block behind. */
#define MT_EARLY_MIN_LEFT_BEHIND 2

/* Blocks of one size on one device. */
struct mt_early_sizes {
    const struct mt_early_block **members; /* by allocation */
    size_t count;
    uint64_t bytes;
    uint32_t gradients;          /* maximum at one time */
    bool clears_gradients;       /* some are freed where gradients are cleared */
    uint32_t stay;               /* initial ones that stay, with unknown role */
    uint32_t end_late;           /* of `stay`: those that end after the model's work */
    uint32_t parameters, states; /* initial ones that stay, with a role from their stacks */
    uint32_t by_calls;     /* initial ones, made by the model's calls according to the stack */
    uint32_t left_behind;  /* left behind by the model's calls in this trace */
    uint32_t kept;         /* made by the model's calls, and not freed in them */
    uint32_t born_late;    /* gradients that a complete part of backward left behind */
    uint32_t passed;       /* made and freed by backward */
    uint32_t updated;      /* made and freed by the optimizer */
    uint32_t replaced;     /* initial ones that the optimizer freed */
    uint32_t replacements; /* blocks that the optimizer had left behind by then */
};

/* Bytes by role of the blocks that were allocated in the trace and ended in another part of it. */
struct mt_early_ends {
    uint64_t bytes[MT_ROLE_COUNT];
};

struct mt_early_evidence {
    struct mt_early_blocks *early;
    const struct mt_early_block **sorted;
    size_t sorted_count;
    struct mt_early_sizes *sizes;
    size_t size_count;
    uint32_t *ends;                            /* room for all members of one size */
    const struct mt_early_sizes *end_sizes;    /* argument of the last call of role_of_end */
    uint8_t end_roles[MT_STACK_KIND_MASK + 1]; /* its results by kind: 1 + role; 0 = none */
    struct mt_early_ends by_kind[MT_PHASE_OPTIMIZER + 1];
    uint64_t gradient_bytes, stay_bytes, replaced_bytes;
    uint64_t cleared_bytes; /* of gradients, for sizes that are freed where gradients are cleared */
    uint32_t each;          /* rule 6: blocks per parameter; 0 = it does not apply */
    bool in_pieces;         /* sizes without gradients are state in pieces */
    bool in_buckets;        /* sizes without gradients are buckets */
    uint32_t states;        /* blocks that the optimizer keeps per parameter */
    uint32_t wide_states;   /* the same, for blocks of twice the parameter's size */
    uint32_t updates; /* blocks that the optimizer makes and frees per parameter, if it works on the
                         pieces of flat ones; otherwise 0 */
    bool optimizer_tells; /* the optimizer works on most of the blocks that stay, which are thus
                             parameters */
    bool third_is_open; /* there are three states, of which the third may be a copy of the model */
};
/* Gathers the evidence. O(n log n). Zeroed memory with `early` set is ready; release it even after
 * an error. */
void mt_early_evidence_gather(struct mt_early_evidence *evidence);
void mt_early_evidence_release(struct mt_early_evidence *evidence);

/* Returns the blocks of size `bytes` on the device of `like`, or NULL. O(log n). */
struct mt_early_sizes *mt_early_sizes_of(const struct mt_early_evidence *evidence,
                                         const struct mt_early_sizes *like, uint64_t bytes);

/* Returns true if an initial block exists as long as the model works. */
bool mt_early_stays(const struct mt_early_blocks *early, const struct mt_early_block *block);

/* Returns true if rules about sizes may decide the role of the block: no stack identifies it, and
 * it is not a block that a model's call left behind. */
bool mt_early_is_open(const struct mt_early_block *block);

/* Returns true if the trace begins in a call of the model after which no other part follows: the
 * call failed, or the trace ends in it. */
bool mt_early_is_one_call(const struct mt_early_blocks *early);

/* Returns true if the end of the block is evidence for other blocks with the same kind of end. */
bool mt_early_is_witness(const struct mt_early_block *block);
void mt_early_ends_add(struct mt_early_ends *ends, const struct mt_early_block *block);

/* Returns true if the optimizer replaces blocks of this size one for one. The block that it makes
 * when it frees the last one is not counted. In contrast, an optimizer that makes its state and
 * frees the gradients leaves more blocks than it frees. */
bool mt_early_are_replaced(const struct mt_early_sizes *sizes);

/* Returns the number of blocks that are not parameters and whose stacks do not show another
 * role. */
uint32_t mt_early_beyond_parameters(const struct mt_early_sizes *sizes);

/* Returns true if blocks of this size are workspaces: they have the size of a workspace, and there
 * are few of them (workspaces.h). */
bool mt_early_are_workspaces(const struct mt_early_sizes *sizes);

#endif
