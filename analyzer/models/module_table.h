/* Holders of the memory of one instant, by module of the model: a row for each layer, one for each
 * other module that holds memory, and rows for memory that belongs to none. Rows sum to the
 * allocated bytes of the instant, role by role. Buffers count as parameters.
 *
 * A layer is an entry into a function that one call of the model enters repeatedly
 * (forward_logs.h), if the parameters repeat as often (parameter_layers.h). A block of forward
 * is in the row of the layer, or otherwise the module, that made it. A block of backward is in the
 * row of its owner, a block of forward (ties.h). Gradients and the optimizer's state are in the row
 * of their parameter. Blocks without such evidence are in one row. */
#ifndef MT_ANALYZER_MODULE_TABLE_H
#define MT_ANALYZER_MODULE_TABLE_H

#include "holding.h"
#include "module_identity.h"
#include "parameter_layers.h"

enum mt_module_kind {
    MT_MODULE_LAYER,
    MT_MODULE_OTHER,   /* of the model, but not a layer */
    MT_MODULE_BESIDE,  /* parameters, their gradients and state: of the model, in no layer */
    MT_MODULE_OUTSIDE, /* not of the model: inputs, libraries, ... */
    MT_MODULE_UNKNOWN
};

struct mt_module_row {
    enum mt_module_kind kind;
    const char *path;  /* "GPT/Block"; in parentheses if it is not a module: "(inputs)" */
    const char *label; /* the same with the number of the layer: "GPT/Block[3]" */
    uint32_t layer;    /* MT_NO_LAYER */
    uint32_t group;    /* layers of one function have one number */
    uint64_t role_bytes[MT_ROLE_COUNT], role_requested_bytes[MT_ROLE_COUNT];
    uint64_t bytes, requested_bytes, blocks;
};

/* A function that one call of the model enters repeatedly, whether or not the parameters repeat. */
struct mt_module_repeat {
    const char *path; /* "GPT/Block"; by lines: "train.py:65/train.py:56" */
    uint32_t times;   /* entries in one call */
    uint64_t activation_bytes;
};

struct mt_modules {
    uint64_t event;
    /* Layers in the order of the model; then by kind, and by bytes. */
    struct mt_module_row *rows;
    uint32_t row_count;
    uint32_t layer_count;             /* rows that are layers */
    struct mt_module_repeat *repeats; /* by bytes, largest first; only those that hold some */
    uint32_t repeat_count;
};

/* The table of modules as a model of the report, and as the answer to a question.
 */

/* "layer", "module", "outside_layers", "outside_model", "not_known". */
const char *mt_module_kind_name(enum mt_module_kind kind);

struct mt_answer;
struct mt_arena;

/* The rows of a question by module, by bytes. */
void mt_modules_answer(const struct mt_modules *modules, struct mt_arena *arena,
                       struct mt_answer *answer);

/* Makes the table of modules from the live blocks of an instant. */

/* The rows, in the arena. */
void mt_modules_make(struct mt_arena *arena, const struct mt_module_input *input,
                     struct mt_modules *modules);

#endif
