/* A result in words: its name, its verdict, and who holds what is too much. */
#ifndef MT_ANALYZER_GATE_WORDS_H
#define MT_ANALYZER_GATE_WORDS_H

#include "gate_result.h"

/* name, and what is said of numbers. `doubt`: why it cannot be told. */
void mt_gate_say(struct mt_gate_work *work, struct mt_gate_result *result);
void mt_gate_say_not_evaluated(struct mt_gate_work *work, struct mt_gate_result *result,
                               const char *why);
/* Adds to what was said what other orders of addresses would do; only if has_range. */
void mt_gate_say_range(struct mt_gate_work *work, struct mt_gate_result *result);
/* Who holds what is too much. */
void mt_gate_say_culprit(struct mt_gate_work *work, struct mt_gate_result *result);

#endif
