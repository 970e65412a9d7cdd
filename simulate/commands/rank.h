/* A rank of a distributed job that runs without the other ranks. */
#ifndef MT_CLI_RANK_H
#define MT_CLI_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_MAX_RANKS = 64 }; /* maximum in one command; equal to MT_MAX_SWEEP_RUNS */
#define MT_MAX_WORLD ((uint64_t)1 << 20)

struct mt_rank {
    uint64_t rank, world;
    uint64_t local_world; /* ranks of a node, equal to its number of devices */
    bool is_launched;     /* started by torchrun, which programs can detect */
};

/* Parses a list of ranks: "0,1,7", "0-3", or "all" for all `world` ranks. Returns -1, or the exit
 * code after an error message. */
int mt_ranks_read(const char *text, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count);

/* Sets the environment variables of torchrun, and marks the rank as isolated. Call it in the
 * process of the rank. */
bool mt_rank_set_environment(const struct mt_rank *rank);

#endif
