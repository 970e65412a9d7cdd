/* The measurements of a sweep from the report of one run. */
#ifndef MT_CLI_SWEEP_MEASURE_H
#define MT_CLI_SWEEP_MEASURE_H

#include "report.h"
#include "sweep.h"

/* Fills the measurements. `result->outcome` must be set from the exit status; if the failure was
 * an out-of-memory error, corrects it. The report must be made with `needs`. */
void mt_sweep_measure(struct mt_sweep_result *result, const struct mt_report *report);

#endif
