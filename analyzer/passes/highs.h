/* The largest value since each of many begins, in one pass: a stack of maxima,
 * each larger or equal to those after it. O(1) a value, O(log begins) a
 * question; the work does not depend on how many windows are open. */
#ifndef MT_ANALYZER_HIGHS_H
#define MT_ANALYZER_HIGHS_H

#include "counters.h"
#include "status.h"

#include <stddef.h>

/* An instant, and what it was the largest of. */
struct mt_high {
    uint64_t begin; /* number of the first begin that it answers for */
    uint64_t value;
    uint64_t t_ns, event;
    int32_t phase; /* innermost then */
    struct mt_bytes then;
};

/* Zeroed memory is ready. */
struct mt_highs {
    struct mt_high top; /* since the last begin */
    struct mt_high *earlier;
    size_t count, capacity;
};

/* Begins window number `begin` (ascending) at an instant with a value. Costs
 * memory only if the value is below the largest since the last begin. */
enum mt_status mt_highs_begin(struct mt_highs *window, const struct mt_high *now) MT_MUST_USE;

/* First instant of the largest value since window `begin` began; one that lies
 * before the begin means the begin itself. */
const struct mt_high *mt_highs_since(struct mt_highs *window, uint64_t begin);

void mt_highs_release(struct mt_highs *window);

/* A value after an event. The caller fills the other fields of top if true. */
static inline int mt_highs_is_higher(const struct mt_highs *window, uint64_t value)
{
    return value > window->top.value;
}

#endif
