/* The logs of the runs of a sweep: what each command printed, behind a line that says whose log it
 * is. By that line a later sweep recognizes it, also if this one is interrupted. */
#ifndef MT_CLI_SWEEP_LOG_H
#define MT_CLI_SWEEP_LOG_H

#include "sweep_worker.h"

/* Before the first run: may the logs be written in `folder`? -1, or an exit code; what is wrong was
 * said. */
int mt_sweep_precheck_logs(struct mt_sweep_plan *plan, const char *folder,
                           const struct mt_outputs *outputs);

/* Makes the log of a run, with the rules of every output (outputs.h). A descriptor that appends to
 * it, the caller's to close; -1: what is wrong was said. */
int mt_sweep_log_open(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

/* Prints its last lines to standard error. */
void mt_sweep_log_show(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

#endif
