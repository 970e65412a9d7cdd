/* Any bytes as a profile of XLA: events come in order, refer to what there is, and are the same in
 * a second reading. */
#include "fuzz_source.h"

static void check(const struct mt_source *source, const struct mt_event *event)
{
    FUZZ_CHECK(event->size_bytes && event->size_bytes <= UINT64_C(1) << 60);
    FUZZ_CHECK(event->kind != MT_EVENT_ALLOC || event->aux_bytes >= event->size_bytes);
    FUZZ_CHECK(event->device < source->symbols.device_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_source *source;
    struct mt_feed *feed = NULL;
    struct mt_error error;

    (void)mt_xplane_probe(data, size);
    if (mt_feed_open_memory(data, size, &feed, &error) != MT_OK)
        return 0;
    if (mt_xplane_open(feed, &source, &error) == MT_OK) {
        (void)fuzz_read_twice(source, check);
        mt_source_close(source);
    }
    mt_feed_close(feed);
    return 0;
}
