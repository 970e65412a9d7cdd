/* The largest value since each of many starts, in one pass: a stack of maxima, each larger than or
 * equal to those after it. O(1) per value, O(log starts) per query; the work does not depend on the
 * number of open windows. */
#ifndef MT_ANALYZER_HIGHS_H
#define MT_ANALYZER_HIGHS_H

#include "counters.h"
#include "status.h"

#include <stddef.h>

/* An instant with a maximum. */
struct mt_high {
    uint64_t begin; /* number of the first start that it is the maximum of */
    uint64_t value;
    uint64_t t_ns, event;
    int32_t phase; /* innermost at that time */
    struct mt_bytes then;
};

/* Zeroed memory is ready. */
struct mt_highs {
    struct mt_high top; /* since the last start */
    struct mt_high *earlier;
    size_t count, capacity;
};

/* Starts window number `begin` (ascending) at an instant with a value. Uses memory only if the
 * value is below the largest since the last start. */
void mt_highs_begin(struct mt_highs *window, const struct mt_high *now);

/* Returns the first instant of the largest value since window `begin` started; an instant before
 * that means the start itself. */
const struct mt_high *mt_highs_since(struct mt_highs *window, uint64_t begin);

void mt_highs_release(struct mt_highs *window);

/* Takes a value after an event. If it returns true, the caller fills the other fields of top. */
static inline int mt_highs_is_higher(const struct mt_highs *window, uint64_t value)
{
    return value > window->top.value;
}

#endif
