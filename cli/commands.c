/* All commands, in alphabetical order. A command is one file, cmd_<name>.c; its
 * line here says what --help prints. */
#include "cli.h"

const struct mt_command mt_commands[] = {
    {"import", "FILE -o TRACE [options]", "write any format that can be read as a trace",
     "Reads PyTorch memory snapshots (torch.cuda.memory._dump_snapshot), zstd-compressed or not.\n"
     "Every other command reads them too; a trace is smaller and can be sought.",
     mt_cmd_import},
    {NULL, NULL, NULL, NULL, NULL},
};
