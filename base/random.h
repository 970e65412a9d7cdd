#ifndef MT_BASE_RANDOM_H
#define MT_BASE_RANDOM_H

#include <stdint.h>

/* Returns a random number that need not be secret. Without getrandom (old kernels, filters) it
 * derives from the time, the process id and `place`, so that two processes are unlikely to get the
 * same number. */
uint64_t mt_random_number(const void *place);

#endif
