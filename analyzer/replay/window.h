/* A window on a source's events with lookahead. Batches are passed through unchanged. They are
 * joined only if a caller looks beyond the end of a batch. */
#ifndef MT_ANALYZER_WINDOW_H
#define MT_ANALYZER_WINDOW_H

#include "source.h"

struct mt_window {
    struct mt_source *source;
    struct mt_event *events; /* [at, count): not returned yet */
    size_t at, count;
    struct mt_event *joined; /* memory of the window for batches that were joined */
    size_t joined_capacity;
    bool at_end;
};

void mt_window_init(struct mt_window *window, struct mt_source *source);
void mt_window_release(struct mt_window *window);

/* Continues mt_window_next at the end of a batch. */
struct mt_event *mt_window_refill(struct mt_window *window, enum mt_status *status,
                                  struct mt_error *error);

/* Returns the next event. NULL: the end of the trace (status MT_END), or an error. */
static inline struct mt_event *mt_window_next(struct mt_window *window, enum mt_status *status,
                                              struct mt_error *error)
{
    if (window->at == window->count)
        return mt_window_refill(window, status, error);
    *status = MT_OK;
    return &window->events[window->at++];
}

/* Returns the event `ahead` places after the last one returned (0 = the next one), or NULL if the
 * trace ends before. Invalidates pointers from mt_window_next. */
struct mt_event *mt_window_peek(struct mt_window *window, size_t ahead, enum mt_status *status,
                                struct mt_error *error);

#endif
