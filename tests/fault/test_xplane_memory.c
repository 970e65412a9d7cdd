/* A profile of XLA that is read while allocations fail is read whole, or refused for want of
 * memory. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "failing_alloc.h"
#include "importers.h"
#include "xplane_maker.h"

enum { EVENTS = 200 };

static void make(struct mt_buf *profile)
{
    struct made_event events[EVENTS];
    struct mt_buf plane = {0};
    uint64_t in_use = 0;

    for (uint64_t i = 0; i < EVENTS; i++) {
        bool is_free = i % 4 == 3;
        uint64_t number = is_free ? i - 1 : i;

        in_use = is_free ? in_use - 256 : in_use + 256;
        events[i] =
            (struct made_event){"GPU_0_bfc",        is_free,  (UINT64_C(1) << 40) + 256 * number,
                                100 + number % 100, 256,      in_use,
                                UINT64_C(1) << 30,  1000 * i, i % 3 ? "an operation" : NULL};
    }
    pb_host_plane(&plane);
    pb_line(&plane, "python3", 0, events, EVENTS);
    pb_message(profile, 1, &plane);
    assert_false(profile->failed);
}

/* How many events; 0: refused, and for want of memory. */
static uint64_t read_profile(const struct mt_buf *profile)
{
    struct mt_source *source = NULL;
    struct mt_event_batch batch;
    struct mt_error error = {.status = MT_OK};
    struct mt_feed *feed = NULL;
    uint64_t count = 0;
    enum mt_status status = mt_feed_open_memory(profile->data, profile->length, &feed, &error);

    if (!status)
        status = mt_xplane_open(feed, &source, &error);
    mt_feed_close(feed);
    if (status) {
        assert_int_equal(status, MT_ERR_MEMORY);
        return 0;
    }
    while (mt_source_next(source, &batch, &error) == MT_OK)
        count += batch.count;
    mt_source_close(source);
    return count;
}

TEST(every_allocation_fails_once)
{
    struct mt_buf profile = {0};
    uint64_t whole, count = 0;

    make(&profile);
    fail_allocation(0, false);
    whole = read_profile(&profile);
    size_t allocations = stop_failing();
    assert_true(whole > EVENTS && allocations > 20);
    for (size_t n = 1; n <= allocations; n++) {
        for (int rest = 0; rest < 2; rest++) {
            fail_allocation(n, rest);
            count = read_profile(&profile);
            (void)stop_failing();
            assert_true(count == 0 || count == whole);
        }
    }
    mt_buf_release(&profile);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
