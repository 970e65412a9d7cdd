/* Any bytes as a profile of JAX's device memory: blocks that do not overlap and refer to what there
 * is, and the same in a second reading. */
#include "fuzz.h"
#include "importers.h"

static uint64_t read_all(struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_error error;
    uint64_t hash = 0, end = 0;

    source->view.level = MT_VIEW_EVERYTHING;
    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            const struct mt_event *event = &batch.events[i];

            hash = mt_hash_u64(hash ^ event->addr ^ event->size_bytes);
            if (event->kind != MT_EVENT_ALLOC)
                continue;
            FUZZ_CHECK(event->addr >= end && event->size_bytes && event->flags & MT_EVENT_INITIAL);
            FUZZ_CHECK(event->device < source->symbols.device_count);
            FUZZ_CHECK(event->stack == MT_NO_ID || event->stack < source->symbols.stack_count);
            end = event->addr + event->size_bytes;
        }
    FUZZ_CHECK(end && mt_source_rewind(source, &error) == MT_OK);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_source *source;
    struct mt_feed *feed;
    struct mt_error error = {.status = MT_OK, .text = ""};

    if (mt_feed_open_memory(data, size, &feed, &error))
        return 0;
    enum mt_status status = mt_jax_profile_open(feed, &source, &error);
    mt_feed_close(feed);
    if (status) {
        FUZZ_CHECK(error.status == status && *error.text);
        return 0;
    }
    FUZZ_CHECK(read_all(source) == read_all(source));
    mt_source_close(source);
    return 0;
}
