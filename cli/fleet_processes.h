/* The processes that mpirun or srun started to share the work of one command. */
#ifndef MT_CLI_FLEET_PROCESSES_H
#define MT_CLI_FLEET_PROCESSES_H

#include <stdbool.h>

#include "exchange.h"

/* Fills *exchange: this process alone, or one of those that a launcher of MPI started (Open MPI,
 * MPICH and Slurm say so in the environment). Returns an exit status; other than MT_EXIT_OK after a
 * message: the launcher started several, and MPI is not there. Each of them would do all the work
 * and write the same files. */
int mt_fleet_processes_begin(struct mt_exchange *exchange);

/* Waits for the others, if the work was shared. Else the others wait for a part of it that does not
 * come, and this ends them all with exit status `code`. */
void mt_fleet_processes_end(const struct mt_exchange *exchange, bool has_shared, int code);

#endif
