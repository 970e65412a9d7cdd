/* Turns of a program of XLA. Lines alone cannot tell the loop over requests from one within it that
 * makes the arrays of each layer: both turn at the same line. In a turn that counts, the program's
 * own module runs (xla_runs.h). */
#ifndef MT_ANALYZER_XLA_STEPS_H
#define MT_ANALYZER_XLA_STEPS_H

#include "stretches_state.h"

/* `starts`, by stretch: takes out the turns before which the module has not run since the turn
 * before them. Nothing changes if the program runs no module. O(stretches + runs). */
void mt_xla_steps_merge(const struct mt_stretches *stretches, bool *starts);

#endif
