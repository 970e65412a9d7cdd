/* Executes the runs of a sweep in parallel, as far as the memory of the machine allows. */
#ifndef MT_CLI_SWEEP_RUNS_H
#define MT_CLI_SWEEP_RUNS_H

#include "sweep_worker.h"

/* Executes all runs of the plan and fills their results. A run is a separate process with an empty
 * standard input, and its output goes to its log. The signals HUP, INT, QUIT and TERM end all runs
 * and all their processes. Returns -1, or an exit code, which is 128 + the number of such a signal.
 * Prints errors. */
int mt_sweep_run_all(const struct mt_sweep_request *request);

/* Returns how many runs may be active in parallel. If `jobs` is not 0, the result is `jobs`. While
 * `ended`, the number of finished runs, is 0, the result is one. Later the result is the number of
 * processors, or the number of runs of `peak_bytes` that fit in nine tenths of `available_bytes`,
 * whichever is less, but at least one. */
size_t mt_sweep_room(uint64_t jobs, size_t ended, uint64_t peak_bytes, uint64_t available_bytes,
                     size_t processors);

#endif
