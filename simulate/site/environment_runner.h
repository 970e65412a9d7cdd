/* Programs that choose an environment of Python packages and run a program in it: `uv run`. */
#ifndef MT_ENVIRONMENT_RUNNER_H
#define MT_ENVIRONMENT_RUNNER_H

#include <stddef.h>

/* How many of the words choose the environment, which is all before the program that is run: 4 of
 * `uv run --with numpy python train.py`. 0: words[0] is no such program, or runs nothing. Only
 * names are compared: no file is read. */
size_t mt_environment_runner(char *const *words);

#endif
