/* Modules in words: the chain of a model's own functions from the call of the model inwards.
 * "LlamaForCausalLM/LlamaModel/LlamaDecoderLayer" if functions were recorded with their classes,
 * otherwise by lines: "train.py:66/train.py:56". */
#ifndef MT_ANALYZER_MODULE_NAMES_H
#define MT_ANALYZER_MODULE_NAMES_H

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

#endif
