/* Who this process is among those of a run. */
#ifndef MT_INJECT_RUN_NAMES_H
#define MT_INJECT_RUN_NAMES_H

#include <stddef.h>

/* Rank in a distributed run by its launcher's variables (torchrun, MPI, Slurm),
 * -1 if there is none. */
long mt_run_rank(void);
long mt_run_world_size(void);

/* The host's name, safe as a part of a file's name. */
void mt_run_host(char *out, size_t capacity);

#endif
