#include "perfetto_tracks.h"

#include "protobuf.h"
#include "util.h"

/* Numbers of fields. */
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_ORDERING = 11,
    TRACK_RANK = 12,
    TRACK_DESCRIPTION = 14,
    COUNTER_UNIT = 3,
    COUNTER_AXIS = 7,
    EVENT_ANNOTATION = 4,
    EVENT_KIND = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_LEVEL = 30,
    EVENT_STACK = 56,
    ANNOTATION_NUMBER = 3,
    ANNOTATION_TEXT = 6,
    ANNOTATION_NAME = 10
};

enum { UNIT_BYTES = 3, ORDERED = 3 };

static void add_axis(struct mt_buf *track, const char *axis)
{
    struct mt_buf counter = {0};

    mt_protobuf_add_number(&counter, COUNTER_UNIT, UNIT_BYTES);
    mt_protobuf_add_text(&counter, COUNTER_AXIS, axis);
    mt_protobuf_add_message(track, TRACK_COUNTER, &counter);
    mt_buf_release(&counter);
}

uint64_t mt_perfetto_add_track(struct mt_perfetto_process *process,
                               const struct mt_perfetto_track *track)
{
    const uint64_t uuid = process->first_uuid + ++process->track_count;
    struct mt_buf message = {0};

    mt_protobuf_add_number(&message, TRACK_UUID, uuid);
    mt_protobuf_add_number(&message, TRACK_PARENT,
                           track->parent ? track->parent : process->first_uuid);
    mt_protobuf_add_text(&message, TRACK_NAME, track->name);
    mt_protobuf_add_number(&message, TRACK_RANK, process->track_count);
    if (track->description)
        mt_protobuf_add_text(&message, TRACK_DESCRIPTION, track->description);
    if (track->is_ordered)
        mt_protobuf_add_number(&message, TRACK_ORDERING, ORDERED);
    if (track->shares_axis)
        add_axis(&message, track->shares_axis);
    mt_packets_add(&process->packets, MT_PACKET_TRACK, &message, MT_PACKET_NO_TIME);
    mt_buf_release(&message);
    return uuid;
}

void mt_perfetto_event(struct mt_buf *event, enum mt_perfetto_event kind, uint64_t track)
{
    mt_buf_reset(event);
    mt_protobuf_add_number(event, EVENT_KIND, kind);
    mt_protobuf_add_number(event, EVENT_TRACK, track);
}

void mt_perfetto_event_name(struct mt_perfetto_process *process, struct mt_buf *event,
                            const char *name)
{
    mt_protobuf_add_number(event, EVENT_NAME, mt_packets_name(&process->packets, name));
}

void mt_perfetto_event_category(struct mt_buf *event, const char *category)
{
    mt_protobuf_add_text(event, EVENT_CATEGORY, category);
}

void mt_perfetto_event_number(struct mt_buf *event, const char *name, uint64_t value)
{
    struct mt_buf annotation = {0};

    mt_protobuf_add_text(&annotation, ANNOTATION_NAME, name);
    mt_protobuf_add_number(&annotation, ANNOTATION_NUMBER, value);
    mt_protobuf_add_message(event, EVENT_ANNOTATION, &annotation);
    mt_buf_release(&annotation);
}

void mt_perfetto_event_text(struct mt_buf *event, const char *name, const char *value)
{
    struct mt_buf annotation = {0};

    mt_protobuf_add_text(&annotation, ANNOTATION_NAME, name);
    mt_protobuf_add_text(&annotation, ANNOTATION_TEXT, value);
    mt_protobuf_add_message(event, EVENT_ANNOTATION, &annotation);
    mt_buf_release(&annotation);
}

void mt_perfetto_event_stack(struct mt_perfetto_process *process, struct mt_buf *event,
                             uint32_t stack)
{
    if (stack != MT_NO_ID)
        mt_protobuf_add_number(event, EVENT_STACK, mt_packets_stack(&process->packets, stack));
}

void mt_perfetto_event_end(struct mt_perfetto_process *process, struct mt_buf *event, uint64_t time)
{
    mt_packets_add(&process->packets, MT_PACKET_EVENT, event, time);
    mt_buf_reset(event);
}

/* Counters. */

/* A counter while its levels are added. Perfetto keeps a level until the next one. */
struct counter {
    struct mt_perfetto_process *process;
    struct mt_buf event;
    uint64_t track, level;
    bool has_level;
};

static void add_level(struct counter *counter, struct mt_perfetto_instant at, uint64_t level)
{
    if (counter->has_level && counter->level == level)
        return;
    counter->has_level = true;
    counter->level = level;
    mt_perfetto_event(&counter->event, MT_PERFETTO_LEVEL, counter->track);
    mt_protobuf_add_number(&counter->event, EVENT_LEVEL, level);
    mt_perfetto_event_end(counter->process, &counter->event,
                          mt_perfetto_time(counter->process, at.t_ns, at.event));
}

static void add_column(struct counter *counter, int series, const struct mt_perfetto_column *column)
{
    const struct mt_perfetto_instant full_at = column->largest_at[MT_PERFETTO_ALLOCATED];
    const struct mt_perfetto_instant largest_at = column->largest_at[series];

    if (full_at.event < largest_at.event)
        add_level(counter, full_at, column->full[series]);
    add_level(counter, largest_at, column->largest[series]);
    if (full_at.event > largest_at.event)
        add_level(counter, full_at, column->full[series]);
    add_level(counter, column->last_at, column->last[series]);
}

static void add_counter(struct mt_perfetto_process *process, int series,
                        const struct mt_perfetto_track *track)
{
    const struct mt_perfetto_device *levels = process->levels;
    const struct mt_perfetto_instant start = {process->device->first_t_ns,
                                              process->device->first_event};
    struct counter counter = {.process = process, .track = mt_perfetto_add_track(process, track)};

    add_level(&counter, start, levels->starts[series]);
    for (uint32_t i = 0; i < levels->column_count; i++)
        add_column(&counter, series, &levels->columns[i]);
    mt_buf_release(&counter.event);
}

void mt_perfetto_add_counters(struct mt_perfetto_process *process, const char *description)
{
    static const int order[] = {MT_PERFETTO_RESERVED, MT_PERFETTO_ALLOCATED, MT_PERFETTO_ACTIVE,
                                MT_PERFETTO_REQUESTED};
    static const char *const names[] = {[MT_PERFETTO_REQUESTED] = "requested",
                                        [MT_PERFETTO_ALLOCATED] = "allocated",
                                        [MT_PERFETTO_ACTIVE] = "active",
                                        [MT_PERFETTO_RESERVED] = "reserved"};
    const struct mt_perfetto_track roles = {
        .name = "by role", .description = "Allocated bytes by role.", .is_ordered = true};

    for (size_t i = 0; i < MT_ARRAY_LEN(order); i++)
        add_counter(process, order[i],
                    &(struct mt_perfetto_track){.name = names[order[i]],
                                                .description = description,
                                                .shares_axis = "bytes"});
    uint64_t parent = mt_perfetto_add_track(process, &roles);
    for (int i = MT_PERFETTO_ROLES; i < MT_PERFETTO_SERIES; i++)
        if (process->levels->is_used[i])
            add_counter(process, i,
                        &(struct mt_perfetto_track){
                            .parent = parent,
                            .name = mt_role_name((enum mt_role)(i - MT_PERFETTO_ROLES)),
                            .description = description,
                            .shares_axis = "role bytes"});
}
