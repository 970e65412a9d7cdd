/* The listeners of the pass `blocks`: models of charts (struct mt_model_ops) that receive each
 * block when it is allocated and freed, and the state of the device after each event. */
#ifndef MT_ANALYZER_MODEL_FEED_H
#define MT_ANALYZER_MODEL_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "event.h"
#include "holding.h"
#include "report.h"
#include "status.h"

struct mt_analysis;
struct mt_relay;

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
    /* No stream uses the block any longer, or the trace ends. `end` is the same as in on_end. */
    void (*on_gone)(void *builder, const struct mt_block_life *life, struct mt_block_end end,
                    struct mt_block_end completed);
    void (*on_state)(void *builder, const struct mt_model_state *state);
    /* The program released cached memory (MT_EVENT_EMPTY_CACHE). */
    void (*on_empty_cache)(void *builder, const struct mt_event *event);
    void (*release)(void *builder); /* always called, last of all */
    /* Later events are not passed on: a block that ends later is passed as live at the end. 0 =
     * all events. */
    uint64_t until_event;
    /* These functions use nothing but the builder, so they may run in a second thread, behind the
     * others. There, mt_model_state has no phase, and on_gone is not called. That thread reads the
     * functions of a listener only if this is set. */
    bool is_alone;
};

/* Of one device. */
struct mt_model_feeds {
    struct mt_model_feed feeds[MT_MODEL_COUNT + 1];
    /* Parallel: indices in the table; MT_MODEL_COUNT: the listener of the options. */
    uint8_t rows[MT_MODEL_COUNT + 1];
    uint32_t count;
    bool wants_lives;             /* any starts or ends of blocks */
    bool wants_events;            /* any of these, or others */
    struct mt_relay *relay;       /* to those that are alone; NULL: none is */
    uint64_t *relayed_role_bytes; /* written by the relay's thread; apart, for its cache */
};

/* Call the functions of the listeners; the relay calls those of the ones that are alone. */
void mt_model_feeds_birth(struct mt_model_feeds *feeds, const struct mt_block_life *life);
void mt_model_feeds_end(struct mt_model_feeds *feeds, const struct mt_block_life *life,
                        struct mt_block_end end);
void mt_model_feeds_gone(const struct mt_model_feeds *feeds, const struct mt_block_life *life,
                         struct mt_block_end completed);
void mt_model_feeds_state(struct mt_model_feeds *feeds, const struct mt_model_state *state);
void mt_model_feeds_empty_cache(const struct mt_model_feeds *feeds, const struct mt_event *event);

/* Notes what the listeners want: call it after a new one, or after one that is not alone has set
 * its functions to NULL. */
void mt_model_feeds_update(struct mt_model_feeds *feeds);

/* Begins the relay of all devices for these, if any listener is alone. */
void mt_model_feeds_relay(struct mt_model_feeds *feeds, struct mt_relay *relay,
                          struct mt_arena *arena);

/* Releases every listener, finished or not. */
static inline void mt_model_feeds_release(struct mt_model_feeds *feeds)
{
    for (uint32_t i = 0; i < feeds->count; i++)
        if (feeds->feeds[i].release)
            feeds->feeds[i].release(feeds->feeds[i].builder);
    feeds->count = 0;
}

/* A model of a chart as a plug-in: one file each, one line in report.h. */

struct mt_model_ops {
    /* Begins the model of the survey's device `slot`, in the pass `wanted`, when peaks, steps and
     * pauses are known. Leaves feed->builder NULL if there is nothing to show for this device. */
    enum mt_status (*begin)(struct mt_analysis *analysis, uint32_t slot,
                            struct mt_model_feed *feed);
    /* After the last event: adds the model to the report. */
    enum mt_status (*finish)(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out);
    /* The event after which the model needs a snapshot of all live blocks. NULL = none. */
    uint64_t (*snapshot_event)(const struct mt_analysis *analysis, uint32_t slot);
};

/* The models behind charts, one file each and one row in the table of report.h. The pass
 * `wanted` begins them, the pass `blocks` feeds them, and they are then part of the report. The
 * size of a model is bounded. */

/* Begins the requested models of the survey's device `slot`. */
enum mt_status mt_models_begin(struct mt_analysis *analysis, uint32_t slot,
                               struct mt_model_feeds *feeds) MT_MUST_USE;
/* After the last event: adds the models to the report. */
enum mt_status mt_models_finish(struct mt_analysis *analysis, struct mt_model_feeds *feeds,
                                struct mt_device_report *out) MT_MUST_USE;

/* Writes the events after which those models need a snapshot of the device's live blocks, and
 * returns their number. */
uint32_t mt_models_snapshot_events(const struct mt_analysis *analysis, uint32_t slot,
                                   uint64_t events[MT_MODEL_COUNT]);

#endif
