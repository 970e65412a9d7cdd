/* The runs of a sweep: several in parallel, within the memory of the machine. */
#ifndef MT_CLI_SWEEP_RUNS_H
#define MT_CLI_SWEEP_RUNS_H

#include "sweep_worker.h"

/* Runs all runs of the plan and fills their results. Each is a separate process with an empty
 * standard input; its output goes to its log. HUP, INT, QUIT and TERM end all runs with all
 * their processes. Returns -1, or an exit code: 128 + the number of that signal. Errors were
 * printed. */
int mt_sweep_run_all(const struct mt_sweep_request *request);

/* Returns how many may run in parallel after `ended` have ended, whose largest process had
 * `peak_bytes`: one while `ended` is 0, later the number of processors or of runs that fit in
 * nine tenths of `available_bytes`, whichever is less; at least one. `jobs` overrides it unless
 * it is 0. */
size_t mt_sweep_room(uint64_t jobs, size_t ended, uint64_t peak_bytes, uint64_t available_bytes,
                     size_t processors);

#endif
