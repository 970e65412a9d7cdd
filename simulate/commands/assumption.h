/* The same command under another assumption about what a dry run does not know: when memory that
 * waits for the device is freed, how much of the data it makes up counts, and the outcome of
 * decisions that depend on such data. A range between such runs replaces a doubt. */
#ifndef MT_CLI_ASSUMPTION_H
#define MT_CLI_ASSUMPTION_H

#include "sweep.h"

struct mt_simulated_run; /* simulated_run.h */
struct mt_common;
struct mt_dry_run_answer;
struct mt_dry_run_notes;

/* Runs a prepared run to its end. If the command fails because of a guess, runs it again with the
 * other outcome there, at most MT_MAX_OTHER_OUTCOMES times; *run is then the last run. Returns -1,
 * or an exit code if nothing was recorded. */
int mt_assumption_finish(struct mt_simulated_run *run);

/* The name of the trace of another run ends so. No file of a sweep has this suffix: a value has no
 * "~" in it. */
#define MT_AGAIN_SUFFIX "~again.trace.zst"

/* Runs the command of `first` under other assumptions, as far as its result may depend on them, and
 * fills result->assumed. Writes traces to `output` and removes them. What the command prints is
 * lost. If `tells` is set, prints a line before each run. */
struct mt_assuming {
    const struct mt_simulated_run *first;
    struct mt_common *common;
    const char *output; /* with MT_AGAIN_SUFFIX; has a folder */
    bool tells;
};
void mt_assume_others(const struct mt_assuming *assuming, struct mt_sweep_result *result);

/* Sets what is known without a trace: how the command ended, and on what its peaks may depend. */
void mt_sweep_begin(struct mt_sweep_result *result, const struct mt_dry_run_answer *answer);

/* As mt_assume_others, for a single run, whose traces are next to those of the first. Measures the
 * first run before. Returns false if its peaks depend on nothing that a dry run does not know. */
bool mt_assume_of_answer(const struct mt_assuming *assuming, const struct mt_dry_run_answer *answer,
                         struct mt_sweep_result *result);

/* Fills `cause` from the peak of the report's device `device`: the place whose number of made-up
 * elements divides the sizes of the most bytes. */
void mt_guess_cause_find(struct mt_guess_cause *cause, const struct mt_dry_run_notes *notes,
                         const struct mt_report *report, unsigned device);

#endif
