/* Any bytes as a profile of XLA: events come in order, refer to what there is, and are the same in
 * a second reading. */
#include <stdint.h>
#include <stdlib.h>

#include "importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    uint64_t count, t_ns, hash;
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
    check(event->size_bytes && event->size_bytes <= UINT64_C(1) << 60);
    check(event->kind != MT_EVENT_ALLOC || event->aux_bytes >= event->size_bytes);
    check(event->device < source->symbols.device_count);
    check(event->thread < source->symbols.thread_count);
    check(event->heap < source->symbols.heap_count);
    check(event->stack == MT_NO_ID || event->stack < source->symbols.stack_count);
    reading->past_initial |= !is_initial;
    reading->t_ns = event->t_ns;
    reading->hash = mt_hash_u64(reading->hash ^ event->addr ^ event->size_bytes ^ event->kind);
}

static struct reading read_all(struct mt_source *source)
{
    struct reading reading = {0};
    struct mt_event_batch batch;
    struct mt_error error;

    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++)
            take(&reading, source, &batch.events[i]);
    check(mt_source_rewind(source, &error) == MT_OK);
    return reading;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading first, second;
    struct mt_source *source;
    struct mt_feed *feed = NULL;
    struct mt_error error;

    (void)mt_xplane_probe(data, size);
    if (mt_feed_open_memory(data, size, &feed, &error) != MT_OK)
        return 0;
    if (mt_xplane_open(feed, &source, &error) == MT_OK) {
        first = read_all(source);
        second = read_all(source);
        check(first.count && first.count == second.count && first.hash == second.hash);
        mt_source_close(source);
    }
    mt_feed_close(feed);
    return 0;
}
