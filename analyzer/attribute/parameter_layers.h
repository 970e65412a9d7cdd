/* Finds layers among the parameters of a model from the order in which they were made: a program
 * makes or moves them module by module, so equal layers appear as one sequence of sizes and stacks
 * that repeats n times.
 *
 * A repeat is a group of layers if the model's calls enter a function as often (module_calls.h):
 * two independent pieces of evidence. If they enter it one more time than the repeat has turns, the
 * first layer differs from the others (a ResNet's stage): it directly precedes the repeat, is made
 * at the same depth in the tree of modules, and belongs to no other repeat. If several groups or
 * repeats have the same number of turns, there must be equally many of both, in one order: that of
 * calls of one model, with a group of another number between them or with gradients in the reverse
 * order. The layers must hold half of the parameters. Without any repeated call (a compiled model),
 * a repeat of at least three turns that holds half of the parameters also counts as layers. If a
 * call did not end, its current group matches the only repeat that has at least as many turns. */
#ifndef MT_ANALYZER_PARAMETER_LAYERS_H
#define MT_ANALYZER_PARAMETER_LAYERS_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_NO_LAYER UINT32_MAX

/* In the order in which they were made. */
struct mt_parameter {
    uint64_t requested_bytes;
    uint32_t node;           /* Python's frames of its stack (python_tree.h), MT_NO_ID */
    uint32_t depth;          /* of that */
    bool has_gradient;       /* one was seen */
    uint64_t gradient_event; /* of the first that was */
    bool is_buffer;          /* moved after the parameters of its module: has no gradient */
    uint32_t group, layer;   /* found; MT_NO_LAYER both */
    bool is_repeated;        /* found: of a repeat without a group; layers of something unknown */
};

/* A function that a model's calls enter repeatedly, in the order in which they do. */
struct mt_layer_group {
    uint32_t times;
    uint32_t call;     /* the model's call; groups of two calls have no order */
    bool is_cut;       /* the call did not end: at least this often */
    bool is_confirmed; /* found: the parameters also repeat */
};

/* Fills group and layer of each parameter. Group number `count` is for a model whose calls show
 * none; *own: its number of layers, 0 if there is none. NULL: there are calls that would show
 * them. */
enum mt_status mt_parameter_layers_find(struct mt_parameter *parameters, size_t parameter_count,
                                        struct mt_layer_group *groups, uint32_t count,
                                        uint32_t *own) MT_MUST_USE;

/* A block of an optimizer's state, in the order in which they were made. */
struct mt_state_block {
    uint64_t requested_bytes;
    uint32_t node;
    uint32_t parameter; /* found: index; MT_NO_LAYER */
};

/* Optimizers make their state parameter by parameter, in the order of the parameters within each of
 * their groups. Blocks with one stack are one tensor of the state for each parameter: the k-th of a
 * size belongs to the k-th parameter of that size, if there are equally many of both; parameters
 * are all except buffers, or those with a gradient. Blocks of another size with their own stack
 * (step counters) exist once per parameter and follow the order of the others. Blocks whose numbers
 * do not match get none. */
enum mt_status mt_state_owners_find(struct mt_state_block *states, size_t state_count,
                                    const struct mt_parameter *parameters,
                                    size_t parameter_count) MT_MUST_USE;

#endif
