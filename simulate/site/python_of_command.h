/* Which Python a command runs. */
#ifndef MT_PYTHON_OF_COMMAND_H
#define MT_PYTHON_OF_COMMAND_H

#include <limits.h>

#include "status.h"

#define MT_PYTHON_FROM_COMMAND "the command"

struct mt_python_choice {
    char path[PATH_MAX];
    char from[64]; /* what chose it: "the command", "first line of torchrun", "VIRTUAL_ENV", ... */
};

/* The interpreter that the command names, or that the first line of its script names; that of one
 * of its arguments (env, timeout, numactl); else, as for a shell script, the python3 of
 * $VIRTUAL_ENV, of $CONDA_PREFIX, of PATH. Runs nothing. MT_ERR_USAGE: there is none. */
enum mt_status mt_python_of_command(char *const *command, struct mt_python_choice *choice,
                                    struct mt_error *error) MT_MUST_USE;

#endif
