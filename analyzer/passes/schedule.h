/* The passes of an analysis as data, and the order in which they run. A pass declares its inputs
 * and its results; the schedule follows from these:
 *
 *   - A pass begins when all its inputs are available.
 *   - Passes that receive no events run as soon as possible, in the order of the table.
 *   - When only passes that receive events remain, all that can begin share one pass over
 *     the source.
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
    unsigned needs; /* the caller's bits: required inputs */
    unsigned gives; /* available after it; every pass has different ones */
    /* Called when the pass could begin. False: the pass is skipped, and its results count as
     * available. NULL = true. */
    bool (*is_wanted)(const struct mt_analysis *analysis);
    /* All the work of a pass that receives no events. It may read the source itself, any number of
     * times (readings.h). For other passes, called before the pass over the source; NULL = nothing
     * to do. */
    enum mt_status (*begin)(struct mt_analysis *analysis);
    /* Receives the events of the source, in batches and in order. NULL = receives none. */
    void (*batch)(struct mt_analysis *analysis, const struct mt_event *events, size_t count);
    /* Reads the source from its start to its end, once, for all passes that share this: passes each
     * event to the listener. NULL = the schedule reads. */
    enum mt_status (*drive)(struct mt_analysis *analysis,
                            const struct mt_replay_listener *listener);
    /* Receives events of all heaps, not only those in view (heap_view.h). A pass over the source
     * has one view. */
    bool hears_all_heaps;
    void (*end)(struct mt_analysis *analysis); /* after the events; NULL = nothing */
    uint64_t (*memory_bytes)(const struct mt_analysis *analysis); /* after `end`; NULL: unknown */
};

/* Whether the table can run. Every input of a pass must be the result of exactly one earlier pass:
 * the table has an order in which things can happen. */
bool mt_schedule_is_sound(const struct mt_pass *passes, size_t count, const char **why);

/* Runs all passes. The first status that is not MT_OK ends it. `begin` may then have been called
 * without `end`, and the analysis releases what the passes hold. */
enum mt_status mt_schedule_run(const struct mt_pass *passes, size_t count,
                               struct mt_analysis *analysis) MT_MUST_USE;

#endif
