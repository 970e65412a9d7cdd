/* One rank of a distributed run, when only this rank runs. */
#ifndef MT_CLI_RANK_H
#define MT_CLI_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_MAX_RANKS = 64 }; /* ranks in one command; equal to MT_MAX_SWEEP_RUNS */
#define MT_MAX_WORLD ((uint64_t)1 << 20)

struct mt_rank {
    uint64_t rank, world;
    uint64_t local_world; /* ranks of a node, which has as many devices */
    bool is_launched;     /* by torchrun, which programs can detect */
};

/* Parses "0,1,7", "0-3", or "all" of `world` ranks. Returns -1 or an exit code; errors were
 * printed. */
int mt_ranks_read(const char *text, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count);

/* Call it in the rank's process: sets the variables of torchrun, and marks the rank as isolated.
 * Returns false if memory runs out. */
bool mt_rank_set_environment(const struct mt_rank *rank);

#endif
