/* `earlier` has the maxima of consecutive stretches of starts, from the first start. A stretch that
 * a later one exceeds is merged into it, so values never rise along the stack. Equal ones stay
 * separate: an earlier window needs the first instant of the maximum. A stretch that starts exactly
 * at the previous maximum is not a new one. */
#include "highs.h"

#include "grow.h"
#include <stdlib.h>
#include <string.h>

/* Merges stretches that the last one exceeds. */
static void settle(struct mt_highs *window)
{
    while (window->count && window->earlier[window->count - 1].value < window->top.value) {
        window->count--;
        window->top.begin = window->earlier[window->count].begin;
    }
}

void mt_highs_begin(struct mt_highs *window, const struct mt_high *now)
{
    settle(window);
    if (now->value == window->top.value)
        return; /* the previous maximum is still the maximum */
    mt_grow_to(&window->earlier, &window->capacity, window->count + 1, sizeof *window->earlier);
    window->earlier[window->count++] = window->top;
    window->top = *now;
}

const struct mt_high *mt_highs_since(struct mt_highs *window, uint64_t begin)
{
    size_t low = 0, high;

    settle(window);
    if (begin >= window->top.begin || window->count == 0)
        return &window->top;
    for (high = window->count; low + 1 < high;) {
        size_t middle = low + (high - low) / 2;

        if (window->earlier[middle].begin <= begin)
            low = middle;
        else
            high = middle;
    }
    return &window->earlier[low];
}

void mt_highs_release(struct mt_highs *window)
{
    free(window->earlier);
    memset(window, 0, sizeof *window);
}
