/* The table of modules, for the page and for the text. */
#ifndef MT_RENDER_MODULE_ROWS_H
#define MT_RENDER_MODULE_ROWS_H

#include "modules_model.h"
#include "table.h"

#define MT_MODULE_TITLES "#bytes|#param.|#grad.|#state|#activ.|#temp.|~module"

/* Returns true if the table has a module, not only memory that belongs to no module. False for
 * NULL. */
bool mt_modules_tell(const struct mt_modules *modules);

/* Adds at most `most` rows of each kind, and one row that sums the rest of the kind, so sums
 * stay complete. Bytes include all roles, also those without a column. The cell of a role is
 * empty if the module has no memory in that role. */
void mt_add_module_rows(struct mt_table *table, const struct mt_modules *modules, uint32_t most);

/* Describes the layers in the rows starting at *row that have one group, and advances *row past
 * them: "12 layers Llama/LlamaDecoderLayer"; with the number in the table if there are several
 * groups: "2: 4 layers ...". NULL if memory runs out. */
const char *mt_module_group_text(struct mt_arena *arena, const struct mt_modules *modules,
                                 uint32_t *row);

/* One or more rows as one answer to "which module holds most". */
struct mt_module_part {
    uint32_t row;    /* the first */
    uint32_t layers; /* number of rows that the part covers; 0 = one row that is not a layer */
    uint64_t bytes;
};

/* Finds the parts of the model that hold the most memory, largest first, at most `most` of them:
 * layers of one group together, each other module, and what the model has outside of layers.
 * Returns their number; 0 for NULL. Reads all rows once for each part. */
uint32_t mt_largest_module_parts(const struct mt_modules *modules, struct mt_module_part *parts,
                                 uint32_t most) MT_MUST_USE;

/* "8 layers Qwen2DecoderLayer", "ForCausalLMLoss", "parameters outside of layers, their gradients
 * and state". NULL if memory runs out. */
const char *mt_module_part_text(struct mt_arena *arena, const struct mt_modules *modules,
                                const struct mt_module_part *part);

#endif
