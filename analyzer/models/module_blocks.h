/* Makes the table of modules from the live blocks of an instant. */
#ifndef MT_ANALYZER_MODULE_BLOCKS_H
#define MT_ANALYZER_MODULE_BLOCKS_H

#include "module_identity.h"
#include "module_table.h"

/* The rows, in the arena. */
void mt_modules_make(struct mt_arena *arena, const struct mt_module_input *input,
                     struct mt_modules *modules);

#endif
