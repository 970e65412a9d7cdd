/* Finds layers among the parameters of a model from the order in which they were made: a program
 * makes or moves them module by module, so equal layers appear as one sequence of sizes and stacks
 * that repeats n times.
 *
 * A repeat is a group of layers if the model's calls enter a function the same number of times
 * (forward_logs.h). The two pieces of evidence are independent. If they enter it one more time than
 * the repeat has turns, the first layer differs from the others (a ResNet's stage): it directly
 * precedes the repeat, is made at the same depth in the tree of modules, and belongs to no other
 * repeat. If several groups or repeats have the same number of turns, there must be as many groups
 * as repeats, in a known order: the groups belong to calls of one model, and a group with another
 * number is between them, or the gradients come in reverse order. The layers must hold half of the
 * parameters. If no call is repeated (a compiled model), a repeat of at least three turns that
 * holds half of the parameters also counts as layers. If a call did not end, its current group
 * matches the only repeat that has at least as many turns. */
#ifndef MT_ANALYZER_PARAMETER_LAYERS_H
#define MT_ANALYZER_PARAMETER_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_NO_LAYER UINT32_MAX

/* A parameter. The array is in the order in which the parameters were made. */
struct mt_parameter {
    uint64_t requested_bytes;
    uint32_t node;           /* the Python frames of its stack (python_tree.h); MT_NO_ID = none */
    uint32_t depth;          /* depth of `node` */
    bool has_gradient;       /* a gradient was observed */
    uint64_t gradient_event; /* event of the first gradient */
    bool is_buffer;          /* moved after the parameters of its module: has no gradient */
    uint32_t group, layer;   /* results; both MT_NO_LAYER if none */
    bool is_repeated; /* result: in a repeat without a group, so in layers of an unknown function */
};

/* A function that a model's calls enter repeatedly. The array is in the order of these calls. */
struct mt_layer_group {
    uint32_t times;
    uint32_t call;     /* the model's call; groups of two calls have no order */
    bool is_cut;       /* the call did not end, so its number is a lower bound */
    bool is_confirmed; /* result: the parameters also repeat */
};

/* Fills group and layer of each parameter. Group number `count` is for a model whose calls show no
 * layers; *own is its number of layers, 0 if it has none. `own` is NULL if the calls of the model
 * are recorded and would show layers. */
void mt_parameter_layers_find(struct mt_parameter *parameters, size_t parameter_count,
                              struct mt_layer_group *groups, uint32_t count, uint32_t *own);

/* A block of an optimizer's state. The array is in the order in which the blocks were made. */
struct mt_state_block {
    uint64_t requested_bytes;
    uint32_t node;
    uint32_t parameter; /* result: index of its parameter; MT_NO_LAYER = none */
};

/* Finds the parameter that each block of state belongs to. Optimizers make their state parameter by
 * parameter, in the order of the parameters within each parameter group. Blocks with one stack are
 * the same tensor of the state for different parameters: the k-th block of a size belongs to the
 * k-th parameter of that size, if there are as many blocks as parameters. Parameters are all except
 * buffers, or those with a gradient. Blocks of another size with their own stack (step counters)
 * exist once per parameter, in the same order. If the numbers do not match, the blocks get no
 * parameter. */
void mt_state_owners_find(struct mt_state_block *states, size_t state_count,
                          const struct mt_parameter *parameters, size_t parameter_count);

/* Finds contiguous repetitions in a sequence of tokens: "e abc abc abc n" has abc three times. The
 * parameters of a model, in the order in which they were made, repeat in this way, layer by
 * layer. */

/* Longer sequences are skipped, because the time of the search is quadratic in their length. */
#define MT_REPEATS_TOKENS_MAX 8192
#define MT_REPEATS_MAX        64

struct mt_repeat {
    size_t begin, period, times; /* tokens [begin, begin + period * times) */
    size_t more; /* number of further tokens that continue the period but do not complete it: the
                    repeat may begin up to this many tokens later */
};

struct mt_repeats {
    struct mt_repeat list[MT_REPEATS_MAX]; /* in order, without overlap */
    uint32_t count;
};

/* Finds the repeat that covers the most tokens, then those to its left and to its right. Among
 * equals, chooses the one with the shortest period, then the first. A period has at least two
 * different tokens, because a repeated size alone is no evidence. */
void mt_repeats_find(const uint64_t *tokens, size_t count, struct mt_repeats *repeats);

#endif
