/* What dry runs add to the core: a command. */
#ifndef MT_SIMULATE_DRY_RUN_ANNEX_H
#define MT_SIMULATE_DRY_RUN_ANNEX_H

#include "cli.h"

int mt_cmd_dry_run(const struct mt_command *command, int argc, char **argv);

#endif
