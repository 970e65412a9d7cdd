/* The command that a launcher of PyTorch would start for one rank. */
#ifndef MT_CLI_RANK_COMMAND_H
#define MT_CLI_RANK_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"

struct mt_rank_command {
    char **words; /* command of each rank; ends with NULL; borrows words of the original command */
    uint64_t nodes;       /* --nnodes, or its maximum; 0 = not given */
    uint64_t local_world; /* --nproc-per-node; 0 = not given, or "as many as there are devices" */
    bool is_launched;     /* started by torchrun or by python -m torch.distributed.run */
};

/* Parses the launcher and its options. A command without a launcher is unchanged. Returns -1, or
 * the exit code after an error message. */
int mt_rank_command_read(struct mt_rank_command *read, char *const *command,
                         struct mt_arena *arena);

#endif
