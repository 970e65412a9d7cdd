/* Programs that run another program, which their words name: `uv run`, which also chooses an
 * environment of Python packages, and `env`. */
#ifndef MT_ENVIRONMENT_RUNNER_H
#define MT_ENVIRONMENT_RUNNER_H

#include <stddef.h>

/* Returns the number of words that choose the environment, that is, the words before the program to
 * run: 4 for `uv run --with numpy python train.py`. Returns 0 if words[0] is not such a program, or
 * if no program to run follows. Compares only names and reads no file. */
size_t mt_environment_runner(char *const *words);

/* Returns the number of words before the program that `env`, `nice`, `timeout` and the like run: 3
 * for `timeout -v 60 python train.py`. Returns 0 if words[0] is not such a program, or if it is not
 * certain which word is the program to run. Compares only names and reads no file. */
size_t mt_program_launcher(char *const *words);

#endif
