/* Ticks at round values: bytes at 1, 2, 2.5 or 5 times a power of ten of one IEC unit, times and
 * counts at 1, 2 or 5. Pure functions. */
#ifndef MT_RENDER_SCALE_H
#define MT_RENDER_SCALE_H

#include <stddef.h>
#include <stdint.h>

#define MT_MAX_TICKS 16
#define MT_TICK_TEXT 64

struct mt_tick {
    uint64_t value;
    char label[MT_TICK_TEXT]; /* "7.5 GiB", "0" */
};

struct mt_ticks {
    struct mt_tick ticks[MT_MAX_TICKS]; /* ascending, the first is 0 */
    size_t count;
};

/* Returns at most `most` (2..16) ticks from 0 to `top`. The unit is the largest one with
 * `largest_value` >= 2 units: steps of 200 MiB, not 0.2 GiB. */
void mt_byte_ticks(struct mt_ticks *ticks, uint64_t largest_value, uint64_t top, size_t most);

/* Returns the smallest round step of at least `least` ns: 1, 2, 5 x 10^k; for a minute and more,
 * steps of clocks (1, 2, 5, 10, 15, 30 min, 1, 2, 3, 6, 12 h, days). */
uint64_t mt_time_step(double least_ns);
/* Smallest of 1, 2, 5 x 10^k that is >= `least`, at least 1. */
uint64_t mt_count_step(double least);

/* Label of the tick at t in steps of `step`: "3.4 s", "20 ms", "15 min". The
 * unit follows `longest`, the largest time on the axis. */
void mt_time_label(char text[MT_TICK_TEXT], uint64_t t_ns, uint64_t step_ns, uint64_t longest_ns);

#endif
