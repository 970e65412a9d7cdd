/* Time in the traced process: counter ticks, taken in the hot path, and what
 * they are in nanoseconds. On x86-64 with an invariant time stamp counter a tick
 * is one of that counter (10 ns to read), elsewhere a nanosecond of
 * CLOCK_MONOTONIC (20 to 40 ns). */
#ifndef MT_COLLECTOR_TICKS_H
#define MT_COLLECTOR_TICKS_H

#include <stdbool.h>
#include <time.h>

#include "tape.h"

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t mt_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
/* Does the processor count at a constant rate, in all states, on all cores? */
bool mt_ticks_are_constant(void);

static inline uint64_t mt_counter_ticks(void)
{
    return __builtin_ia32_rdtsc();
}
#else
static inline bool mt_ticks_are_constant(void)
{
    return false;
}

static inline uint64_t mt_counter_ticks(void)
{
    return mt_monotonic_ns();
}
#endif

/* Ticks beside the Unix time that follows CLOCK_MONOTONIC from the start on
 * (so that nobody who sets the clock disturbs it). */
struct mt_clock {
    bool counter;          /* ticks are the counter's */
    uint64_t unix_less_ns; /* Unix time - CLOCK_MONOTONIC at the start */
};

void mt_clock_start(struct mt_clock *clock);

static inline uint64_t mt_clock_ticks(const struct mt_clock *clock)
{
    return clock->counter ? mt_counter_ticks() : mt_monotonic_ns();
}

struct mt_clock_point mt_clock_now(const struct mt_clock *clock);

/* Unix time of `ticks` on the line through two points of the same clock;
 * `first` is the earlier one. Points that coincide: the first one's time. */
uint64_t mt_ticks_unix_ns(struct mt_clock_point first, struct mt_clock_point last, uint64_t ticks);

#endif
