/* Modules in words: the chain of a model's own functions from the call of the model
 * inwards. "LlamaForCausalLM/LlamaModel/LlamaDecoderLayer" where functions were recorded
 * with their classes, else by lines: "train.py:66/train.py:56". */
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

/* From the call `call` (exclusive) to `node`. `with_lines`: also of the callers that have
 * classes, so that two calls of one class from different lines differ. `names_last`: the
 * last function is named in any case, even if it is a framework's. NULL without memory;
 * "" if there is nothing to name. */
const char *mt_module_path(const struct mt_module_namer *namer, uint32_t call, uint32_t node,
                           bool with_lines, bool names_last);

/* On the way to `node`, from the function of `body` inwards: the node of the first function
 * of a model's own code; MT_NO_ID if there is none. */
uint32_t mt_module_of_body(const struct mt_module_namer *namer, uint32_t body, uint32_t node);

#endif
