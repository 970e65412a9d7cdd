/* Executes the runs of a sweep in parallel, as far as the memory of the machine allows. */
#ifndef MT_CLI_SWEEP_RUNS_H
#define MT_CLI_SWEEP_RUNS_H

#include "gate_run.h"
#include "outputs.h"
#include "simulated_run.h"
#include "sweep_plan.h"

/* memtrace dry-run --ranks: runs selected ranks of a distributed job in isolation. The runs are a
 * sweep over ranks. */
struct mt_rank_arguments {
    const char *ranks; /* --ranks; NULL = not given */
    uint64_t world;    /* --world; 0 = as in the options of torchrun */
};

/* What the options request. */
struct mt_sweep_arguments {
    struct mt_text_list sweeps;    /* "batch=1,2,4" */
    struct mt_rank_arguments rank; /* --ranks instead of --sweep */
    uint64_t jobs;                 /* parallel runs; 0 = as many as processors and memory allow */
    struct mt_simulated_run *each; /* settings that all runs share, not prepared yet; `command` has
                                      placeholders; `output` is the folder */
    const struct mt_gate_options *gates;
    const struct mt_gate_run *gate_run; /* the rules: opened, not checked yet */
    const struct mt_common *common;
    const struct mt_outputs *outputs;
};

/* The runs of a sweep, each in a separate process. */
struct mt_sweep_request {
    struct mt_sweep_plan *plan;
    const struct mt_sweep_arguments *arguments;
    const char *folder;          /* folder for traces and logs */
    const struct mt_rank *ranks; /* one for each run; NULL: the runs are not ranks */
    bool keeps_traces;           /* false: a trace is removed after it is read */
};

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

/* The logs of the runs of a sweep. A log has a first line that identifies the run, then the output
 * of the command. The first line lets a later sweep recognize the log, even if this sweep is
 * interrupted. */

/* Checks that the logs can be written in `folder`. Call it before the first run. Returns -1, or the
 * exit code after an error message. */
int mt_sweep_precheck_logs(struct mt_sweep_plan *plan, const char *folder,
                           const struct mt_outputs *outputs);

/* Prints the last lines of the log of a run to standard error. */
void mt_sweep_log_show(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

#endif
