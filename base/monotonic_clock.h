/* CLOCK_MONOTONIC, which never goes back and is the same in all processes, and deadlines on it; the
 * time of day. */
#ifndef MT_BASE_MONOTONIC_CLOCK_H
#define MT_BASE_MONOTONIC_CLOCK_H

#include <stdbool.h>
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

/* Nanoseconds since 1970, by CLOCK_REALTIME, which may be set. */
static inline uint64_t mt_unix_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define MT_NO_DEADLINE UINT64_MAX

static inline bool mt_deadline_passed(uint64_t deadline_ns)
{
    return deadline_ns != MT_NO_DEADLINE && mt_now_ns() >= deadline_ns;
}

#endif
