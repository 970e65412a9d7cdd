/* Finds remedies for a run that violates a rule, and proves them by replays. */
#ifndef MT_ANALYZER_GATE_ADVICE_H
#define MT_ANALYZER_GATE_ADVICE_H

#include "gate_result.h"

/* Fills the advice of all results that did not pass. Replays the source. */
enum mt_status mt_gate_describe_advice(struct mt_gate_work *work) MT_MUST_USE;

#endif
