/* Who holds the memory of one instant, by module of the model: a row for each layer, one
 * for each other module that holds something, and rows for what belongs to none. Rows
 * sum to the allocated bytes of the instant, role by role. Buffers count as parameters.
 *
 * A layer is an entry into a function that one call of the model enters again and again
 * (module_calls.h), if the parameters repeat as often (parameter_layers.h). What forward
 * made belongs to the layer, or else the module, that made it; what backward made, to that
 * of the block of forward that it is tied to (ties.h); gradients and the optimizer's state
 * to that of their parameter. What none of this tells is in one row of its own. */
#ifndef MT_ANALYZER_MODULE_TABLE_H
#define MT_ANALYZER_MODULE_TABLE_H

#include "parameter_layers.h"
#include "role.h"

enum mt_module_kind {
    MT_MODULE_LAYER,
    MT_MODULE_OTHER,   /* of the model, and no layer */
    MT_MODULE_BESIDE,  /* parameters, their gradients and state: of the model, in no layer */
    MT_MODULE_OUTSIDE, /* not of the model: inputs, libraries, ... */
    MT_MODULE_UNKNOWN
};
enum { MT_MODULE_KINDS = MT_MODULE_UNKNOWN + 1 };

struct mt_module_row {
    enum mt_module_kind kind;
    const char *path;  /* "GPT/Block"; in parentheses if it is no module: "(inputs)" */
    const char *label; /* the same with the number of the layer: "GPT/Block[3]" */
    uint32_t layer;    /* MT_NO_LAYER */
    uint32_t group;    /* layers of one function have one number */
    uint64_t role_bytes[MT_ROLE_COUNT], role_requested_bytes[MT_ROLE_COUNT];
    uint64_t bytes, requested_bytes, blocks;
};

struct mt_modules {
    uint64_t event;
    /* Layers in the order of the model; then by kind, and by bytes. */
    struct mt_module_row *rows;
    uint32_t row_count;
    uint32_t layer_count; /* rows that are layers */
};

#endif
