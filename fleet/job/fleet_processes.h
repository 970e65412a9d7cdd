/* Processes that mpirun or srun started, which share the work of one command. */
#ifndef MT_CLI_FLEET_PROCESSES_H
#define MT_CLI_FLEET_PROCESSES_H

#include <stdbool.h>

#include "exchange.h"

/* Fills *exchange for the processes that an MPI launcher started, or for this process alone.
 * Recognizes Open MPI, MPICH and Slurm by their environment variables. Returns an exit status.
 * Fails with a message if there are several processes but MPI is missing, because each process
 * would do all the work and write the same files. */
int mt_fleet_processes_begin(struct mt_exchange *exchange);

/* If `has_shared` is set, waits for the other processes. Otherwise ends all processes with exit
 * status `code`: this process failed before the work was shared, and the others would wait for it
 * forever. */
void mt_fleet_processes_end(const struct mt_exchange *exchange, bool has_shared, int code);

#endif
