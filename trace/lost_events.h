/* Sums the DROPPED events of a trace by their reason. */
#ifndef MT_TRACE_LOST_EVENTS_H
#define MT_TRACE_LOST_EVENTS_H

#include <stddef.h>

#include "symbols.h"

#define MT_LOST_REASONS 16

/* Zeroed memory is ready. */
struct mt_lost_events {
    struct mt_lost_reason {
        uint32_t name; /* string id; MT_NO_ID = no reason given */
        uint64_t events;
    } reasons[MT_LOST_REASONS]; /* in order of appearance */
    size_t count;
    bool has_others; /* the last entry combines several reasons */
};

/* Adds an event of any kind. */
void mt_lost_events_add(struct mt_lost_events *lost, const struct mt_event *event);

/* Returns the reason of an entry; NULL = none given. */
const char *mt_lost_events_why(const struct mt_lost_events *lost, size_t entry,
                               const struct mt_symbols *symbols);

#endif
