/* The same command under another assumption about what a dry run does not know: when memory that
 * waits for the device is freed, how much of the data it makes up counts, and the outcome of
 * decisions that depend on such data. A range between such runs replaces a doubt. */
#ifndef MT_CLI_ASSUMPTION_H
#define MT_CLI_ASSUMPTION_H

#include "sweep.h"

struct mt_simulated_run; /* simulated_run.h */
struct mt_common;

/* Runs a prepared run to its end. If the command fails because of a guess, runs it again with the
 * other outcome there, at most MT_MAX_OTHER_OUTCOMES times; *run is then the last run. Returns -1,
 * or an exit code if nothing was recorded. */
int mt_assumption_finish(struct mt_simulated_run *run);

/* Runs the command of `first` under other assumptions, as far as its result may depend on them, and
 * fills result->assumed. Writes traces next to `path` and removes them. What the command prints is
 * lost. A signal that ends one of these runs, such as INT of a terminal, is the last. */
struct mt_assuming {
    const struct mt_simulated_run *first;
    struct mt_common *common;
    const char *path; /* a trace of the first run; has a folder */
    bool is_quiet;    /* prints no line before each run */
};
void mt_assume_others(const struct mt_assuming *assuming, struct mt_sweep_result *result);

#endif
