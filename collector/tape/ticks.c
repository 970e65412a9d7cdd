#include "ticks.h"

#include "util.h"

#if defined(__x86_64__)
#include <cpuid.h>

bool mt_ticks_are_constant(void)
{
    unsigned a, b, c, d;
    const unsigned invariant_tsc = 1u << 8;

    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & invariant_tsc);
}
#endif

void mt_clock_start(struct mt_clock *clock)
{
    clock->counter = mt_ticks_are_constant();
    clock->unix_less_ns = mt_unix_ns() - mt_now_ns();
}

/* Uses the tightest of a few readings: the thread may lose the processor between reading the two
 * clocks. */
struct mt_clock_point mt_clock_now(const struct mt_clock *clock)
{
    struct mt_clock_point best = {0, 0};
    uint64_t best_width = UINT64_MAX;

    for (int i = 0; i < 4; i++) {
        uint64_t before = mt_clock_ticks(clock);
        uint64_t now_ns = mt_now_ns();
        uint64_t width = mt_clock_ticks(clock) - before;
        if (width < best_width) {
            best_width = width;
            best = (struct mt_clock_point){before + width / 2, now_ns + clock->unix_less_ns};
        }
    }
    return best;
}

/* Converts a double to a whole number, at most the largest one. */
static uint64_t clamped(double value)
{
    return value < 18446744073709549568.0 ? (uint64_t)value : UINT64_MAX;
}

uint64_t mt_ticks_unix_ns(struct mt_clock_point first, struct mt_clock_point last, uint64_t ticks)
{
    uint64_t distance_ns, sum_ns;

    if (last.ticks <= first.ticks || last.unix_ns <= first.unix_ns)
        return first.unix_ns;
    double slope = (double)(last.unix_ns - first.unix_ns) / (double)(last.ticks - first.ticks);
    /* from the later point, which is nearer, so less is rounded */
    if (ticks < last.ticks) {
        distance_ns = clamped((double)(last.ticks - ticks) * slope);
        return last.unix_ns - mt_min_u64(distance_ns, last.unix_ns);
    }
    distance_ns = clamped((double)(ticks - last.ticks) * slope);
    return mt_add_ok(last.unix_ns, distance_ns, &sum_ns) ? sum_ns : UINT64_MAX;
}
