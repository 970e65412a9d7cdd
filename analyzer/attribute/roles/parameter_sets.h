/* Blocks that a program keeps for each of its parameters, and that no framework names: the state of
 * an optimizer of its own, copies of the parameters, gradients that are made once, and blocks that
 * take the place of older ones.
 *
 * The evidence is sizes, order and stacks. A gradient has the size of its parameter. A stack that
 * makes one block for each gradient of a turn makes a set:
 *
 * 1. The parameters are made first. In setup, as many blocks of a size as it has gradients are
 *    parameters, and a stack whose blocks all come later makes another set.
 * 2. Such a set is state if the optimizer's own code replaces it, or if it is made below __init__
 *    in the file of that code, above it. The optimizer's own code is the outermost frame below
 *    torch.optim that is not PyTorch's. In a program without torch.optim it is the function, called
 *    by the program's loop after backward, that makes blocks of the gradients' sizes in at least
 *    two turns.
 * 3. A block takes the place of an older one of its size that is freed while it is the newest, and
 *    that was made in another part. All kept blocks of its stack then have the role of those that
 *    the first ones replaced. Outside of an optimizer they must replace a set.
 * 4. A set that is made after backward, lives through a call of the model each time, and is needed
 *    for it, because the optimizer works only after that call, is a copy of the parameters. (Copies
 *    of gradients are needed by the optimizer.) If the optimizer's own code makes a set after
 *    backward in one turn only, and keeps it, it is state.
 * 5. If backward leaves no gradients, nothing makes buckets, and the optimizer keeps state, then
 *    the only set of setup that comes after blocks of its sizes has the gradients.
 * 6. At least 16 blocks of setup are state, whatever their sizes, if one constructor makes them and
 *    a later function of its file takes their places in backward: an optimizer in hooks.
 *
 * Costs 32 bytes for each of the first million allocations outside of a model's calls. */
#ifndef MT_ANALYZER_PARAMETER_SETS_H
#define MT_ANALYZER_PARAMETER_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holding.h"
#include "symbols.h"
#include "work_kinds.h"

enum mt_set_place {
    MT_SET_NOWHERE, /* in a call of the model, or from before the trace: never in a set */
    MT_SET_SETUP,
    MT_SET_BACKWARD,
    MT_SET_PAUSE, /* between the parts of a step */
    MT_SET_OPTIMIZER
};

struct mt_set_block {
    uint64_t allocation;
    uint32_t units; /* requested bytes in units of 512, rounded up */
    uint32_t stack;
    uint32_t calls;      /* of the model, begun before */
    uint8_t place;       /* enum mt_set_place */
    bool after_backward; /* no other part since then */
    bool is_short;       /* freed in the part that made it; in setup: before the first cycle */
    bool has_ended;
    bool outlives_call; /* alive while a later call of the model begins */
};

/* `stack` made a block in place of an older one. */
struct mt_set_heir {
    uint64_t old, heir; /* allocations; in backward only heirs of setup */
    uint32_t stack;
};

/* Zeroed memory is ready. */
struct mt_parameter_sets {
    struct mt_set_block *blocks; /* by allocation */
    size_t count, capacity;
    struct mt_set_heir *heirs;
    size_t heir_count, heir_capacity;
    uint32_t *step_calls; /* calls of the model, begun before a part of the optimizer; ascending */
    size_t step_count, step_capacity;
    struct mt_set_block newest; /* its place is MT_SET_NOWHERE once it has ended */
    uint32_t *call_units;       /* by call of the model: its largest block */
    size_t call_count, call_capacity;
    uint32_t model_stack; /* 1 + a stack that calls the model */
    uint8_t *roles;       /* by stack: 1 + role */
    size_t role_capacity;
};

void mt_parameter_sets_release(struct mt_parameter_sets *sets);

/* Takes every allocation, in order. */
void mt_parameter_sets_birth(struct mt_parameter_sets *sets, const struct mt_set_block *block);

/* Takes the end of a block that was not made in a call of the model. `end` has allocation, calls at
 * its end, and is_short. */
void mt_parameter_sets_end(struct mt_parameter_sets *sets, const struct mt_set_block *end);

/* The optimizer works, after `calls` calls of the model. */
void mt_parameter_sets_step(struct mt_parameter_sets *sets, uint32_t calls);

/* Settles the roles of stacks. Calls `replaced` for the allocation of each block of setup whose
 * place another block has taken. */
void mt_parameter_sets_infer(struct mt_parameter_sets *sets, const struct mt_symbols *symbols,
                             const struct mt_stack_kinds *kinds,
                             void (*replaced)(void *context, uint64_t allocation), void *context);

/* For a trace without backward, instead: a key-value cache that the program makes before the first
 * call, all of it between the construction of the model and that call. Two stacks with a block for
 * each layer of the model, or one stack with two, make nothing but blocks of one size: the keys and
 * the values. The number of layers is the greatest common divisor of the numbers of parameters of
 * each size. Prepared batches may also have two blocks for each layer. But a layer with attention
 * has at least six parameters, and most calls on a batch make a block at least as large as it. A
 * stack with at least 16 blocks of at least three sizes, all of them sizes of
 * the model's, gets MT_ROLE_OTHER: blocks that end while the loop runs are no inputs. */
void mt_static_caches_infer(struct mt_parameter_sets *sets, const struct mt_stack_kinds *kinds);

/* Releases what only the inference needs. */
void mt_parameter_sets_forget_blocks(struct mt_parameter_sets *sets);

/* Sets the role of kept blocks of that stack, if it makes a set. */
static inline bool mt_parameter_sets_role(const struct mt_parameter_sets *sets, uint32_t stack,
                                          enum mt_role *role)
{
    if (stack >= sets->role_capacity || !sets->roles[stack])
        return false;
    *role = (enum mt_role)(sets->roles[stack] - 1);
    return true;
}

#endif
