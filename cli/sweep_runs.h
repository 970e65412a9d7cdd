/* The runs of a sweep: several at the same time, within the memory of the machine. */
#ifndef MT_CLI_SWEEP_RUNS_H
#define MT_CLI_SWEEP_RUNS_H

#include "sweep_worker.h"

/* Runs all of the plan and fills their results. Each is a process of its own, with an empty
 * standard input; what it prints goes to its log. HUP, INT, QUIT and TERM end all of them, with
 * all processes that they started. -1, or an exit code: 128 + the number of that signal. What is
 * wrong was said. */
int mt_sweep_run_all(const struct mt_sweep_request *request);

/* How many may run at the same time when `ended` have ended, of which the largest process had
 * `peak_bytes`: one until then, later as many as there are processors and as have room in nine
 * tenths of `available_bytes`; at least one. `jobs`, if it is not 0, is the answer. */
size_t mt_sweep_room(uint64_t jobs, size_t ended, uint64_t peak_bytes, uint64_t available_bytes,
                     size_t processors);

#endif
