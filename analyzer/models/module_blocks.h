/* The live blocks of an instant, as the table of modules needs them, and the table that
 * is made from them. */
#ifndef MT_ANALYZER_MODULE_BLOCKS_H
#define MT_ANALYZER_MODULE_BLOCKS_H

#include "forward_logs.h"
#include "module_table.h"
#include "phases.h"

/* Zero: there is none. */
struct mt_module_block {
    uint64_t birth_event, requested_bytes, block_bytes;
    struct mt_forward_place place; /* where forward made it, or what it is tied to */
    uint32_t stack;                /* of its site (mt_stack_of_site) */
    uint32_t parameter;            /* gradient: index of its parameter's block, MT_NO_ID */
    uint64_t parameter_birth;
    uint8_t role;
    bool is_live, is_initial;
    bool has_gradient;       /* parameter: one was seen */
    uint64_t gradient_event; /* of the first that was */
};

struct mt_module_input {
    const struct mt_symbols *symbols;
    const struct mt_phases *phases;
    const struct mt_forward_logs *logs;   /* settled */
    const struct mt_module_block *blocks; /* with their indices, live or not */
    size_t count;
};

/* The rows, in the arena. */
enum mt_status mt_modules_make(struct mt_arena *arena, const struct mt_module_input *input,
                               struct mt_modules *modules) MT_MUST_USE;

#endif
