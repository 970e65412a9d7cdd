/* The listeners of the pass `blocks`: models of charts (models/models.h) that receive each
 * block when it is allocated and freed, and the state of the device after each event. */
#ifndef MT_ANALYZER_MODEL_FEED_H
#define MT_ANALYZER_MODEL_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "block_life.h"
#include "counters.h"
#include "event.h"
#include "model_list.h"
#include "status.h"

/* A device after an event that concerns its memory. */
struct mt_model_state {
    const struct mt_event *event; /* of any kind for which mt_event_is_memory() is true */
    int32_t phase;                /* innermost, of the event's thread */
    const struct mt_bytes *now;
    const uint64_t *role_bytes; /* sum = allocated */
    uint64_t allocated_before;
};

/* Events for a listener, in order; NULL = not wanted. For one event, starts and ends of blocks come
 * first, then the state after it. */
struct mt_model_feed {
    void *builder;
    void (*on_birth)(void *builder, const struct mt_block_life *life);
    void (*on_end)(void *builder, const struct mt_block_life *life, struct mt_block_end end);
    void (*on_state)(void *builder, const struct mt_model_state *state);
    void (*release)(void *builder); /* always called, last of all */
};

/* Of one device. */
struct mt_model_feeds {
    struct mt_model_feed feeds[MT_MODEL_COUNT];
    uint8_t rows[MT_MODEL_COUNT]; /* indices in the table, parallel */
    uint32_t count;
    bool wants_lives; /* any starts or ends of blocks */
};

/* Releases every listener, finished or not. */
static inline void mt_model_feeds_release(struct mt_model_feeds *feeds)
{
    for (uint32_t i = 0; i < feeds->count; i++)
        if (feeds->feeds[i].release)
            feeds->feeds[i].release(feeds->feeds[i].builder);
    feeds->count = 0;
}

#endif
