/* Assigns each live block of a model to a parameter: itself, its gradient, or its state. Parameters
 * are numbered in the order in which they were made, and grouped into layers. */
#ifndef MT_ANALYZER_MODULE_NUMBERS_H
#define MT_ANALYZER_MODULE_NUMBERS_H

#include "module_block.h"
#include "parameter_layers.h"

/* The live blocks of an instant. */
struct mt_module_input {
    const struct mt_symbols *symbols;
    const struct mt_phases *phases;
    const struct mt_forward_logs *logs;   /* settled */
    const struct mt_module_block *blocks; /* with their indices, live or not */
    size_t count;
};

struct mt_module_numbers {
    const struct mt_module_input *input; /* given by the caller, borrowed */
    /* results; zero before */
    uint32_t *order; /* live parameters, then live state: indices of blocks, by birth */
    struct mt_parameter *parameters;
    struct mt_state_block *states;
    size_t parameter_count, state_count;
    uint32_t *number; /* by block: of its parameter, MT_NO_ID */
    uint32_t own_layers;
};

/* Fills the results. Call it once. Repeats among the parameters confirm `groups` of layers that
 * calls of the model showed. If `shows_modules` is false, repeats alone also make layers, and
 * own_layers is their number. O(n log n) in the blocks, and quadratic in the parameters, up to
 * MT_REPEATS_TOKENS_MAX of them. Release *numbers. */
void mt_module_numbers_find(struct mt_module_numbers *numbers, struct mt_layer_group *groups,
                            uint32_t group_count, bool shows_modules);
void mt_module_numbers_release(struct mt_module_numbers *numbers);

#endif
