/* Who reads the source, how often, and what it costs. One entry of the log is charged at any time;
 * who begins enters, and leaves when it is done:
 *
 *     outer = mt_readings_enter(&analysis->readings, "finding growth");
 *     ...
 *     mt_readings_leave(&analysis->readings, outer);
 *
 * What is charged are the source's own counts, so that no reading can go by uncounted. */
#ifndef MT_ANALYZER_READINGS_H
#define MT_ANALYZER_READINGS_H

#include "pass_log.h"
#include "source.h"

/* The entry that is charged before anybody enters. */
#define MT_READINGS_OUTSIDE UINT32_MAX

struct mt_readings {
    const struct mt_source *source;
    struct mt_pass_log *log;
    uint32_t charged;                          /* index in the log */
    uint64_t start_readings, start_events;     /* of the source, when the log began */
    uint64_t readings, events, time_ns;        /* of the source and the clock: charged up to here */
    uint64_t outside_readings, outside_events; /* charged to nobody */
};

/* `log` is empty. Source and log are borrowed. */
void mt_readings_begin(struct mt_readings *readings, const struct mt_source *source,
                       struct mt_pass_log *log);

/* `name` must live as long as the log. Names that were there before have one entry for all times.
 * Returns what mt_readings_leave takes. */
uint32_t mt_readings_enter(struct mt_readings *readings, const char *name);
void mt_readings_leave(struct mt_readings *readings, uint32_t outer);

/* For the entry that is charged. */
void mt_readings_hold(struct mt_readings *readings, uint64_t memory_bytes);

/* Does the log account for all readings and events of the source? */
bool mt_readings_is_sound(const struct mt_readings *readings, const char **why);

#endif
