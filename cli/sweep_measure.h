/* The measurements of a sweep from the report of one run. */
#ifndef MT_CLI_SWEEP_MEASURE_H
#define MT_CLI_SWEEP_MEASURE_H

#include "report.h"
#include "sweep.h"

/* Sets the outcome from the exit status; if a failure was out of memory, corrects it here. The
 * report must be made with `needs`. */
void mt_sweep_measure(struct mt_sweep_result *result, const struct mt_report *report);

#endif
