/* Ranges inserted into a trace: starts and ends of inferred phases between its recorded events.
 * Every pass over the source sees them at the same places. */
#ifndef MT_TRACE_OVERLAY_H
#define MT_TRACE_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "event.h"
#include "status.h"

/* An event and its place: before the first event of the trace whose seq is at least `before`. */
struct mt_overlay_event {
    uint64_t before;
    struct mt_event event;
};

/* Part of a source; zeroed memory inserts nothing. */
struct mt_overlay {
    bool hides_ranges;               /* recorded ranges are removed */
    bool chosen;                     /* the overlay of the source has been decided */
    struct mt_overlay_event *events; /* sorted by `before` */
    size_t count, capacity;

    /* PRIVATE: next event of the current pass */
    size_t next;
    struct mt_event *merged;
    size_t merged_capacity;
};

/* Appends an event. */
enum mt_status mt_overlay_add(struct mt_overlay *overlay, uint64_t before,
                              const struct mt_event *event) MT_MUST_USE;

/* Removes recorded ranges from a batch if they are hidden, and inserts the events that belong
 * between its events. */
enum mt_status mt_overlay_apply(struct mt_overlay *overlay,
                                struct mt_event_batch *batch) MT_MUST_USE;

/* Returns the events after the last one of the trace; MT_END = none. */
enum mt_status mt_overlay_end(struct mt_overlay *overlay, struct mt_event_batch *batch) MT_MUST_USE;

void mt_overlay_rewind(struct mt_overlay *overlay);
void mt_overlay_release(struct mt_overlay *overlay);

#endif
