/* What dry runs add to the core: a command, and a check of `doctor`. */
#ifndef MT_SIMULATE_DRY_RUN_ANNEX_H
#define MT_SIMULATE_DRY_RUN_ANNEX_H

#include "cli.h"
#include "probe.h"

int mt_cmd_dry_run(const struct mt_command *command, int argc, char **argv);

extern const struct mt_probe mt_dry_run_probe;

#endif
