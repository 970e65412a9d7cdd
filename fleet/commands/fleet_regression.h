/* Checks rules that compare a job with a base. */
#ifndef MT_CLI_FLEET_REGRESSION_H
#define MT_CLI_FLEET_REGRESSION_H

#include "fleet_gate_data.h"
#include "job_diff.h"

/* Adds a gate for each group. `diff` is the difference from the base to the job; NULL: there is no
 * base. */
void mt_gate_check_regression(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                              const struct mt_job_diff *diff, const struct mt_gate_rule *rule,
                              enum mt_gate_metric metric);

#endif
