/* Executes the runs of a plan in parallel, each in a process of its own, as far as the memory of
 * the machine allows. */
#ifndef MT_CLI_SWEEP_RUNS_H
#define MT_CLI_SWEEP_RUNS_H

#include "sweep_files.h"

/* Reports a fault that affects all runs once, before the first run, and sets what the plan's answer
 * says about the simulated devices. Sets *run to a run that has what the check found, and which the
 * caller releases. Returns -1, or the exit code after an error message. */
int mt_sweep_check_first(const struct mt_sweep_request *request, struct mt_simulated_run *run);

/* Executes all runs of the plan that have no result yet, and fills their results. A run is a
 * separate process with an empty standard input, and its output goes to its log. The signals HUP,
 * INT, QUIT and TERM end all runs and all their processes. Returns -1, or an exit code, which is
 * 128 + the number of such a signal. Prints errors. */
int mt_sweep_run_all(struct mt_sweep_request *request);

/* Returns the settings of one run. */
struct mt_run_settings mt_sweep_settings(const struct mt_sweep_request *request,
                                         const struct mt_sweep_run *run);

/* Returns the exit code of the first run that failed, or MT_EXIT_OK. */
int mt_sweep_exit_code(const struct mt_sweep *sweep);

enum { MT_MAX_PARALLEL_RUNS = 64 };

/* Returns how many runs may be active in parallel. If `jobs` is not 0, the result is `jobs`. While
 * `ended`, the number of finished runs, is 0, the result is one. Later the result is the number of
 * processors, or the number of runs of `peak_bytes` that fit in nine tenths of `available_bytes`,
 * whichever is less, but at least one. */
size_t mt_sweep_room(uint64_t jobs, size_t ended, uint64_t peak_bytes, uint64_t available_bytes,
                     size_t processors);

#endif
