#include "event_window.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "process_memory.h"
#include "source.h"

/* Batches that a window may be ahead of the slowest one. */
enum { AHEAD = 4, WINDOWS = 2 };

/* A copy of a batch: the source's own is gone when it reads the next one. */
struct copy {
    struct mt_event *events;
    size_t count, capacity;
    unsigned users; /* windows that have not finished with it */
};

struct mt_shared_reading {
    struct mt_source *source;
    pthread_mutex_t lock; /* protects the rest, and the source while it reads */
    pthread_cond_t freed; /* a copy has no users, or a window left */
    struct copy copies[AHEAD];
    unsigned windows;      /* that did not leave */
    uint64_t read;         /* batches so far */
    enum mt_status status; /* of the last reading */
    struct mt_error error;
};

struct mt_shared_reading *mt_shared_reading_new(struct mt_source *source)
{
    struct mt_shared_reading *reading = mt_memory_zeroed(1, sizeof *reading);

    reading->source = source;
    reading->windows = WINDOWS;
    pthread_mutex_init(&reading->lock, NULL);
    pthread_cond_init(&reading->freed, NULL);
    return reading;
}

void mt_shared_reading_free(struct mt_shared_reading *reading)
{
    for (size_t i = 0; i < AHEAD; i++)
        free(reading->copies[i].events);
    pthread_mutex_destroy(&reading->lock);
    pthread_cond_destroy(&reading->freed);
    free(reading);
}

/* Reads the next batch. Its place must be free. */
static void read_batch(struct mt_shared_reading *reading)
{
    struct copy *copy = &reading->copies[reading->read % AHEAD];
    struct mt_event_batch batch;

    MT_ASSERT(!copy->users);
    reading->status = mt_source_next(reading->source, &batch, &reading->error);
    if (reading->status != MT_OK)
        return;
    mt_grow_to(&copy->events, &copy->capacity, batch.count, sizeof *copy->events);
    memcpy(copy->events, batch.events, batch.count * sizeof *batch.events);
    copy->count = batch.count;
    copy->users = reading->windows;
    reading->read++;
}

/* A window has finished with batch number `batch`. */
static void drop_batch(struct mt_shared_reading *reading, uint64_t batch)
{
    if (--reading->copies[batch % AHEAD].users == 0)
        pthread_cond_signal(&reading->freed);
}

static void drop_taken(struct mt_window *window)
{
    if (window->holds_batch)
        drop_batch(window->shared, window->batches - 1);
    window->holds_batch = false;
}

static enum mt_status take_batch(struct mt_window *window, struct mt_event_batch *batch,
                                 struct mt_error *error)
{
    struct mt_shared_reading *reading = window->shared;
    const struct copy *copy = &reading->copies[window->batches % AHEAD];
    enum mt_status status = MT_OK;

    pthread_mutex_lock(&reading->lock);
    drop_taken(window);
    while (window->batches == reading->read && reading->status == MT_OK) {
        if (copy->users)
            pthread_cond_wait(&reading->freed, &reading->lock);
        else
            read_batch(reading);
    }
    if (window->batches < reading->read) {
        *batch = (struct mt_event_batch){.events = copy->events, .count = copy->count};
        window->batches++;
        window->holds_batch = true;
    } else {
        status = reading->status;
        *error = reading->error;
    }
    pthread_mutex_unlock(&reading->lock);
    return status;
}

void mt_window_leave(struct mt_window *window)
{
    struct mt_shared_reading *reading = window->shared;

    if (!reading)
        return;
    pthread_mutex_lock(&reading->lock);
    reading->windows--;
    drop_taken(window);
    for (uint64_t i = window->batches; i < reading->read; i++)
        drop_batch(reading, i);
    pthread_mutex_unlock(&reading->lock);
    window->shared = NULL;
}

static enum mt_status fetch(struct mt_window *window, struct mt_event_batch *batch,
                            struct mt_error *error)
{
    enum mt_status status = MT_END;

    if (!window->at_end)
        status = window->shared ? take_batch(window, batch, error)
                                : mt_source_next(window->source, batch, error);
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

void mt_window_init(struct mt_window *window, struct mt_source *source,
                    struct mt_shared_reading *shared)
{
    *window = (struct mt_window){.source = source, .shared = shared};
}

void mt_window_release(struct mt_window *window)
{
    free(window->joined);
    memset(window, 0, sizeof *window);
}

/* Appends the next batch to the remaining events. */
static enum mt_status join(struct mt_window *window, struct mt_error *error)
{
    size_t left = window->count - window->at;
    struct mt_event_batch batch;

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
    enum mt_status status = fetch(window, &batch, error);
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
