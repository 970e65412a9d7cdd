#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define SECOND 1000000000u
#define MINUTE (60ull * SECOND)
#define HOUR   (60ull * MINUTE)

/* Returns the smallest m x 10^k >= least, where m is one of `multiples`, which ascend and begin
 * with 1. */
static double round_step(double least, const double *multiples, size_t count)
{
    double power = pow(10, floor(log10(least)));

    for (size_t i = 0; i < count; i++)
        if (power * multiples[i] >= least * (1 - 1e-9))
            return power * multiples[i];
    return power * 10;
}

/* Returns the largest round number that is at most `value`. */
static double round_down(double value)
{
    static const double multiples[] = {5, 2.5, 2, 1};
    double power = pow(10, floor(log10(value)));
    size_t i;

    for (i = 0; i + 1 < MT_ARRAY_LEN(multiples); i++)
        if (power * multiples[i] <= value)
            break;
    return power * multiples[i];
}

static double smallest_byte_step(double top, size_t most, double unit)
{
    static const double multiples[] = {1, 2, 2.5, 5};
    double step = round_step(top / unit / (double)(most - 1), multiples, 4);

    /* Takes larger steps while there are too many ticks, because of rounding, or while a step is
     * less than a byte. */
    while (floor(top / unit / step + 1e-9) + 1 > (double)most || step * unit < 1)
        step = round_step(step * 1.01, multiples, 4);
    /* There must be at least one tick in addition to 0. */
    return step * unit > top ? round_down(top / unit) : step;
}

static void byte_label(char *text, uint64_t tenths, const char *unit)
{
    char count[MT_UNITS_TEXT];

    mt_format_count(count, tenths / 10);
    if (tenths % 10)
        snprintf(text, MT_TICK_TEXT, "%s.%u %s", count, (unsigned)(tenths % 10), unit);
    else if (tenths)
        snprintf(text, MT_TICK_TEXT, "%s %s", count, unit);
    else
        snprintf(text, MT_TICK_TEXT, "0");
}

void mt_byte_ticks(struct mt_ticks *ticks, uint64_t largest_value, uint64_t top, size_t most)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double unit = 1;
    size_t index = 0;

    most = most < 2 ? 2 : most > MT_MAX_TICKS ? MT_MAX_TICKS : most;
    while (index + 1 < MT_ARRAY_LEN(units) && (double)largest_value >= 2 * 1024 * unit) {
        unit *= 1024;
        index++;
    }
    memset(ticks, 0, sizeof *ticks);
    double step = top ? smallest_byte_step((double)top, most, unit) : 1;
    do {
        struct mt_tick *tick = &ticks->ticks[ticks->count];
        double value = step * (double)ticks->count;

        tick->value = (uint64_t)(value * unit + 0.5);
        byte_label(tick->label, (uint64_t)(value * 10 + 0.5), units[index]);
        ticks->count++;
    } while (ticks->count < most &&
             step * (double)ticks->count * unit <= (double)top * (1 + 1e-12));
}

uint64_t mt_scale_count_step(double least)
{
    static const double multiples[] = {1, 2, 5};

    if (!(least > 1))
        return 1;
    return (uint64_t)(round_step(fmin(least, 1e18), multiples, 3) + 0.5);
}

uint64_t mt_scale_time_step(double least_ns)
{
    static const uint64_t clock[] = {MINUTE,      2 * MINUTE,  5 * MINUTE, 10 * MINUTE,
                                     15 * MINUTE, 30 * MINUTE, HOUR,       2 * HOUR,
                                     3 * HOUR,    6 * HOUR,    12 * HOUR,  24 * HOUR};

    if (!(least_ns > 50e9))
        return mt_scale_count_step(least_ns);
    for (size_t i = 0; i < MT_ARRAY_LEN(clock); i++)
        if ((double)clock[i] >= least_ns)
            return clock[i];
    return mt_scale_count_step(least_ns / (24.0 * (double)HOUR)) * 24 * HOUR;
}

enum { MAX_DECIMALS = 9 };

void mt_scale_time_label(char text[MT_TICK_TEXT], uint64_t t_ns, uint64_t step_ns,
                         uint64_t longest_ns)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = {{SECOND, "s"}, {1000000, "ms"}, {1000, "\xC2\xB5s"}, {1, "ns"}};
    char whole[MT_UNITS_TEXT], fraction[MAX_DECIMALS + 1] = "";
    uint64_t part;
    size_t decimals = 0, i = 0;

    if (step_ns >= MINUTE) {
        snprintf(text, MT_TICK_TEXT, "%s %s",
                 mt_format_count(whole, t_ns / (step_ns >= HOUR ? HOUR : MINUTE)),
                 step_ns >= HOUR ? "h" : "min");
        return;
    }
    while (i + 1 < MT_ARRAY_LEN(units) && longest_ns < units[i].ns)
        i++;
    mt_format_count(whole, t_ns / units[i].ns);
    /* Uses enough decimals to distinguish adjacent ticks. */
    for (part = units[i].ns; step_ns % part && decimals < MAX_DECIMALS; part /= 10)
        decimals++;
    uint64_t rest = t_ns % units[i].ns / part;
    for (part = decimals; part; part--, rest /= 10)
        fraction[part - 1] = (char)('0' + rest % 10);
    snprintf(text, MT_TICK_TEXT, "%s%s%s %s", whole, decimals ? "." : "", fraction, units[i].name);
}
