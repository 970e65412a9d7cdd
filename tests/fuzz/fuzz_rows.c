/* Any bytes as rows of events: events come in order, refer to what there is, and are the same in a
 * second reading. A line of CSV is at most one event or one row that was left out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    uint64_t count, t_ns, hash, lost;
    bool past_initial;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void take(struct reading *reading, const struct mt_source *source,
                 const struct mt_event *event)
{
    bool is_initial = event->flags & MT_EVENT_INITIAL;

    check(event->seq == reading->count++);
    check(event->t_ns >= reading->t_ns);
    check(!is_initial || !reading->past_initial);
    check(event->kind != MT_EVENT_ALLOC || event->size_bytes <= UINT64_C(1) << 48);
    check(event->device < source->symbols.device_count);
    check(event->thread < source->symbols.thread_count);
    check(event->heap < source->symbols.heap_count);
    check(event->pool < source->symbols.pool_count);
    check(event->stream < source->symbols.stream_count);
    check(event->stack == MT_NO_ID || event->stack < source->symbols.stack_count);
    check(event->name == MT_NO_ID || event->name < source->symbols.strings.count);
    reading->past_initial |= !is_initial;
    reading->lost += event->kind == MT_EVENT_DROPPED;
    reading->t_ns = event->t_ns;
    reading->hash = mt_hash_u64(reading->hash ^ event->addr ^ event->size_bytes ^ event->kind);
}

static struct reading read_all(struct mt_source *source)
{
    struct reading reading = {0};
    struct mt_event_batch batch;
    struct mt_error error;

    source->view.level = MT_VIEW_EVERYTHING;
    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++)
            take(&reading, source, &batch.events[i]);
    check(mt_source_rewind(source, &error) == MT_OK);
    return reading;
}

static uint64_t count_lines(const uint8_t *data, size_t size)
{
    uint64_t lines = 1;

    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading first, second;
    struct mt_source *source;
    struct mt_feed *feed = NULL;
    struct mt_error error;

    if (mt_feed_open_memory(data, size, &feed, &error) != MT_OK)
        return 0;
    if (mt_rows_open(feed, &source, &error) == MT_OK) {
        const struct mt_integrity *integrity = &source->integrity;

        first = read_all(source);
        second = read_all(source);
        check(first.count > 1 && first.count == second.count && first.hash == second.hash);
        check(integrity->events_invalid == 0 && integrity->frames_damaged == 0);
        /* a lost free adds an event, and the end is one */
        if (*data != '{' && mt_rows_probe(data, size)) /* it is not compressed */
            check(first.count - 1 - first.lost + integrity->records_damaged <=
                  count_lines(data, size));
        mt_source_close(source);
    }
    mt_feed_close(feed);
    return 0;
}
