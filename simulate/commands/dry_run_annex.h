/* What dry runs add to the core: two commands, and a check of `doctor`. */
#ifndef MT_SIMULATE_DRY_RUN_ANNEX_H
#define MT_SIMULATE_DRY_RUN_ANNEX_H

#include "cli.h"
#include "probes.h"

/* The simulated GPU, for mt_collector_library. */
#define MT_SIMULATED_NAME "libmemtrace-simulated-cuda.so"

int mt_cmd_dry_run(const struct mt_command *command, int argc, char **argv);
int mt_cmd_plan(const struct mt_command *command, int argc, char **argv);

extern const struct mt_probe mt_dry_run_probe;

#endif
