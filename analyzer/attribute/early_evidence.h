/* What the first blocks of a trace that begins in the middle show, by size, for the rules of
 * initial_roles.h: how many of a size stay, and what backward, the optimizer and the model's calls
 * make and free of it. */
#ifndef MT_ANALYZER_EARLY_EVIDENCE_H
#define MT_ANALYZER_EARLY_EVIDENCE_H

#include "early_blocks.h"
#include "stack_kinds.h"

/* A leak shows if a turn more leaves a block more. */
#define MT_EARLY_MIN_LEFT_BEHIND 2

/* Blocks of one size on one device. */
struct mt_early_sizes {
    const struct mt_early_block **members; /* by birth */
    size_t count;
    uint64_t bytes;
    uint32_t gradients;          /* most at once */
    bool clears_gradients;       /* some are freed where gradients are cleared */
    uint32_t stay;               /* initial ones that do, and whose role is not known */
    uint32_t end_late;           /* ... and end when the model's work has */
    uint32_t parameters, states; /* ... and whose role is: by their stacks */
    uint32_t by_calls;           /* initial ones, made by the model's calls, says the stack */
    uint32_t left_behind;        /* by the model's calls in this trace */
    uint32_t kept;               /* made by them, and not freed within them */
    uint32_t born_late;          /* gradients that a whole part of backward left behind */
    uint32_t passed;             /* made and freed by backward */
    uint32_t updated;            /* made and freed by the optimizer */
    uint32_t replaced;           /* initial ones that the optimizer freed, */
    uint32_t replacements;       /* and blocks that it left behind until then */
};

/* Bytes of blocks whose birth was seen, by role, that ended in a part they were not born in. */
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
    const struct mt_early_sizes *end_sizes;    /* the last one that role_of_end was asked for, */
    uint8_t end_roles[MT_STACK_KIND_MASK + 1]; /* and its answers by kind: 1 + role; 0 = none */
    struct mt_early_ends by_kind[MT_PHASE_OPTIMIZER + 1];
    uint64_t gradient_bytes, stay_bytes, replaced_bytes;
    uint64_t cleared_bytes; /* of gradients, of sizes that are freed where they are cleared */
    uint32_t each;          /* rule 6: blocks for each parameter; 0 = it does not apply */
    bool in_pieces;         /* sizes without gradients are state in pieces */
    bool in_buckets;        /* ... or buckets */
    uint32_t states;        /* blocks that the optimizer keeps for a parameter */
    uint32_t wide_states;   /* the same, of twice the size */
    uint32_t updates;       /* blocks that the optimizer makes and frees for each parameter, if
                               it works on the pieces of flat ones; else 0 */
    bool optimizer_tells;   /* it works on most of what stays, and that is parameters */
    bool third_is_open;     /* of three of them, the third may be a copy of the model */
};
/* Sorts and counts; O(n log n). Zeroed memory with `early` set is ready; release it, whatever
 * this returns. */
enum mt_status mt_early_evidence_gather(struct mt_early_evidence *evidence) MT_MUST_USE;
void mt_early_evidence_release(struct mt_early_evidence *evidence);

/* Blocks of `bytes` on the device of `like`; NULL: there are none. O(log n). */
struct mt_early_sizes *mt_early_sizes_of(const struct mt_early_evidence *evidence,
                                         const struct mt_early_sizes *like, uint64_t bytes);

/* An initial block that is there as long as the model works. */
bool mt_early_stays(const struct mt_early_blocks *early, const struct mt_early_block *block);

/* No stack says what it is. What a model's call left behind is nothing that a rule of sizes
 * knows. */
bool mt_early_is_open(const struct mt_early_block *block);

/* The trace begins within a call of the model from which nothing goes on to another part: it
 * failed, or the trace ends with it. */
bool mt_early_is_one_call(const struct mt_early_blocks *early);

/* Its end says what others that end like it are. */
bool mt_early_is_witness(const struct mt_early_block *block);
void mt_early_ends_add(struct mt_early_ends *ends, const struct mt_early_block *block);

/* By the optimizer, one for one, except the one that is made when the last is freed. An optimizer
 * that makes its state and frees the gradients leaves more behind than it frees. */
bool mt_early_are_replaced(const struct mt_early_sizes *sizes);

/* Blocks that are neither parameters nor, by their stacks, anything else. */
uint32_t mt_early_beyond_parameters(const struct mt_early_sizes *sizes);

/* Of that size, and no more than there can be. */
bool mt_early_are_workspaces(const struct mt_early_sizes *sizes);

#endif
