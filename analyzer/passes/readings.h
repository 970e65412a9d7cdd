/* Accounts for passes over the source and their cost. One entry of the log is charged at any time.
 * A part enters at its start and leaves at its end:
 *
 *     outer = mt_readings_enter(&analysis->readings, "finding growth");
 *     ...
 *     mt_readings_leave(&analysis->readings, outer);
 *
 * The charges are the source's own counts, so every pass is counted. */
#ifndef MT_ANALYZER_READINGS_H
#define MT_ANALYZER_READINGS_H

#include "pass_log.h"
#include "source.h"

/* The entry that is charged before the first mt_readings_enter. */
#define MT_READINGS_OUTSIDE UINT32_MAX

struct mt_readings {
    const struct mt_source *source;
    struct mt_pass_log *log;
    uint32_t charged;                          /* index in the log */
    uint64_t start_readings, start_events;     /* of the source, when the log began */
    uint64_t readings, events, time_ns;        /* of the source and the clock: charged up to here */
    uint64_t outside_readings, outside_events; /* charged to no entry */
};

/* `log` is empty. Source and log are borrowed. */
void mt_readings_begin(struct mt_readings *readings, const struct mt_source *source,
                       struct mt_pass_log *log);

/* `name` must live as long as the log. Equal names share one entry. Returns the argument of
 * mt_readings_leave. */
uint32_t mt_readings_enter(struct mt_readings *readings, const char *name);
void mt_readings_leave(struct mt_readings *readings, uint32_t outer);

/* For the current entry. */
void mt_readings_hold(struct mt_readings *readings, uint64_t memory_bytes);

/* Checks that the log accounts for all passes and events of the source. */
bool mt_readings_is_sound(const struct mt_readings *readings, const char **why);

#endif
