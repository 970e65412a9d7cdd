/* The processes of mpirun or srun that share the work of one command. */
#ifndef MT_CLI_FLEET_PROCESSES_H
#define MT_CLI_FLEET_PROCESSES_H

#include <stdbool.h>

#include "exchange.h"

/* Fills *exchange: this process alone, or the processes that an MPI launcher started (Open MPI,
 * MPICH and Slurm set variables in the environment). Returns an exit status. Fails with a message
 * if the launcher started several and MPI is missing, because each of them would do all the work
 * and write the same files. */
int mt_fleet_processes_begin(struct mt_exchange *exchange);

/* Waits for the other processes if the work was shared. If this process failed before that, the
 * others still wait for it, so this call ends all processes with exit status `code`. */
void mt_fleet_processes_end(const struct mt_exchange *exchange, bool has_shared, int code);

#endif
