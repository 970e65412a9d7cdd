#include <string.h>

#include "analysis.h"
#include "check.h"
#include "monotonic_clock.h"
#include "replay.h"
#include "report.h"
#include "source.h"

/* The entry that is charged before the first mt_readings_enter. */
#define MT_READINGS_OUTSIDE UINT32_MAX

/* Charges the passes since the last call. */
static void charge(struct mt_readings *readings)
{
    const struct mt_source *source = readings->source;
    uint64_t now_ns = mt_now_ns();

    if (readings->charged == MT_READINGS_OUTSIDE) {
        readings->outside_readings += source->readings - readings->readings;
        readings->outside_events += source->events_read - readings->events;
    } else {
        struct mt_pass_cost *cost = &readings->log->costs[readings->charged];

        cost->readings += source->readings - readings->readings;
        cost->events += source->events_read - readings->events;
        cost->time_ns += now_ns - readings->time_ns;
    }
    readings->readings = source->readings;
    readings->events = source->events_read;
    readings->time_ns = now_ns;
}

void mt_readings_begin(struct mt_readings *readings, const struct mt_source *source,
                       struct mt_pass_log *log)
{
    *readings = (struct mt_readings){.source = source,
                                     .log = log,
                                     .charged = MT_READINGS_OUTSIDE,
                                     .start_readings = source->readings,
                                     .start_events = source->events_read,
                                     .readings = source->readings,
                                     .events = source->events_read,
                                     .time_ns = mt_now_ns()};
}

/* Returns its index, created if missing. A full log charges the last entry. */
static uint32_t entry_of(struct mt_pass_log *log, const char *name)
{
    for (uint32_t i = 0; i < log->count; i++)
        if (strcmp(log->costs[i].name, name) == 0)
            return i;
    MT_ASSERT(log->count < MT_MAX_PASS_COSTS);
    if (log->count == MT_MAX_PASS_COSTS)
        return log->count - 1;
    log->costs[log->count] = (struct mt_pass_cost){.name = name};
    return log->count++;
}

uint32_t mt_readings_enter(struct mt_readings *readings, const char *name)
{
    uint32_t outer = readings->charged;

    charge(readings);
    readings->charged = entry_of(readings->log, name);
    return outer;
}

void mt_readings_leave(struct mt_readings *readings, uint32_t outer)
{
    MT_ASSERT(readings->charged != MT_READINGS_OUTSIDE);
    MT_ASSERT(outer == MT_READINGS_OUTSIDE || outer < readings->log->count);
    charge(readings);
    readings->charged = outer;
}

void mt_readings_hold(struct mt_readings *readings, uint64_t memory_bytes)
{
    MT_ASSERT(readings->charged != MT_READINGS_OUTSIDE);
    readings->log->costs[readings->charged].memory_bytes += memory_bytes;
}

bool mt_readings_is_sound(const struct mt_readings *readings, const char **why)
{
    const struct mt_source *source = readings->source;
    uint64_t sum_readings = readings->start_readings + readings->outside_readings;
    uint64_t sum_events = readings->start_events + readings->outside_events;

    for (uint32_t i = 0; i < readings->log->count; i++) {
        sum_readings += readings->log->costs[i].readings;
        sum_events += readings->log->costs[i].events;
    }
    MT_SOUND(why, sum_readings == readings->readings && sum_events == readings->events);
    MT_SOUND(why,
             readings->readings <= source->readings && readings->events <= source->events_read);
    MT_SOUND(why,
             readings->charged == MT_READINGS_OUTSIDE || readings->charged < readings->log->count);
    /* after the last entry was left, everything must have been charged */
    MT_SOUND(why, readings->charged != MT_READINGS_OUTSIDE ||
                      (readings->readings == source->readings && !readings->outside_readings));
    return true;
}

static enum mt_status rewind_source(const struct mt_analysis *analysis)
{
    MT_ASSERT(analysis->readings.charged != MT_READINGS_OUTSIDE);
    return mt_source_rewind(analysis->source, analysis->error);
}

enum mt_status mt_read_again_events(struct mt_analysis *analysis, void *self,
                                    enum mt_status (*on_event)(void *self, struct mt_event *event))
{
    enum mt_status status = rewind_source(analysis);

    if (status == MT_OK)
        status = mt_source_each(analysis->source, on_event, self, analysis->error);
    return status == MT_END ? MT_OK : status;
}

enum mt_status mt_read_again_replay(struct mt_analysis *analysis,
                                    const struct mt_replay_options *options,
                                    struct mt_replay_summary *summary)
{
    enum mt_status status = rewind_source(analysis);

    return status == MT_OK
               ? mt_replay_run(analysis->source, options, NULL, summary, analysis->error)
               : status;
}
