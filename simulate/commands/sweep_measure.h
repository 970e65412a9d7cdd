/* Takes the measurements of a sweep from the report of one run. */
#ifndef MT_CLI_SWEEP_MEASURE_H
#define MT_CLI_SWEEP_MEASURE_H

#include "report.h"
#include "sweep.h"

/* Fills the measurements of *result. result->outcome must be set from the exit status. Changes the
 * outcome if the failure was an out-of-memory error. The report must be made with the option
 * `needs`. */
void mt_sweep_measure(struct mt_sweep_result *result, const struct mt_report *report);

#endif
