/* The monotonic clock, and deadlines on it. */
#ifndef MT_ANALYZER_CLOCK_H
#define MT_ANALYZER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define MT_NO_DEADLINE UINT64_MAX

static inline uint64_t mt_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline bool mt_deadline_passed(uint64_t deadline_ns)
{
    return deadline_ns != MT_NO_DEADLINE && mt_clock_ns() >= deadline_ns;
}

#endif
