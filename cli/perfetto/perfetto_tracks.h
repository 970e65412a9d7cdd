/* A device of a run as a process of Perfetto: its tracks, the events on them, and its counters. */
#ifndef MT_CLI_PERFETTO_TRACKS_H
#define MT_CLI_PERFETTO_TRACKS_H

#include "perfetto_levels.h"
#include "perfetto_packets.h"

struct mt_perfetto_process {
    const struct mt_report *report;
    const struct mt_device_report *device;   /* NULL: the run has none */
    const struct mt_perfetto_device *levels; /* NULL likewise */
    bool counts_events;                      /* there are no times: one event takes 1 ns */
    uint64_t identity;   /* differs from those of other devices, ranks, hosts and runs */
    uint64_t first_uuid; /* of the process's own track */
    uint32_t pid;
    uint32_t track_count;
    struct mt_packets packets; /* of everything but the profiles */
};

/* The time of an event in the trace. */
static inline uint64_t mt_perfetto_time(const struct mt_perfetto_process *process, uint64_t t_ns,
                                        uint64_t event)
{
    return process->counts_events ? event : t_ns;
}

/* The number of a writer: 0 for the tracks, and one for each kind of profile. */
static inline uint32_t mt_perfetto_writer(const struct mt_perfetto_process *process, uint32_t which)
{
    return ((uint32_t)(process->identity >> 20) & ~UINT32_C(3)) + which + 1;
}

struct mt_perfetto_track {
    uint64_t parent; /* 0: the process */
    const char *name, *description;
    const char *shares_axis; /* of a counter in bytes: those with this word have one axis */
    bool is_ordered;         /* its children stay in the order in which they are added */
};

/* Adds a track, and returns its number. */
uint64_t mt_perfetto_add_track(struct mt_perfetto_process *process,
                               const struct mt_perfetto_track *track);

/* Events on a track. */

enum mt_perfetto_event {
    MT_PERFETTO_BEGIN = 1,
    MT_PERFETTO_END = 2,
    MT_PERFETTO_INSTANT = 3,
    MT_PERFETTO_LEVEL = 4
};

/* Begins the message of an event; the functions below add to it. */
void mt_perfetto_event(struct mt_buf *event, enum mt_perfetto_event kind, uint64_t track);
void mt_perfetto_event_name(struct mt_perfetto_process *process, struct mt_buf *event,
                            const char *name);
void mt_perfetto_event_category(struct mt_buf *event, const char *category);
void mt_perfetto_event_number(struct mt_buf *event, const char *name, uint64_t value);
void mt_perfetto_event_text(struct mt_buf *event, const char *name, const char *value);
/* MT_NO_ID: none was recorded. */
void mt_perfetto_event_stack(struct mt_perfetto_process *process, struct mt_buf *event,
                             uint32_t stack);

/* Adds the event, and empties the message. */
void mt_perfetto_event_end(struct mt_perfetto_process *process, struct mt_buf *event,
                           uint64_t time);

/* Whether each level of the device is in its counters. */
static inline bool mt_perfetto_is_exact(const struct mt_perfetto_device *levels)
{
    return levels->events <= MT_PERFETTO_COLUMNS;
}

/* Adds the counters of a process with a device. */
void mt_perfetto_add_counters(struct mt_perfetto_process *process, const char *description);

#endif
