/* One rank of a distributed run, of which only this one is run. */
#ifndef MT_CLI_RANK_H
#define MT_CLI_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_MAX_RANKS = 64 }; /* that are run; as MT_MAX_SWEEP_RUNS */
#define MT_MAX_WORLD ((uint64_t)1 << 20)

struct mt_rank {
    uint64_t rank, world;
    uint64_t local_world; /* ranks of a node, which has as many devices */
    bool is_launched;     /* by torchrun: programs see that */
};

/* "0,1,7", "0-3", "all" of `world` ranks. -1 or an exit code; what is wrong was said. */
int mt_ranks_read(const char *text, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count);

/* In the rank's process: the variables that torchrun sets, and that it is alone. False: no
 * memory. */
bool mt_rank_set_environment(const struct mt_rank *rank);

#endif
