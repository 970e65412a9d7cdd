/* Roles of blocks of a trace that begins in the middle: the first blocks, the evidence in them, and
 * the roles that follow. */
#ifndef MT_ANALYZER_EARLY_ROLES_H
#define MT_ANALYZER_EARLY_ROLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holding.h"
#include "work_kinds.h"

/* The sizes of the workspaces of cuBLAS. */

/* Taken once per handle and stream: more blocks are tensors that happen to have the size. */
#define MT_WORKSPACES_MAX 6

/* cuBLASLt's, taken once; tensors often have that size. */
#define MT_LT_WORKSPACE_BYTES (UINT64_C(1) << 20)

/* Before Hopper, and since. */
static const uint64_t mt_workspace_bytes[] = {8519680, UINT64_C(32) << 20};

static inline bool mt_is_workspace(uint64_t requested_bytes)
{
    return requested_bytes == mt_workspace_bytes[0] || requested_bytes == mt_workspace_bytes[1];
}

/* Roles of blocks that were alive when the trace began. The allocation of such a block is unknown,
 * and usually it has no stack. The only evidence is later: when blocks of its size are allocated
 * and freed. This evidence is weaker than an allocation in the trace. The rules are tried in this
 * order, each for the blocks that earlier rules leave open:
 *
 * 1. The block's own stack identifies it (roles.c). Such blocks are evidence for the other rules.
 * 2. The place of a block's end. Blocks freed where gradients are cleared are gradients. Blocks
 *    that the optimizer frees while it leaves as many of that size behind are its state, which it
 *    makes again in each step. Blocks freed in the part that was running when the trace began are
 *    activations if that part is backward, or if it keeps blocks of their size and makes none after
 *    their end: results of the call before. Otherwise they are temporaries. (Temporaries that
 *    backward made before the trace look like activations.) Any other block gets the role of most
 *    bytes that have the same end and whose allocation is in the trace: among blocks of its size,
 *    or otherwise among all. A batch ends where the next one is fetched, and activations end in
 *    backward.
 * 3. A gradient has the size of its parameter. Backward leaves n blocks of a size behind at one
 *    time: n of the blocks of that size that stay are parameters. If stacks name the parameters,
 *    the rule is reversed.
 * 4. Optimizers keep m blocks of the size of each parameter, the same m for all: 1 with momentum, 2
 *    with Adam, 3 with AMSGrad. The rule takes the largest m for which nearly all of these blocks
 *    exist, and counts only blocks beyond those of rule 3. The third block may also be a copy of
 *    the model (an average of its parameters, a teacher). State and copies are both made once and
 *    changed in place, so the role of the third block is unknown. The state of parameters that
 *    share one block (cuDNN's flat weights) is in pieces: m of each, which together have the
 *    missing bytes. If there are no such blocks, blocks of twice the size are the state and the
 *    copy of the parameters in a model that computes in half precision.
 * 5. Blocks of other sizes with the total bytes of all gradients, in fewer blocks, are DDP's
 *    buckets, which are gradients.
 * 6. Gradients that are cleared in place are allocated once, so no allocation shows n. Then every
 *    parameter has the same number of blocks of its size: the parameter, its gradient, its state.
 *    Embeddings exist once, so this number is the largest of 2 to 4 that divides nearly all counts
 *    of blocks of a size. Blocks that backward makes and frees again, once for each parameter, are
 *    better evidence, if it makes no more blocks of a size than exist. Only parts of backward whose
 *    start is in the trace count. The rule does not apply if most gradients are freed where
 *    gradients are cleared, or if their stacks show backward. It applies if the trace begins in
 *    backward and no later turn leaves gradients behind: then the first part left some of them, and
 *    later turns add to them. Without any part of backward whose start is in the trace, the
 *    optimizer identifies the sizes of parameters: it makes and frees blocks of their size, if it
 *    does so for most of the blocks that stay. It also does so for the pieces of a flat parameter.
 *    Blocks of the size of such a piece are only state, and together they have the bytes of the
 *    flat blocks. Half of the flat blocks are then parameters, and half are gradients. If whole
 *    parts of backward make no blocks of most of these sizes, and leave no gradient of the largest
 *    size, there are no gradients. If calls of the model keep nothing for backward, and the trace
 *    has no other part of a step, counts show nothing: equal models have the same number of blocks
 *    of each size.
 * 7. Blocks with the sizes of cuBLAS's workspaces are workspaces if the model's calls made few of
 *    that size; 1 MiB counts if a stack shows the call.
 * 8. If the model's calls leave one more block of a size behind in each turn, older blocks of that
 *    size are the same, so activations. Sizes that the call in which the trace begins keeps are
 *    also activations if the trace has only this call: it failed, and its earlier blocks stay. A
 *    range whose start is in the trace shows the whole call.
 * 9. Blocks that stay while the model works are its parameters: frozen ones, buffers, and all of
 *    them if nothing goes backward.
 *
 * If the trace has no part of a model's work, nothing is inferred: the role stays "other". */

/* The first blocks of a trace that begins in the middle: where they were allocated and freed.
 * Roles are inferred from them.
 *
 * Costs 32 bytes for each of the first million allocations if the trace has blocks that were alive
 * when it began; otherwise nothing. */

#define MT_EARLY_LIVES UINT32_MAX

