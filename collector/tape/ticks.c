/* See ticks.h. */
#include "ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>

bool mt_ticks_are_constant(void)
{
    unsigned a, b, c, d;
    const unsigned invariant_tsc = 1u << 8;

    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & invariant_tsc);
}
#endif

static uint64_t unix_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void mt_clock_start(struct mt_clock *clock)
{
    clock->counter = mt_ticks_are_constant();
    clock->unix_less_ns = unix_ns() - mt_monotonic_ns();
}

/* The tightest of a few readings: the thread may lose the processor between the
 * two clocks. */
struct mt_clock_point mt_clock_now(const struct mt_clock *clock)
{
    struct mt_clock_point best = {0, 0};
    uint64_t best_width = UINT64_MAX;
    int i;

    for (i = 0; i < 4; i++) {
        uint64_t before = mt_clock_ticks(clock);
        uint64_t now_ns = mt_monotonic_ns();
        uint64_t width = mt_clock_ticks(clock) - before;
        if (width < best_width) {
            best_width = width;
            best = (struct mt_clock_point){before + width / 2, now_ns + clock->unix_less_ns};
        }
    }
    return best;
}

uint64_t mt_ticks_unix_ns(struct mt_clock_point first, struct mt_clock_point last, uint64_t ticks)
{
    double slope, distance;

    if (last.ticks <= first.ticks || last.unix_ns <= first.unix_ns)
        return first.unix_ns;
    slope = (double)(last.unix_ns - first.unix_ns) / (double)(last.ticks - first.ticks);
    /* from the nearer, later point: less to round */
    distance = ticks >= last.ticks ? (double)(ticks - last.ticks) : -(double)(last.ticks - ticks);
    distance *= slope;
    if (distance < 0 && (uint64_t)-distance >= last.unix_ns)
        return 0;
    return distance < 0 ? last.unix_ns - (uint64_t)-distance : last.unix_ns + (uint64_t)distance;
}
