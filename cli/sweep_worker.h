/* One run of a sweep, in a separate process. */
#ifndef MT_CLI_SWEEP_WORKER_H
#define MT_CLI_SWEEP_WORKER_H

#include "gate_run.h"
#include "simulated_run.h"
#include "sweep_plan.h"

struct mt_sweep_request {
    struct mt_sweep_plan *plan;
    const struct mt_simulated_run *each; /* not prepared yet: what all runs share */
    const struct mt_gate_options *gates;
    const struct mt_gate_run *gate_run; /* its rules, not checked yet */
    const struct mt_common *common;
    const char *folder;          /* for traces and what commands print */
    const struct mt_rank *ranks; /* one per run; NULL: the runs are not ranks */
    const struct mt_outputs *outputs;
    bool keeps_traces; /* false: each is removed after it is read */
    uint64_t jobs;     /* at the same time; 0 = what processors and memory allow */
};

/* FOLDER/batch=4SUFFIX; in the plan's arena, NULL: no memory. */
char *mt_sweep_path(struct mt_sweep_plan *plan, const char *folder, const struct mt_sweep_run *run,
                    const char *suffix);

/* Runs the command and measures its trace. Messages go to standard error. */
void mt_sweep_work(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                   struct mt_sweep_result *result);

#endif
