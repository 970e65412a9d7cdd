/* Modules in words: the chain of a model's own functions from the call of the model inwards.
 * "LlamaForCausalLM/LlamaModel/LlamaDecoderLayer" if functions were recorded with their classes,
 * otherwise by lines: "train.py:66/train.py:56". */
#ifndef MT_ANALYZER_MODULE_NAMES_H
#define MT_ANALYZER_MODULE_NAMES_H

#include "forward_logs.h"
#include "phases.h"
#include "python_tree.h"
#include "site.h"

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

#endif
