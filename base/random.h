#ifndef MT_BASE_RANDOM_H
#define MT_BASE_RANDOM_H

#include <stdint.h>

/* Returns a random number for uses that need no secrecy. If getrandom fails (old kernels, filters),
 * the number is derived from the time, the process id and `place`, so that two processes are
 * unlikely to get the same one. */
uint64_t mt_random_number(const void *place);

#endif
