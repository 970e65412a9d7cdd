/* The live blocks of an instant for the table of modules, and the function that makes the table. */
#ifndef MT_ANALYZER_MODULE_BLOCKS_H
#define MT_ANALYZER_MODULE_BLOCKS_H

#include "forward_logs.h"
#include "module_block.h"
#include "module_table.h"
#include "phases.h"

struct mt_module_input {
    const struct mt_symbols *symbols;
    const struct mt_phases *phases;
    const struct mt_forward_logs *logs;   /* settled */
    const struct mt_module_block *blocks; /* with their indices, live or not */
    size_t count;
};

/* The rows, in the arena. */
void mt_modules_make(struct mt_arena *arena, const struct mt_module_input *input,
                     struct mt_modules *modules);

#endif
