/* What a sweep keeps of the report of one run. */
#ifndef MT_CLI_SWEEP_MEASURE_H
#define MT_CLI_SWEEP_MEASURE_H

#include "report.h"
#include "sweep.h"

/* The outcome is set from the exit status; a failure that is one of memory becomes it here. The
 * report was made with `needs`. */
void mt_sweep_measure(struct mt_sweep_result *result, const struct mt_report *report);

#endif
