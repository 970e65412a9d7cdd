/* Table rows that the page and the text share, and the selection of the largest rows. */
#ifndef MT_RENDER_REPORT_ROWS_H
#define MT_RENDER_REPORT_ROWS_H

#include "module_table.h"
#include "report.h"
#include "table.h"

/* Adds the cells of a step: number, bytes before, peak, bytes after, change, reserved peak,
 * duration. */
void mt_report_rows_add_step(struct mt_table *table, const struct mt_report *report,
                             const struct mt_step_use *step);

/* Return the duration of a phase or a step, or the number of its events if the trace has no
 * times. */
struct mt_table_cell mt_length_cell(const struct mt_report *report, const struct mt_phase *phase);
struct mt_table_cell mt_step_length_cell(const struct mt_report *report,
                                         const struct mt_step_use *step);

/* The sum over all main phases of one name that the trace covers. */
struct mt_phase_sum {
    const char *name; /* borrowed from the report */
    uint64_t instances, time_ns, allocations, frees, peak_bytes;
    int64_t change;         /* sum over all instances */
    int64_t largest_change; /* the change of one instance with the largest absolute value */
    int64_t most_left;      /* the largest change of one instance; negative if all of them shrank */
};

/* Fills `sums` for the first `capacity` names, in the order of their first phases. Sets *count to
 * the number of all names, which may be larger than `capacity`. */
void mt_report_rows_sum_phases(const struct mt_report *report,
                               const struct mt_device_report *device, struct mt_phase_sum *sums,
                               size_t capacity, size_t *count);

/* A selection of the largest values: all values above `least`, and the first `equal` values that
 * are the same as `least`. */
struct mt_largest {
    uint64_t least;
    size_t equal;
};

/* Selects the `most` largest of `count` values. Selects all values if `values` is NULL, if `count`
 * is at most `most`, or if `most` is 0. May sort `values` in descending order. */
struct mt_largest mt_largest_of(uint64_t *values, size_t count, uint32_t most);

/* Returns true if the value is selected. Call it once for each value, in any order: it counts
 * the values that equal `least`. */
bool mt_report_rows_is_large(struct mt_largest *largest, uint64_t value);

/* The table of modules in the page and in the text. */

#define MT_MODULE_TITLES "#bytes|#param.|#grad.|#state|#activ.|#temp.|~module"

/* Returns true if the table has at least one module. Returns false for NULL, or if no memory
 * belongs to a module. */
bool mt_modules_has_rows(const struct mt_modules *modules);

/* Adds at most `most` rows of each kind, and one row that sums the rest of the kind. The bytes of a
 * row include roles that have no column. The cell of a role is empty if the module has no memory in
 * that role. */
void mt_report_rows_add_modules(struct mt_table *table, const struct mt_modules *modules,
                                uint32_t most);

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

/* The table of pools in the page and in the text. */

#define MT_POOL_TITLES "pool|#reserved|#at most|#allocated|#at most|#segments|~first block"

/* Adds at most `most` rows, and one row that sums the rest. */
void mt_report_rows_add_pools(struct mt_table *table, const struct mt_device_report *device,
                              uint32_t most);

#endif
