/* The commands that make several dry runs: `dry-run --sweep` and `dry-run --ranks`, which run every
 * point, and `plan`, which searches. The runs are executed in parallel, as far as the memory of the
 * machine allows. */
#ifndef MT_CLI_SWEEP_RUNS_H
#define MT_CLI_SWEEP_RUNS_H

#include "gate_run.h"
#include "outputs.h"
#include "simulated_run.h"
#include "sweep_plan.h"

/* What the options request. */
struct mt_sweep_arguments {
    struct mt_sweep_wishes wishes; /* values and ranks */
    uint64_t jobs;                 /* parallel runs; 0 = as many as processors and memory allow */
    struct mt_simulated_run *each; /* settings that all runs share, not prepared yet; `command` has
                                      placeholders; `output` is the folder; devices 0: those of a
                                      node of ranks, or one */
    const struct mt_gate_options *gates;
    const struct mt_gate_run *gate_run; /* the rules: opened, not checked yet */
    const struct mt_common *common;
    const struct mt_outputs *outputs;
};

/* The runs of a sweep, each in a separate process. */
struct mt_sweep_request {
    struct mt_sweep_plan *plan;
    const struct mt_sweep_arguments *arguments;
    const char *folder; /* folder for traces and logs */
    bool keeps_traces;  /* false: the folder is temporary */
    bool needs_traces;  /* false: a trace is removed after it is read, unless it is kept */
    size_t most_runs;   /* for the progress line; 0 = those of the plan */
    /* set by mt_sweep_run_all, for its next call */
    size_t ended;
    uint64_t peak_bytes; /* host memory of the largest run */
};

/* Executes all runs of the plan that have no result yet, and fills their results. A run is a
 * separate process with an empty standard input, and its output goes to its log. The signals HUP,
 * INT, QUIT and TERM end all runs and all their processes. Returns -1, or an exit code, which is
 * 128 + the number of such a signal. Prints errors. */
int mt_sweep_run_all(struct mt_sweep_request *request);

/* Returns the number of simulated devices of a run. */
uint64_t mt_sweep_devices(const struct mt_sweep_arguments *arguments,
                          const struct mt_sweep_run *run);

enum { MT_MAX_PARALLEL_RUNS = 64 };

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

/* What the commands share (cmd_dry_run.c). Those that return an int return -1 to continue, or the
 * exit code after an error message, unless stated otherwise. */

/* Finds the card that an option names. */
int mt_dry_run_find_card(const char *option, const char *name, const struct mt_card **card);

/* Reads "90", "90s", "10m", "2h"; NULL: no timeout. */
int mt_dry_run_read_timeout(const char *text, uint64_t *timeout_ms);

/* Reports a fault that affects all runs once, before the first run. Fills *run, which has what the
 * check found, and which the caller releases. */
int mt_sweep_check_first(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan,
                         struct mt_simulated_run *run);

/* Creates the folder of -o and checks that its files may be written. */
int mt_sweep_prepare_folder(const struct mt_sweep_arguments *arguments, struct mt_sweep_plan *plan);

/* Sets the folder of the traces: that of -o, or a temporary one, which the caller removes. */
struct mt_temporary_folder;
int mt_sweep_choose_folder(struct mt_sweep_request *request, struct mt_temporary_folder *temporary);

/* Prints the ends of the logs of runs that failed. Without -o, these are kept nowhere else. */
void mt_sweep_show_failures(const struct mt_sweep_request *request);

/* Writes sweep.json or plan.json, and the picture of the runs. Returns an exit code. */
int mt_sweep_write_files(const struct mt_sweep_request *request, const struct mt_buf *json,
                         const struct mt_sweep *drawn);

/* Returns the exit code of the first run that failed, or MT_EXIT_OK. */
int mt_sweep_exit_code(const struct mt_sweep *sweep);

/* Finds the cheapest changes with which the run `each`, which is not prepared, fits on a card, by
 * dry runs of its command. Prints what each change saves, and the patch. Returns the exit code. */
int mt_apply_fit(const struct mt_simulated_run *each, const char *card, struct mt_common *common);

#endif
