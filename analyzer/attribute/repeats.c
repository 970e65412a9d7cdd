#include "repeats.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_PERIOD = 2, MIN_TIMES = 2 };

static bool differ(const uint64_t *tokens, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (tokens[i] != tokens[0])
            return true;
    return false;
}

/* Considers a run of `length` tokens that equal those one period later. */
static void consider(const uint64_t *tokens, struct mt_repeat run, size_t length,
                     struct mt_repeat *best)
{
    run.times = length / run.period + 1;
    run.more = length % run.period;
    if (run.times < MIN_TIMES || run.times * run.period <= best->times * best->period ||
        !differ(tokens + run.begin, run.period))
        return;
    *best = run;
}

static void try_period(const uint64_t *tokens, size_t begin, size_t end, size_t period,
                       struct mt_repeat *best)
{
    size_t first = begin;

    for (size_t i = begin; i + period <= end; i++) {
        bool is_equal = i + period < end && tokens[i] == tokens[i + period];

        if (is_equal)
            continue;
        consider(tokens, (struct mt_repeat){first, period, 0, 0}, i - first, best);
        first = i + 1;
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct mt_repeat *x = a, *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

void mt_repeats_find(const uint64_t *tokens, size_t count, struct mt_repeats *repeats)
{
    struct span {
        size_t begin, end;
    } open[MT_REPEATS_MAX + 1] = {{0, count}};
    uint32_t open_count = count <= MT_REPEATS_TOKENS_MAX;

    repeats->count = 0;
    while (open_count && repeats->count < MT_REPEATS_MAX) {
        struct span span = open[--open_count];
        struct mt_repeat best = {0, 0, 0, 0};

        for (size_t period = MIN_PERIOD; period <= (span.end - span.begin) / 2; period++)
            try_period(tokens, span.begin, span.end, period, &best);
        if (!best.times)
            continue;
        repeats->list[repeats->count++] = best;
        if (open_count + 2 > MT_REPEATS_MAX)
            continue;
        open[open_count++] = (struct span){span.begin, best.begin};
        open[open_count++] = (struct span){best.begin + best.period * best.times, span.end};
    }
    qsort(repeats->list, repeats->count, sizeof *repeats->list, by_begin);
}
