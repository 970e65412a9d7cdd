/* Ticks at round values. The distance of ticks for bytes is 1, 2, 2.5 or 5 times a power of ten, in
 * one binary unit. For times and counts, it is 1, 2 or 5 times a power of ten. */
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
    struct mt_tick ticks[MT_MAX_TICKS]; /* ascending; the first is 0 */
    size_t count;
};

/* Fills *ticks with at most `most` (2..16) ticks from 0 to `top`. The unit is the largest binary
 * unit that is at most half of `largest_value`, so steps are 200 MiB instead of 0.2 GiB. */
void mt_byte_ticks(struct mt_ticks *ticks, uint64_t largest_value, uint64_t top, size_t most);

/* Returns the smallest round step of at least `least_ns`: 1, 2 or 5 times a power of ten. Steps of
 * at least a minute are those of a clock: 1, 2, 5, 10, 15, 30 min, 1, 2, 3, 6, 12 h, and days. */
uint64_t mt_scale_time_step(double least_ns);
/* Returns the smallest number of at least `least` that is 1, 2 or 5 times a power of ten. The
 * result is at least 1. */
uint64_t mt_scale_count_step(double least);

/* Writes the label of the tick at `t_ns` on an axis with a tick every `step_ns`: "3.4 s", "20 ms",
 * "15 min". The unit depends on `longest_ns`, the largest time on the axis. */
void mt_scale_time_label(char text[MT_TICK_TEXT], uint64_t t_ns, uint64_t step_ns,
                         uint64_t longest_ns);

#endif
