/* Any bytes as rows of events: events come in order, refer to what there is, and are the same in a
 * second reading. A line of CSV is at most one event or one row that was left out. */
#include "fuzz_source.h"

static void check(const struct mt_source *source, const struct mt_event *event)
{
    FUZZ_CHECK(event->kind != MT_EVENT_ALLOC || event->size_bytes <= UINT64_C(1) << 48);
    FUZZ_CHECK(event->device < source->symbols.device_count);
    FUZZ_CHECK(event->pool < source->symbols.pool_count);
    FUZZ_CHECK(event->stream < source->symbols.stream_count);
    FUZZ_CHECK(event->name == MT_NO_ID || event->name < source->symbols.strings.count);
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
    struct mt_source *source;
    struct mt_feed *feed = NULL;
    struct mt_error error;

    if (mt_feed_open_memory(data, size, &feed, &error) != MT_OK)
        return 0;
    if (mt_rows_open(feed, &source, &error) == MT_OK) {
        const struct mt_integrity *integrity = &source->integrity;

        source->view.level = MT_VIEW_EVERYTHING;
        struct fuzz_reading reading = fuzz_read_twice(source, check);
        FUZZ_CHECK(reading.count > 1);
        FUZZ_CHECK(integrity->events_invalid == 0 && integrity->frames_damaged == 0);
        /* a lost free adds an event, and the end is one */
        if (*data != '{' && mt_rows_probe(data, size)) /* it is not compressed */
            FUZZ_CHECK(reading.count - 1 - reading.lost + integrity->records_damaged <=
                       count_lines(data, size));
        mt_source_close(source);
    }
    mt_feed_close(feed);
    return 0;
}
