/* Ranges that are laid over a trace: begins and ends of phases that were not
 * recorded but found, put between its events as if they had been. Every reader
 * of the source meets them, in each reading at the same places. */
#ifndef MT_TRACE_OVERLAY_H
#define MT_TRACE_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "event.h"
#include "status.h"

/* An event, and where it belongs: before the first one of the trace whose seq
 * is at least `before`. */
struct mt_overlay_event {
    uint64_t before;
    struct mt_event event;
};

/* Part of a source; zeroed memory lays nothing over it. */
struct mt_overlay {
    bool hides_ranges;               /* the recorded ranges are left out */
    bool chosen;                     /* it was decided what is laid over the source */
    struct mt_overlay_event *events; /* sorted by `before` */
    size_t count, capacity;

    /* PRIVATE: the reading */
    size_t next;
    struct mt_event *merged;
    size_t merged_capacity;
};

/* Puts one more at the end. */
enum mt_status mt_overlay_add(struct mt_overlay *overlay, uint64_t before,
                              const struct mt_event *event) MT_MUST_USE;

/* Takes recorded ranges out of a batch, if they are hidden, and puts in what
 * belongs between its events. */
enum mt_status mt_overlay_apply(struct mt_overlay *overlay,
                                struct mt_event_batch *batch) MT_MUST_USE;

/* What comes behind the last event of the trace; MT_END = nothing. */
enum mt_status mt_overlay_end(struct mt_overlay *overlay, struct mt_event_batch *batch) MT_MUST_USE;

void mt_overlay_rewind(struct mt_overlay *overlay);
void mt_overlay_release(struct mt_overlay *overlay);

#endif
