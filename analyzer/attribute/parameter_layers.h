/* Layers among the parameters of a model, told from the order in which they were made:
 * a program makes or moves them module by module, so equal layers show as one sequence
 * of sizes and stacks that comes n times.
 *
 * A repeat is a group of layers if the model's calls enter a function as often
 * (module_calls.h): two witnesses. If they enter it once more, the first layer differs
 * from the others (a ResNet's stage): it is what lies right before the repeat, is made
 * as deep in the tree of modules, and belongs to no other repeat. If several groups or
 * repeats have one number, there must be as many of both, in one order: that of calls of one
 * model, with a group of another number between them or with gradients in the reverse order.
 * The layers must hold half of the parameters. Without any repeated call (a compiled model), a
 * repeat that comes three times or more and holds half of the parameters is layers as well. Of a
 * call that did not end, the group that it was in goes with the only repeat that comes as often or
 * more. */
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
    bool is_buffer;          /* moved behind the parameters of its module: has no gradient */
    uint32_t group, layer;   /* found; MT_NO_LAYER both */
    bool is_repeated; /* found: of a repeat that is no group's; layers of what is not known */
};

/* What a model's calls enter again and again, in the order in which they do. */
struct mt_layer_group {
    uint32_t times;
    uint32_t call;     /* of the model, in which they do; groups of two calls have no order */
    bool is_cut;       /* the call did not end: at least so often */
    bool is_confirmed; /* found: the parameters repeat as well */
};

/* Fills group and layer of each parameter. Group number `count` is the one of a model
 * whose calls show none; *own: its layers, 0 if it is not there. NULL: there are calls that
 * would show them. */
enum mt_status mt_parameter_layers_find(struct mt_parameter *parameters, size_t parameter_count,
                                        struct mt_layer_group *groups, uint32_t count,
                                        uint32_t *own) MT_MUST_USE;

/* A block of an optimizer's state, in the order in which they were made. */
struct mt_state_block {
    uint64_t requested_bytes;
    uint32_t node;
    uint32_t parameter; /* found: index; MT_NO_LAYER */
};

/* Optimizers make their state parameter by parameter, in the order of the parameters
 * within each of their groups. Blocks with one stack are one tensor of the state for
 * each parameter: the k-th of a size is that of the k-th parameter of that size, if
 * there are as many of both; of parameters, all but buffers, or those with a gradient. Blocks
 * of another size with a stack of their own (step counters) are there once for each
 * parameter and follow the order of the others. What does not come out even has none. */
enum mt_status mt_state_owners_find(struct mt_state_block *states, size_t state_count,
                                    const struct mt_parameter *parameters,
                                    size_t parameter_count) MT_MUST_USE;

#endif
