#include "buffers.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "map.h"
#include "source.h"
#include "util.h"

#define END_OF_TOTAL (UINT64_C(1) << 62)
#define MAX_BUFFERS  (UINT32_MAX / 4)
#define ROUND_BYTES  512

enum mt_status mt_buffers_add(struct mt_buffers *buffers, const struct mt_buffer *buffer,
                              struct mt_error *error)
{
    if (buffer->begin >= buffer->end || !buffer->bytes)
        return MT_OK;
    if (buffer->bytes >= END_OF_TOTAL || buffers->total_bytes + buffer->bytes >= END_OF_TOTAL)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "buffers of 4 EiB or more");
    if (buffers->count >= MAX_BUFFERS)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "more than %u buffers",
                       MAX_BUFFERS);
    if (buffers->count == buffers->capacity)
        mt_grow_to(&buffers->items, &buffers->capacity, buffers->count + 1, sizeof *buffers->items);
    buffers->items[buffers->count++] = *buffer;
    buffers->total_bytes += buffer->bytes;
    return MT_OK;
}

void mt_buffers_release(struct mt_buffers *buffers)
{
    free(buffers->items);
    memset(buffers, 0, sizeof *buffers);
}

struct live_buffers {
    struct mt_map numbers; /* address -> number of the buffer in its device */
};

struct reading {
    struct mt_buffers *devices;
    struct live_buffers live[MT_BUFFERS_DEVICES];
    uint64_t now;
    bool end_at_request; /* the trace has no completions of frees */
    struct mt_error *error;
};

static void end_buffer(struct reading *reading, const struct mt_event *event)
{
    uint32_t number = mt_map_take(&reading->live[event->device].numbers, event->addr);

    if (number != MT_MAP_NONE)
        reading->devices[event->device].items[number].end = reading->now;
}

static enum mt_status begin_buffer(struct reading *reading, const struct mt_event *event)
{
    struct mt_error *error = reading->error;
    struct mt_buffers *buffers = &reading->devices[event->device];
    struct mt_buffer buffer = {.begin = reading->now, .end = UINT64_MAX};
    size_t before = buffers->count;
    enum mt_status status;

    if (event->size_bytes > END_OF_TOTAL)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "an allocation of more than 4 EiB");
    buffer.bytes = mt_round_up(event->size_bytes, ROUND_BYTES);
    end_buffer(reading, event); /* its free is missing */
    status = mt_buffers_add(buffers, &buffer, error);
    if (status != MT_OK || buffers->count == before)
        return status;
    mt_map_put(&reading->live[event->device].numbers, event->addr, (uint32_t)before);
    return MT_OK;
}

static enum mt_status read_event(void *self, struct mt_event *event)
{
    struct reading *reading = self;
    bool begins = event->kind == MT_EVENT_ALLOC;
    bool ends = event->kind == MT_EVENT_FREE_COMPLETED ||
                (reading->end_at_request && event->kind == MT_EVENT_FREE_REQUESTED);

    reading->now++;
    if (!begins && !ends)
        return MT_OK;
    if (event->device >= MT_BUFFERS_DEVICES)
        return mt_fail(reading->error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "device %u: at most %d can be read", event->device, MT_BUFFERS_DEVICES);
    if (begins)
        return begin_buffer(reading, event);
    else {
        end_buffer(reading, event);
        return MT_OK;
    }
}

/* Blocks that were never freed live to the end. */
static void end_all(struct reading *reading)
{
    size_t d, i;

    for (d = 0; d < MT_BUFFERS_DEVICES; d++) {
        for (i = 0; i < reading->devices[d].count; i++) {
            if (reading->devices[d].items[i].end == UINT64_MAX)
                reading->devices[d].items[i].end = reading->now + 1;
        }
    }
}

enum mt_status mt_buffers_from_source(struct mt_source *source,
                                      struct mt_buffers devices[MT_BUFFERS_DEVICES],
                                      struct mt_error *error)
{
    struct reading reading = {
        .devices = devices, .end_at_request = !source->header.has_free_completed, .error = error};
    enum mt_status status = mt_heap_view_choose(source, error);
    size_t i;

    if (status != MT_OK)
        return status;
    status = mt_source_each(source, read_event, &reading, error);
    end_all(&reading);
    for (i = 0; i < MT_BUFFERS_DEVICES; i++)
        mt_map_release(&reading.live[i].numbers);
    return status;
}
