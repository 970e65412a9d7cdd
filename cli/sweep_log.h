/* The logs of the runs of a sweep: the output of each command, after a first line that identifies
 * the run. A later sweep recognizes the log by that line, even if this sweep is interrupted. */
#ifndef MT_CLI_SWEEP_LOG_H
#define MT_CLI_SWEEP_LOG_H

#include "sweep_worker.h"

/* Call it before the first run: checks that the logs can be written in `folder`. Returns -1, or
 * an exit code; errors were printed. */
int mt_sweep_precheck_logs(struct mt_sweep_plan *plan, const char *folder,
                           const struct mt_outputs *outputs);

/* Creates the log of a run, with the rules of every output (outputs.h). Returns a descriptor that
 * appends to it, which the caller closes; -1: an error was printed. */
int mt_sweep_log_open(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

/* Prints the last lines of the log of a run to standard error. */
void mt_sweep_log_show(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

#endif
