/* What jobs of many ranks add to the core: a command, and for other commands (annexes.h) summaries
 * of ranks, folders and several inputs. */
#ifndef MT_FLEET_FLEET_ANNEX_H
#define MT_FLEET_FLEET_ANNEX_H

#include "annexes.h"

int mt_cmd_fleet(const struct mt_command *command, int argc, char **argv);

extern const struct mt_annex_files mt_fleet_annex;

#endif
