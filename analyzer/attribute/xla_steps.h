/* Turns of a program of XLA. Lines alone cannot distinguish the loop over requests from an inner
 * one that makes the arrays of each layer: both turn at the same line. In a real turn the program's
 * own module runs (xla_runs.h). */
#ifndef MT_ANALYZER_XLA_STEPS_H
#define MT_ANALYZER_XLA_STEPS_H

#include "stretches_state.h"

/* `starts`, by stretch: removes turns before which the module has not run since the previous turn.
 * Nothing changes if the program runs no module. O(stretches + runs). */
void mt_xla_steps_merge(const struct mt_stretches *stretches, bool *starts);

#endif
