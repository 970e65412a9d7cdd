/* A source of events in an array, which it hands out in batches. */
#ifndef MT_TESTS_MEMORY_SOURCE_H
#define MT_TESTS_MEMORY_SOURCE_H

#include <string.h>

#include "source.h"

struct memory_source {
    struct mt_source source;
    struct mt_event *events; /* the caller's */
    size_t count, at, batch;
    struct mt_event copy[64]; /* a batch: a copy, so that pointers to older batches are invalid */
};

static enum mt_status memory_source_next(struct mt_source *source, struct mt_event_batch *batch,
                                         struct mt_error *error)
{
    struct memory_source *self = (struct memory_source *)source;
    size_t left = self->count - self->at;

    (void)error;
    if (!left)
        return MT_END;
    batch->count = left < self->batch ? left : self->batch;
    memset(self->copy, 0xAA, sizeof self->copy);
    memcpy(self->copy, self->events + self->at, batch->count * sizeof *self->copy);
    batch->events = self->copy;
    self->at += batch->count;
    source->integrity.events_read = self->at;
    return MT_OK;
}

static enum mt_status memory_source_rewind(struct mt_source *source, struct mt_error *error)
{
    (void)error;
    ((struct memory_source *)source)->at = 0;
    return MT_OK;
}

static void memory_source_init(struct memory_source *self, struct mt_event *events, size_t count,
                               size_t batch)
{
    static const struct mt_source_ops ops = {memory_source_next, memory_source_rewind, NULL, NULL,
                                             NULL};

    memset(self, 0, sizeof *self);
    if (mt_symbols_init(&self->source.symbols) != MT_OK)
        return;
    self->source.ops = &ops;
    self->source.header.has_free_completed = true;
    self->events = events;
    self->count = count;
    self->batch = batch < 64 ? batch : 64;
    for (size_t i = 0; i < count; i++) {
        events[i].seq = i;
        if (!events[i].t_ns)
            events[i].t_ns = 1000 * (i + 1);
    }
}

/* Returns the number of the heap with that name, and adds it if there is none. */
static inline uint16_t memory_source_heap(struct memory_source *self, const char *name)
{
    uint32_t text, heap;

    if (mt_symbols_string(&self->source.symbols, name, strlen(name), &text) != MT_OK ||
        mt_symbols_heap(&self->source.symbols, text, &heap) != MT_OK)
        return UINT16_MAX;
    return (uint16_t)heap;
}

static inline void memory_source_release(struct memory_source *self)
{
    mt_overlay_release(&self->source.overlay);
    mt_symbols_release(&self->source.symbols);
}

#endif
