/* Remedies for a run that violates a rule, proved by replays. */
#ifndef MT_ANALYZER_GATE_ADVICE_H
#define MT_ANALYZER_GATE_ADVICE_H

#include "gate_result.h"

/* Replays, and fills all results that did not pass. */
enum mt_status mt_gate_describe_advice(struct mt_gate_work *work) MT_MUST_USE;

#endif
