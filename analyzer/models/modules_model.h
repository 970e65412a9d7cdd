/* The table of modules (module_table.h) as a model of the report, and as the answer to a question.
 */
#ifndef MT_ANALYZER_MODULES_MODEL_H
#define MT_ANALYZER_MODULES_MODEL_H

#include "module_table.h"

/* "layer", "module", "outside_layers", "outside_model", "not_known". */
const char *mt_module_kind_name(enum mt_module_kind kind);

struct mt_answer;
struct mt_arena;

/* The rows of a question by module, by bytes. */
void mt_modules_answer(const struct mt_modules *modules, struct mt_arena *arena,
                       struct mt_answer *answer);

#endif
