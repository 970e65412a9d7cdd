/* The passes of an analysis as data, and the order in which they run. A pass says what it needs and
 * what is known after it; the schedule follows from that:
 *
 *   - A pass begins when everything that it needs is known.
 *   - Passes that hear no events run as soon as they can, in the order of the table.
 *   - When only passes that hear events are left, all that can begin share one reading.
 *
 * The table itself is report/analyze.c. */
#ifndef MT_ANALYZER_SCHEDULE_H
#define MT_ANALYZER_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "replay.h"
#include "status.h"

struct mt_analysis;

#define MT_MAX_PASSES 32

struct mt_pass {
    const char *name;
    unsigned needs; /* bits of the caller's: what has to be known before */
    unsigned gives; /* what is known after it; no two passes give the same */
    /* Asked when the pass could begin. No: it is left out, and what it gives counts as known. NULL
     * = yes. */
    bool (*is_wanted)(const struct mt_analysis *analysis);
    /* All the work of a pass that hears no events. It may read the source by itself, as often as it
     * has to (readings.h). Before the reading of one that does; NULL = nothing to do. */
    enum mt_status (*begin)(struct mt_analysis *analysis);
    /* Hears the events of a reading, in batches and in order. NULL = hears none. */
    enum mt_status (*batch)(struct mt_analysis *analysis, const struct mt_event *events,
                            size_t count);
    /* Reads the source, which stands at its start, once and to its end, for all who share the
     * reading: tells the listener each event. NULL = the schedule reads. */
    enum mt_status (*drive)(struct mt_analysis *analysis,
                            const struct mt_replay_listener *listener);
    /* Events of all heaps, not of those in view (heap_view.h). One reading has one view. */
    bool hears_all_heaps;
    enum mt_status (*end)(struct mt_analysis *analysis); /* after the reading; NULL = nothing */
    uint64_t (*memory_bytes)(const struct mt_analysis *analysis); /* after `end`; NULL: not known */
};

/* Is that a table that can run? Whatever a pass needs, exactly one pass gives, and stands before
 * it: the table reads in an order in which things can happen. */
bool mt_schedule_is_sound(const struct mt_pass *passes, size_t count, const char **why);

/* Runs all passes. The first status that is not MT_OK ends it; `begin` may have been called
 * without `end` then, and what passes hold is the analysis' to release. */
enum mt_status mt_schedule_run(const struct mt_pass *passes, size_t count,
                               struct mt_analysis *analysis) MT_MUST_USE;

#endif
