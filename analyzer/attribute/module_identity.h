/* Which module and which parameter a block belongs to: modules by the names of ranges, parameters
 * by the order in which they were made. */
#ifndef MT_ANALYZER_MODULE_IDENTITY_H
#define MT_ANALYZER_MODULE_IDENTITY_H

#include "forward_logs.h"
#include "parameter_layers.h"
#include "phases.h"
#include "python_tree.h"
#include "site.h"

/* Modules in words: the chain of a model's own functions from the call of the model inwards.
 * "LlamaForCausalLM/LlamaModel/LlamaDecoderLayer" if functions were recorded with their classes,
 * otherwise by lines: "train.py:66/train.py:56". */

struct mt_module_namer {
    struct mt_arena *arena; /* of the words */
    const struct mt_symbols *symbols;
    const struct mt_python_tree *tree;
    const struct mt_site_table *sites;
};

/* From the call `call` (exclusive) to `node`. `with_lines`: also adds lines to callers that have
 * classes, so that two calls of one class from different lines differ. `names_last`: always names
 * the last function, even one of a framework. Returns "" if there is nothing to name. */
const char *mt_module_path(const struct mt_module_namer *namer, uint32_t call, uint32_t node,
                           bool with_lines, bool names_last);

/* On the way to `node`, from the function of `body` inwards: returns the node of the first function
 * of a model's own code, or MT_NO_ID. */
uint32_t mt_module_of_body(const struct mt_module_namer *namer, uint32_t body, uint32_t node);

/* Modules that a program names itself: record_function and NVTX ranges inside one call of a
 * model. */

struct mt_module_range {
    const char *path; /* "encoder/layer"; "": the program named none */
    uint32_t layer;   /* number in the name: 3 of "layer_3" and of "h.3.attn"; MT_NO_ID */
};

/* The module of an allocation in `phase` during the call of `log`: the program's ranges around it,
 * outermost first, without those that last longer than the call. A layer ends the path and includes
 * everything inside. */
struct mt_module_range mt_module_range_of(struct mt_arena *arena, const struct mt_phases *phases,
                                          const struct mt_forward_log *log, int32_t phase);

/* Returns the start of the number of a layer in a name: after "layer_", "model.layers.", "block ["
 * or "h."; "conv1" has none. NULL: none. *layer: the number, *length: length of the text before it,
 * without separators. */
const char *mt_layer_number(const char *name, uint32_t *layer, size_t *length);

/* A live block of an instant, as the table of modules needs it. */

/* Zero: there is none. */
struct mt_module_block {
    uint64_t birth_event, requested_bytes, block_bytes;
    struct mt_forward_position place; /* place of the call of forward, or that of its owner */
    uint32_t stack;                   /* of its site (mt_stack_of_site) */
    uint32_t parameter;               /* gradient: index of its parameter's block, MT_NO_ID */
    uint64_t parameter_birth;
    uint8_t role;
    bool is_live, is_initial;
    bool has_gradient;       /* parameter: its gradient is in the trace */
    uint64_t gradient_event; /* of its first gradient */
};

/* Assigns each live block of a model to a parameter: itself, its gradient, or its state. Parameters
 * are numbered in the order in which they were made, and grouped into layers. */

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
