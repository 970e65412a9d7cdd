/* Writes the texts of a result: its name, its verdict, and the holders of the excess. */
#ifndef MT_ANALYZER_GATE_WORDS_H
#define MT_ANALYZER_GATE_WORDS_H

#include "gate_result.h"

/* Sets the name and the verdict of a result. `why`: the reason why the rule cannot be evaluated. */
void mt_gate_describe(struct mt_gate_work *work, struct mt_gate_result *result);
void mt_gate_describe_not_evaluated(struct mt_gate_work *work, struct mt_gate_result *result,
                                    const char *why);
/* Adds the effect of other orders of addresses to the verdict if has_range is set. */
void mt_gate_describe_range(struct mt_gate_work *work, struct mt_gate_result *result);
/* Adds the holders of the excess. */
void mt_gate_describe_culprit(struct mt_gate_work *work, struct mt_gate_result *result);

#endif
