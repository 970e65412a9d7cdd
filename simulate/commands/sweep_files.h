/* Several dry runs of one command, and their files: a trace and a log for each run, the answer as
 * JSON and its picture. They are in the folder of -o, or in a temporary folder. */
#ifndef MT_CLI_SWEEP_FILES_H
#define MT_CLI_SWEEP_FILES_H

#include "gate_run.h"
#include "outputs.h"
#include "simulated_run.h"
#include "sweep_plan.h"

struct mt_temporary_folder;

/* What the options request. */
struct mt_sweep_arguments {
    struct mt_sweep_grid grid; /* values and ranks */
    uint64_t jobs;             /* parallel runs; 0 = as many as processors and memory allow */
    const struct mt_run_settings *settings; /* what all runs share: `command` has placeholders;
                                               `output` is the folder; devices 0: those of a node of
                                               ranks, or one */
    const struct mt_gate_options *gates;
    const struct mt_gate_run *gate_run; /* the rules: opened, not checked yet */
    const struct mt_common *common;
    const struct mt_outputs *outputs;
};

/* The runs of a sweep, each in a separate process. */
struct mt_sweep_request {
    struct mt_sweep_plan *plan;
    const struct mt_sweep_arguments *arguments;
    const char *folder; /* of traces and logs; set by mt_sweep_choose_folder, and the next */
    bool keeps_traces;  /* false: the folder is temporary */
    bool needs_traces;  /* false: a trace is removed after it is read, unless it is kept */
    size_t most_runs;   /* for the progress line; 0 = those of the plan */
    /* set by mt_sweep_run_all, for its next call */
    size_t ended;
    uint64_t peak_bytes; /* host memory of the largest run */
};

/* Sets the folder of the traces: that of -o, after a check that the files in it may be written, or
 * a temporary one, which the caller removes. Returns -1, or the exit code after an error message.
 */
int mt_sweep_choose_folder(struct mt_sweep_request *request, struct mt_temporary_folder *temporary);

/* Returns FOLDER/batch=4SUFFIX in the arena of the plan. */
char *mt_sweep_path(const struct mt_sweep_request *request, const struct mt_sweep_run *run,
                    const char *suffix);

/* Creates the log of a run, with the rules for outputs (outputs.h). Its first line identifies the
 * run, then follows the output of the command: a later sweep recognizes the log, even if this sweep
 * is interrupted. Returns a descriptor that appends to the log and that the caller closes. Returns
 * -1 after an error message. The file keeps its name and grows, so the output of the command can be
 * read while it runs. */
int mt_sweep_log_open(const struct mt_sweep_request *request, const struct mt_sweep_run *run);

/* Prints the ends of the logs of runs that failed. Without -o, these are kept nowhere else. */
void mt_sweep_show_failures(const struct mt_sweep_request *request);

/* Writes sweep.json or plan.json, and the picture of the runs. Returns an exit code. */
int mt_sweep_write_files(const struct mt_sweep_request *request, const struct mt_buf *json,
                         const struct mt_sweep *drawn);

#endif
