/* Programs that choose an environment of Python packages and run a program in it: `uv run`. */
#ifndef MT_ENVIRONMENT_RUNNER_H
#define MT_ENVIRONMENT_RUNNER_H

#include <stddef.h>

/* Returns the number of words that choose the environment, that is, the words before the program to
 * run: 4 for `uv run --with numpy python train.py`. Returns 0 if words[0] is not such a program, or
 * if no program to run follows. Compares only names and reads no file. */
size_t mt_environment_runner(char *const *words);

#endif
