/* Time in the traced process: counter ticks, which the hot path reads, and their conversion to
 * nanoseconds. On x86-64 with an invariant time stamp counter, ticks are those of that counter
 * (10 ns to read); elsewhere they are nanoseconds of CLOCK_MONOTONIC (20 to 40 ns). */
#ifndef MT_COLLECTOR_TICKS_H
#define MT_COLLECTOR_TICKS_H

#include <stdbool.h>

#include "monotonic_clock.h"
#include "tape.h"

#if defined(__x86_64__)
/* Returns true if the counter has a constant rate in all states and on all cores. */
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
    return mt_now_ns();
}
#endif

/* Reads ticks, and converts them to Unix time. After the start, Unix time advances with
 * CLOCK_MONOTONIC, so that changes of the system clock have no effect. */
struct mt_clock {
    bool counter;          /* ticks are read from the time stamp counter */
    uint64_t unix_less_ns; /* Unix time - CLOCK_MONOTONIC at the start */
};

void mt_clock_start(struct mt_clock *clock);

static inline uint64_t mt_clock_ticks(const struct mt_clock *clock)
{
    return clock->counter ? mt_counter_ticks() : mt_now_ns();
}

struct mt_clock_point mt_clock_now(const struct mt_clock *clock);

/* Returns the Unix time of `ticks` on the line through two points of the same clock; `first` is
 * the earlier one. If the points coincide, returns the time of the first. */
uint64_t mt_ticks_unix_ns(struct mt_clock_point first, struct mt_clock_point last, uint64_t ticks);

#endif
