/* Any bytes as a trace, or a memory timeline, of torch.profiler: events come in order, refer to
 * what there is, are the same in a second reading, and a damaged file is never read in silence. */
#include "fuzz_source.h"
#include "importers.h"
#include "kineto_read.h"

/* Making a trace takes ten times as long as reading the file, so only some inputs become one. */
enum { SELDOM = 16 };

static void check(const struct mt_source *source, const struct mt_event *event)
{
    const bool is_block = event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_FREE_REQUESTED;

    FUZZ_CHECK(!is_block || event->size_bytes);
    FUZZ_CHECK(event->kind != MT_EVENT_ALLOC || event->aux_bytes == event->size_bytes);
    FUZZ_CHECK(!is_block || event->device < source->symbols.device_count);
}

/* A block begins before its free, and those from before the profile have room in the total. */
static void follow(struct mt_kineto *profile)
{
    struct mt_kineto_totals totals = {.lost_count = 0};

    FUZZ_CHECK(mt_kineto_follow(profile, &totals) == MT_OK);
    for (size_t i = 0; i < totals.lost_count; i++) {
        FUZZ_CHECK(totals.lost[i].at <= (int64_t)totals.lost[i].instant);
        FUZZ_CHECK(!i || totals.lost[i].at >= totals.lost[i - 1].at);
        FUZZ_CHECK(!profile->instants[totals.lost[i].instant].is_left_out);
    }
    for (size_t i = 0; i < MT_KINETO_DEVICES; i++)
        FUZZ_CHECK(!totals.devices[i].has_start ||
                   totals.devices[i].initial_bytes <= totals.devices[i].start_bytes);
    mt_kineto_totals_release(&totals);
}

/* The rows, their stacks and totals. */
static void read_rows(struct mt_feed *feed)
{
    struct mt_made_trace made = {.event_count = 0};
    struct mt_kineto profile = {.base_ns = 0};
    struct mt_error error = {.text = ""};

    FUZZ_CHECK(mt_symbols_init(&made.symbols) == MT_OK);
    if (mt_kineto_read(feed, &profile, &made, &error) != MT_OK)
        FUZZ_CHECK(error.text[0]);
    else
        FUZZ_CHECK(mt_kineto_set_stacks(&profile, &made.symbols) == MT_OK);
    for (size_t i = 0; i < profile.instant_count; i++) {
        const struct mt_kineto_instant *instant = &profile.instants[i];

        FUZZ_CHECK(instant->thread < profile.thread_count);
        FUZZ_CHECK(instant->stack == MT_NO_ID || instant->stack < made.symbols.stack_count);
    }
    follow(&profile);
    mt_kineto_release(&profile);
    mt_made_trace_release(&made);
}

typedef enum mt_status (*open_fn)(struct mt_feed *feed, struct mt_source **source,
                                  struct mt_error *error);

static void read_trace(struct mt_feed *feed, open_fn open)
{
    struct mt_error error = {.text = ""};
    struct mt_source *source;

    if (open(feed, &source, &error) != MT_OK) {
        FUZZ_CHECK(error.text[0]);
        return;
    }
    source->view.level = MT_VIEW_EVERYTHING;
    (void)fuzz_read_twice(source, check);
    mt_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_feed *feed = NULL;
    struct mt_error error;

    (void)mt_kineto_probe(data, size);
    if (mt_feed_open_memory(data, size, &feed, &error) != MT_OK)
        return 0;
    if (mt_memory_timeline_probe(data, size))
        read_trace(feed, mt_memory_timeline_open);
    else if (size % SELDOM)
        read_rows(feed);
    else
        read_trace(feed, mt_kineto_open);
    mt_feed_close(feed);
    return 0;
}
