/* A rank of a distributed job that runs without the other ranks. */
#ifndef MT_CLI_RANK_H
#define MT_CLI_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

enum { MT_MAX_RANKS = 64 };            /* maximum of one point */
enum { MT_MAX_SIMULATED_DEVICES = 8 }; /* of a node; as in simulate/driver/simulated_driver.h */
#define MT_MAX_WORLD ((uint64_t)1 << 20)

struct mt_rank {
    uint64_t rank, world;
    uint64_t local_world; /* ranks of a node, equal to its number of devices */
    bool is_launched;     /* started by torchrun, which programs can detect */
    /* Beginning of the files in which ranks leave objects to each other, and the ranks that do:
     * "0,1,7". NULL: none. */
    const char *objects, *companions;
};

/* Parses a list of ranks: "0,1,7", "0-3", or "all" for all `world` ranks. Returns -1, or the exit
 * code after an error message. */
int mt_ranks_read(const char *text, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count);

/* Sets an environment variable to a number. */
bool mt_setenv_number(const char *name, uint64_t number);

/* Sets the environment variables of torchrun, and marks the rank as isolated. Call it in the
 * process of the rank. */
bool mt_rank_set_environment(const struct mt_rank *rank);

/* The command that a launcher of PyTorch would start for one rank. */

struct mt_rank_command {
    char **words; /* command of each rank; ends with NULL; borrows words of the original command */
    uint64_t nodes;       /* --nnodes, or its maximum; 0 = not given */
    uint64_t local_world; /* --nproc-per-node; 0 = not given, or "as many as there are devices" */
    bool is_launched;     /* started by torchrun or by python -m torch.distributed.run */
    const char *other_launcher; /* "accelerate": it starts ranks in another way; otherwise NULL */
};

/* Parses the launcher and its options. A command without a launcher is unchanged. Returns -1, or
 * the exit code after an error message. */
int mt_rank_command_read(struct mt_rank_command *read, char *const *command,
                         struct mt_arena *arena);

#endif
