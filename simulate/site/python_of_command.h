/* Finds the Python that a command runs. */
#ifndef MT_PYTHON_OF_COMMAND_H
#define MT_PYTHON_OF_COMMAND_H

#include <limits.h>
#include <stddef.h>

#include "status.h"

#define MT_PYTHON_FROM_COMMAND "the command"

struct mt_python_choice {
    char path[PATH_MAX]; /* of the Python, or of the program that knows it (uv) */
    char from[64]; /* what chose it: "the command", "first line of torchrun", "VIRTUAL_ENV", ... */
    /* Words of the command that run a Python if its name follows, such as "uv run --with numpy",
     * and that name; NULL and 0: `path` is a Python. */
    char *const *runner;
    size_t runner_words;
    const char *runner_python;
};

/* The interpreter that the command names, or that the first line of its script names; that of one
 * of its arguments (env, timeout, numactl), or of the environment that an argument runs it in (uv
 * run) or activates (sh -c 'source venv/bin/activate'); else, as for a shell script, the python3 of
 * $VIRTUAL_ENV, of $CONDA_PREFIX, of PATH. Runs nothing. MT_ERR_USAGE: there is none. The words of
 * the choice are those of `command`. */
enum mt_status mt_python_of_command(char *const *command, struct mt_python_choice *choice,
                                    struct mt_error *error) MT_MUST_USE;

#endif
