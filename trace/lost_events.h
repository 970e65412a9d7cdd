/* What a trace says is missing: DROPPED events, added up by their reason. */
#ifndef MT_TRACE_LOST_EVENTS_H
#define MT_TRACE_LOST_EVENTS_H

#include <stddef.h>

#include "symbols.h"

#define MT_LOST_REASONS 16

/* Zeroed memory is ready. */
struct mt_lost_events {
    struct mt_lost_reason {
        uint32_t name; /* of the symbols; MT_NO_ID = none was given */
        uint64_t events;
    } reasons[MT_LOST_REASONS]; /* in order of appearance */
    size_t count;
    bool has_others; /* the last entry stands for several reasons */
};

/* Adds an event of any kind. */
void mt_lost_events_add(struct mt_lost_events *lost, const struct mt_event *event);

/* The words for an entry; NULL = no reason was given. */
const char *mt_lost_events_why(const struct mt_lost_events *lost, size_t entry,
                               const struct mt_symbols *symbols);

#endif
