/* One run of a sweep, in a separate process. */
#ifndef MT_CLI_SWEEP_WORKER_H
#define MT_CLI_SWEEP_WORKER_H

#include "gate_run.h"
#include "simulated_run.h"
#include "sweep_plan.h"

struct mt_sweep_request {
    struct mt_sweep_plan *plan;
    const struct mt_simulated_run *each; /* settings that all runs share; not prepared yet */
    const struct mt_gate_options *gates;
    const struct mt_gate_run *gate_run; /* the rules, not checked yet */
    const struct mt_common *common;
    const char *folder;          /* folder for traces and logs */
    const struct mt_rank *ranks; /* one for each run; NULL: the runs are not ranks */
    const struct mt_outputs *outputs;
    bool keeps_traces; /* false: a trace is removed after it is read */
    uint64_t jobs;     /* parallel runs; 0 = as many as processors and memory allow */
};

/* Returns FOLDER/batch=4SUFFIX in the plan's arena. */
char *mt_sweep_path(struct mt_sweep_plan *plan, const char *folder, const struct mt_sweep_run *run,
                    const char *suffix);

/* Runs the command of a run and fills the result from its trace. Prints messages to standard
 * error. */
void mt_sweep_work(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                   struct mt_sweep_result *result);

#endif
