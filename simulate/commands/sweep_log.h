/* The logs of the runs of a sweep. A log has a first line that identifies the run, then the output
 * of the command. The first line lets a later sweep recognize the log, even if this sweep is
 * interrupted. */
#ifndef MT_CLI_SWEEP_LOG_H
#define MT_CLI_SWEEP_LOG_H

#include "sweep_worker.h"

/* Checks that the logs can be written in `folder`. Call it before the first run. Returns -1, or the
 * exit code after an error message. */
int mt_sweep_precheck_logs(struct mt_sweep_plan *plan, const char *folder,
                           const struct mt_outputs *outputs);

/* Creates the log of a run, with the rules for outputs (outputs.h). Returns a descriptor that
 * appends to the log and that the caller closes. Returns -1 after an error message. */
int mt_sweep_log_open(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

/* Prints the last lines of the log of a run to standard error. */
void mt_sweep_log_show(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

#endif
