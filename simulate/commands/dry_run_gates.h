/* The gates of a dry run, which apply to every process that used the device. */
#ifndef MT_CLI_DRY_RUN_GATES_H
#define MT_CLI_DRY_RUN_GATES_H

#include "dry_run_result.h"

/* Checks the gates of answer->gate_run for the trace `told`. `source` and `report` are those of
 * this trace. If no gate fails, analyzes the other traces until a gate fails. Leaves the worst
 * results in answer->gate_run. Sets *failing to the trace with these results, or to NULL if that is
 * `told`. If the run may need more memory than was measured, gates that do not fail are "not
 * evaluated". Prints errors and returns their exit code. A failed gate is not an error. */
int mt_dry_run_check_gates(const struct mt_dry_run_answer *answer,
                           const struct mt_dry_run_trace *told, struct mt_source *source,
                           const struct mt_report *report, const struct mt_dry_run_trace **failing);

#endif
