/* Runs memtrace dry-run --sweep after the options are parsed. */
#ifndef MT_CLI_DRY_RUN_SWEEP_H
#define MT_CLI_DRY_RUN_SWEEP_H

#include "sweep_runs.h"

/* Runs all commands, writes the files and prints the answer. Returns the exit code. */
int mt_dry_run_sweep(const struct mt_sweep_arguments *arguments);

#endif
