/* Windows on the events of a source, and readings that several windows share. */
#ifndef MT_ANALYZER_EVENT_WINDOW_H
#define MT_ANALYZER_EVENT_WINDOW_H

#include "source.h"

/* A window on a source's events with lookahead. Batches are passed through unchanged. They are
 * joined only if a caller looks beyond the end of a batch. */

struct mt_window {
    struct mt_source *source;
    struct mt_shared_reading *shared; /* NULL = reads the source alone */
    uint64_t batches;                 /* of the shared reading, so far */
    struct mt_event *events;          /* [at, count): not returned yet */
    size_t at, count;
    struct mt_event *joined; /* memory of the window for batches that were joined */
    size_t joined_capacity;
    bool at_end, holds_batch; /* the last batch is of the shared reading */
};

/* A reading of a source by two windows, each in its own thread. The window that first needs a batch
 * reads it. A window that is far ahead waits for the other one, until that leaves. */
struct mt_shared_reading *mt_shared_reading_new(struct mt_source *source);
void mt_shared_reading_free(struct mt_shared_reading *reading);

void mt_window_init(struct mt_window *window, struct mt_source *source,
                    struct mt_shared_reading *shared);
void mt_window_leave(struct mt_window *window);
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
