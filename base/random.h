#ifndef MT_BASE_RANDOM_H
#define MT_BASE_RANDOM_H

#include <stdint.h>

/* A random number that need not be secret. Without getrandom (old kernels, filters) it is made of
 * the time, the process and `place`, so that two processes do not get the same by accident. */
uint64_t mt_random_number(const void *place);

#endif
