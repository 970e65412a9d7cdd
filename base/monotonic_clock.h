/* A clock that never goes back. */
#ifndef MT_BASE_MONOTONIC_CLOCK_H
#define MT_BASE_MONOTONIC_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since a moment that is not known. */
static inline uint64_t mt_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t mt_now_ms(void)
{
    return mt_now_ns() / 1000000;
}

#endif
