#include "window.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "process_memory.h"

void mt_window_init(struct mt_window *window, struct mt_source *source)
{
    memset(window, 0, sizeof *window);
    window->source = source;
}

void mt_window_release(struct mt_window *window)
{
    free(window->joined);
    memset(window, 0, sizeof *window);
}

static enum mt_status fetch(struct mt_window *window, struct mt_event_batch *batch,
                            struct mt_error *error)
{
    enum mt_status status = MT_END;

    if (!window->at_end)
        status = mt_source_next(window->source, batch, error);
    if (status == MT_END)
        window->at_end = true;
    return status;
}

struct mt_event *mt_window_refill(struct mt_window *window, enum mt_status *status,
                                  struct mt_error *error)
{
    struct mt_event_batch batch;

    MT_ASSERT(window->at == window->count); /* no event is skipped */
    do {
        *status = fetch(window, &batch, error);
        if (*status != MT_OK)
            return NULL;
        window->events = batch.events;
        window->count = batch.count;
    } while (!batch.count);
    window->at = 1;
    return window->events;
}

/* Appends the next batch to the remaining events. */
static enum mt_status join(struct mt_window *window, struct mt_error *error)
{
    size_t left = window->count - window->at;
    struct mt_event_batch batch;
    enum mt_status status;

    /* the current batch belongs to the source: save its rest first */
    if (window->joined_capacity < left || !window->joined) {
        struct mt_event *joined = mt_memory_new((left + 1) * sizeof *joined);
        if (left)
            memcpy(joined, window->events + window->at, left * sizeof *joined);
        free(window->joined);
        window->joined = joined;
        window->joined_capacity = left + 1;
    } else if (left) {
        memmove(window->joined, window->events + window->at, left * sizeof *window->joined);
    }
    window->events = window->joined;
    window->at = 0;
    window->count = left;
    status = fetch(window, &batch, error);
    if (status != MT_OK)
        return status;
    if (window->joined_capacity < left + batch.count) {
        struct mt_event *joined =
            mt_memory_resize(window->joined, (left + batch.count) * sizeof *joined);
        window->joined = window->events = joined;
        window->joined_capacity = left + batch.count;
    }
    memcpy(window->joined + left, batch.events, batch.count * sizeof *batch.events);
    window->count = left + batch.count;
    MT_ASSERT(window->count <= window->joined_capacity);
    /* an inserted event (source.h) has the number of its neighbor */
    MT_ASSERT(!left || !batch.count || window->joined[left - 1].seq <= window->joined[left].seq);
    return MT_OK;
}

struct mt_event *mt_window_peek(struct mt_window *window, size_t ahead, enum mt_status *status,
                                struct mt_error *error)
{
    *status = MT_OK;
    while (window->count - window->at <= ahead) {
        *status = join(window, error);
        if (*status != MT_OK)
            return NULL;
    }
    MT_ASSERT(window->at + ahead < window->count);
    return &window->events[window->at + ahead];
}
