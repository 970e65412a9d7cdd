/* The table of modules in the page and in the text. */
#ifndef MT_RENDER_MODULE_ROWS_H
#define MT_RENDER_MODULE_ROWS_H

#include "modules_model.h"
#include "table.h"

#define MT_MODULE_TITLES "#bytes|#param.|#grad.|#state|#activ.|#temp.|~module"

/* Returns true if the table has at least one module. Returns false for NULL, or if no memory
 * belongs to a module. */
bool mt_modules_tell(const struct mt_modules *modules);

/* Adds at most `most` rows of each kind, and one row that sums the rest of the kind. The bytes of a
 * row include roles that have no column. The cell of a role is empty if the module has no memory in
 * that role. */
void mt_add_module_rows(struct mt_table *table, const struct mt_modules *modules, uint32_t most);

/* Describes the group of layers that begins at *row, and advances *row past the group: "12 layers
 * Llama/LlamaDecoderLayer". If there are several groups, the number of the group comes first: "2: 4
 * layers ...". */
const char *mt_module_group_text(struct mt_arena *arena, const struct mt_modules *modules,
                                 uint32_t *row);

/* A part of the model: a group of layers, another module, or memory outside of layers. */
struct mt_module_part {
    uint32_t row;    /* first row of the part */
    uint32_t layers; /* number of layers, one row each; 0 = one row that is not a layer */
    uint64_t bytes;
};

/* Finds the parts of the model that hold the most memory, largest first. Returns their number,
 * which is at most `most`; 0 for NULL. Reads all rows once for each part. */
uint32_t mt_largest_module_parts(const struct mt_modules *modules, struct mt_module_part *parts,
                                 uint32_t most) MT_MUST_USE;

/* Returns the name of a part: "8 layers Qwen2DecoderLayer", "ForCausalLMLoss", or "parameters
 * outside of layers, their gradients and state". */
const char *mt_module_part_text(struct mt_arena *arena, const struct mt_modules *modules,
                                const struct mt_module_part *part);

#endif
