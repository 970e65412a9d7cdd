/* The command of one rank: what a launcher of PyTorch would start. */
#ifndef MT_CLI_RANK_COMMAND_H
#define MT_CLI_RANK_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"

struct mt_rank_command {
    char **words;         /* of each rank; ends with NULL; words of the launcher's are borrowed */
    uint64_t nodes;       /* --nnodes, or its maximum; 0 = not given */
    uint64_t local_world; /* --nproc-per-node; 0 = not given, or "as many as there are devices" */
    bool is_launched;     /* by torchrun, or by python -m torch.distributed.run */
};

/* Parses the options of torchrun; a command without a launcher is unchanged. Returns -1 or an
 * exit code; errors were printed. */
int mt_rank_command_read(struct mt_rank_command *read, char *const *command,
                         struct mt_arena *arena);

#endif
