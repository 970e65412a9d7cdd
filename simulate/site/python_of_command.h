/* Finds the Python that a command runs. */
#ifndef MT_PYTHON_OF_COMMAND_H
#define MT_PYTHON_OF_COMMAND_H

#include <limits.h>
#include <stddef.h>

#include "status.h"

#define MT_PYTHON_FROM_COMMAND "the command"

struct mt_python_choice {
    char path[PATH_MAX]; /* of the Python, or of the program that selects it (uv) */
    char from[64];       /* the source of the choice: "the command", "first line of torchrun",
                            "VIRTUAL_ENV", ... */
    /* The words of the command that choose the environment, such as "uv run --with numpy", and the
     * name of the Python to run after them. NULL and 0 if `path` is a Python. */
    char *const *runner;
    size_t runner_words;
    const char *runner_python;
};

/* Looks only at the program that the command runs: its first word, or the program that words such
 * as `env A=b` and `timeout 60` run. Other words are data, and what they name is never chosen.
 * Finds the interpreter that this program is, or that the first line of its script names; that of
 * the environment in which it runs a program (uv run); or that of the environment which it
 * activates (sh -c 'source venv/bin/activate'). Otherwise, uses the python3 of $VIRTUAL_ENV, of
 * $CONDA_PREFIX, or of PATH. Runs nothing. MT_ERR_USAGE: no interpreter was found, or the command
 * activates one that other users can replace and that is not in $VIRTUAL_ENV or $CONDA_PREFIX. The
 * words in *choice are borrowed from `command`. */
enum mt_status mt_python_of_command(char *const *command, struct mt_python_choice *choice,
                                    struct mt_error *error) MT_MUST_USE;

/* Programs that run another program, which their words name: `uv run`, which also chooses an
 * environment of Python packages, and `env`. */

/* Returns the number of words that choose the environment, that is, the words before the program to
 * run: 4 for `uv run --with numpy python train.py`. Returns 0 if words[0] is not such a program, or
 * if no program to run follows. Compares only names and reads no file. */
size_t mt_environment_runner(char *const *words);

/* Returns the number of words before the program that `env`, `nice`, `timeout` and the like run: 3
 * for `timeout -v 60 python train.py`. Returns 0 if words[0] is not such a program, or if it is not
 * certain which word is the program to run. Compares only names and reads no file. */
size_t mt_program_launcher(char *const *words);

#endif