struct mt_early_block {
    uint64_t bytes;    /* requested, rounded up: old snapshots have only rounded sizes */
    uint32_t ended;    /* number of allocations before its end; MT_EARLY_LIVES */
    uint32_t end_turn; /* parts of backward begun before its end */
    uint16_t device;
    uint8_t birth_kind, end_kind;
    uint8_t stack_kind; /* initial: from its stack, enum mt_phase_kind */
    uint8_t role;       /* enum mt_role, MT_ROLE_OTHER = unknown */
    bool left_behind;   /* by the model's call, over several turns */
    bool initial;       /* alive when the trace began */
    bool died_in_part;  /* freed in the same part in which it was allocated */
    bool in_named_part; /* allocated in a part whose start is in the trace: a range that the program
                           or its framework named. In the argument of mt_early_blocks_end: freed in
                           such a part */
};

/* By the number of the allocation. Zeroed memory is ready. */
struct mt_early_blocks {
    struct mt_early_block *blocks;
    size_t count, capacity;
    size_t initial_count;    /* initial blocks come first */
    uint32_t first_part_end; /* allocations until a part began other than the one in which the trace
                                began; 0 = none */
    uint32_t last_part_end;  /* allocations until the last event in a part */
    uint32_t turns;          /* parts of backward begun */
    uint8_t first_kind, last_kind;
    bool begun, saw_part;
    bool first_is_named; /* the start of the part in which the trace begins is in the trace */
    bool keeps_no_graph; /* calls of the model keep nothing for backward */
};

/* A part of a training step. */
static inline bool mt_early_is_part(uint8_t kind)
{
    return mt_phase_is_forward(kind) || kind == MT_PHASE_BACKWARD || kind == MT_PHASE_OPTIMIZER;
}

void mt_early_blocks_release(struct mt_early_blocks *early);

/* Takes allocation number `allocation`, in order. Returns immediately if the first one was not
 * alive when the trace began. */
void mt_early_blocks_birth(struct mt_early_blocks *early, uint64_t allocation,
                           const struct mt_early_block *block);

/* Takes the end of a block: kind, died_in_part and in_named_part are set; for blocks that were not
 * alive when the trace began also the role, if it is settled, and left_behind. */
void mt_early_blocks_end(struct mt_early_blocks *early, uint64_t allocation,
                         const struct mt_early_block *end);

/* Returns the role of an initial block according to its stack; MT_ROLE_OTHER = unknown. */
enum mt_role mt_initial_role_by_stack(enum mt_phase_kind kind, bool kept);

/* Call it after the last event. Sets the roles of initial blocks that are still unknown. */
void mt_initial_roles_infer(struct mt_early_blocks *initial);

/* Evidence from the first blocks, by size, for the rules above: how many blocks of a size stay, and
 * how many backward, the optimizer and the model's calls make and free. */

/* A leak is visible only if a second turn also leaves a block behind. */
#define MT_EARLY_MIN_LEFT_BEHIND 2

/* Blocks of one size on one device. */
struct mt_early_sizes {
    const struct mt_early_block **members; /* by allocation */
    size_t count;
    uint64_t bytes;
    uint32_t gradients;          /* maximum at one time */
    bool clears_gradients;       /* some are freed where gradients are cleared, or their stacks show
                                    backward */
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
    uint64_t cleared_bytes; /* of gradients, for sizes with clears_gradients */
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
static inline bool mt_early_is_open(const struct mt_early_block *block)
{
    return block->role == MT_ROLE_OTHER && block->stack_kind != MT_PHASE_FORWARD &&
           block->stack_kind != MT_PHASE_LOSS;
}

/* Returns true if the trace begins in a call of the model after which no other part follows: the
 * call failed, or the trace ends in it. */
bool mt_early_is_one_call(const struct mt_early_blocks *early);

/* Returns true if the end of the block is evidence for other blocks with the same kind of end. */
static inline bool mt_early_is_witness(const struct mt_early_block *block)
{
    return !block->initial && block->ended != MT_EARLY_LIVES && !block->died_in_part;
}

static inline void mt_early_ends_add(struct mt_early_ends *ends, const struct mt_early_block *block)
{
    ends->bytes[block->role] += block->bytes;
}

/* Returns true if the optimizer replaces blocks of this size one for one. The block that it makes
 * when it frees the last one is not counted. In contrast, an optimizer that makes its state and
 * frees the gradients leaves more blocks than it frees. */
bool mt_early_are_replaced(const struct mt_early_sizes *sizes);

/* Returns true if blocks of this size are workspaces: they have the size of a workspace, and there
 * are few of them. */
bool mt_early_are_workspaces(const struct mt_early_sizes *sizes);

/* Infers the number of blocks per parameter: the parameter, its gradient, the optimizer's state.
 * These are rules 3 to 6. */

/* Maximum number of blocks per parameter: the parameter, its gradient, and two blocks of Adam's
 * state. */
#define MT_EARLY_MAX_EACH 4

/* Sets the members of *evidence that rules 3 to 6 determine (`each`, `states` and those after
 * them). O(sizes). */
void mt_early_counts_infer(struct mt_early_evidence *evidence);

/* Returns the number of parameters of a size that have a gradient, including gradients that were
 * not allocated in the trace. Call it only if evidence->updates is not 0. */
uint32_t mt_early_pairs(const struct mt_early_evidence *evidence,
                        const struct mt_early_sizes *sizes);

/* Returns the number of blocks of a size that remain after rules 3 and 4, and that do not look like
 * blocks of rules 7 and 8. */
uint32_t mt_early_left_over(const struct mt_early_evidence *evidence,
                            const struct mt_early_sizes *sizes);

/* Returns true if no part of backward starts within the trace. */
bool mt_early_began_in_last_turn(const struct mt_early_blocks *early);

#endif
