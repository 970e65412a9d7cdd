/* The gates of a dry run, which apply to every process that used the device. */
#ifndef MT_CLI_DRY_RUN_GATES_H
#define MT_CLI_DRY_RUN_GATES_H

#include "dry_run_result.h"

/* Checks the gates of answer->gate_run for the trace `told`, with its source and report. If none
 * fails, analyzes the other traces until one fails. Leaves the worst results in answer->gate_run.
 * *failing is the trace that fails if it is not `told`, otherwise NULL. If the run may need more
 * than was measured, gates that do not fail are "not evaluated". Returns the exit code, without
 * that of a failed gate; errors were printed. */
int mt_dry_run_check_gates(const struct mt_dry_run_answer *answer,
                           const struct mt_dry_run_trace *told, struct mt_source *source,
                           const struct mt_report *report, const struct mt_dry_run_trace **failing);

#endif
