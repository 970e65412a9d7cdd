/* All commands, in alphabetical order. A command is one file, cmd_<name>.c; its
 * line here says what --help prints. */
#include "cli.h"

const struct mt_command mt_commands[] = {
    {NULL, NULL, NULL, NULL, NULL},
};
