/* Runs memtrace dry-run --sweep after the options are parsed. */
#ifndef MT_CLI_DRY_RUN_SWEEP_H
#define MT_CLI_DRY_RUN_SWEEP_H

#include "gate_run.h"
#include "outputs.h"
#include "simulated_run.h"
#include "sweep_runs.h"

/* memtrace dry-run --ranks: runs selected ranks of a distributed job in isolation. The runs are a
 * sweep over ranks. */

struct mt_rank_arguments {
    const char *ranks; /* --ranks; NULL = not given */
    uint64_t world;    /* --world; 0 = as in the options of torchrun */
};

struct mt_sweep_arguments {
    struct mt_text_list sweeps;    /* "batch=1,2,4" */
    struct mt_rank_arguments rank; /* --ranks instead of --sweep */
    uint64_t jobs;                 /* parallel runs; 0 = as many as processors and memory allow */
    struct mt_simulated_run *each; /* `command` has placeholders; `output` is the folder */
    const struct mt_gate_options *gates;
    const struct mt_gate_run *gate_run; /* opened */
    const struct mt_common *common;
    const struct mt_outputs *outputs;
};

/* Runs all commands, writes the files and prints the answer. Returns the exit code. */
int mt_dry_run_sweep(const struct mt_sweep_arguments *arguments);

#endif
