/* One loop over all events of a source, and who follows it. */
#include "cmocka_all.h"

#include "memory_source.h"

enum { EVENTS = 10, BATCH = 3 };

struct seen {
    uint64_t events, fails_at;
};

static enum mt_status on_event(void *self, struct mt_event *event)
{
    struct seen *seen = self;

    assert_int_equal(event->seq, seen->events);
    return ++seen->events == seen->fails_at ? MT_ERR_MEMORY : MT_OK;
}

static void every_event_is_handed_on(void **state)
{
    struct mt_event events[EVENTS] = {{0}};
    struct memory_source program;
    struct seen seen = {0, 0};

    (void)state;
    memory_source_init(&program, events, EVENTS, BATCH);
    assert_int_equal(mt_source_each(&program.source, on_event, &seen, NULL), MT_OK);
    assert_int_equal(seen.events, EVENTS);
    mt_symbols_release(&program.source.symbols);
}

/* In the middle of a batch, as its last event, and as the last of all. */
static void a_failure_ends_the_reading(void **state)
{
    struct mt_event events[EVENTS] = {{0}};
    struct memory_source program;

    (void)state;
    memory_source_init(&program, events, EVENTS, BATCH);
    for (uint64_t at = 1; at <= EVENTS; at++) {
        struct seen seen = {0, at};

        assert_int_equal(mt_source_rewind(&program.source, NULL), MT_OK);
        assert_int_equal(mt_source_each(&program.source, on_event, &seen, NULL), MT_ERR_MEMORY);
        assert_int_equal(seen.events, at);
    }
    mt_symbols_release(&program.source.symbols);
}

struct follower {
    uint64_t batches, last_reading;
};

static void was_read(void *context, const struct mt_source *source)
{
    struct follower *follower = context;

    follower->batches++;
    follower->last_reading = source->readings;
}

static void a_watch_sees_every_batch_of_every_reading(void **state)
{
    struct mt_event events[EVENTS] = {{0}};
    struct memory_source program;
    struct follower follower = {0, 0};
    struct seen seen = {0, 0};

    (void)state;
    memory_source_init(&program, events, EVENTS, BATCH);
    program.source.watch = (struct mt_source_watch){was_read, &follower};
    for (uint64_t reading = 1; reading <= 2; reading++) {
        assert_int_equal(mt_source_rewind(&program.source, NULL), MT_OK);
        seen.events = 0;
        assert_int_equal(mt_source_each(&program.source, on_event, &seen, NULL), MT_OK);
        assert_int_equal(follower.batches, reading * 4); /* of 3, 3, 3 and 1 events */
        assert_int_equal(follower.last_reading, reading);
    }
    mt_symbols_release(&program.source.symbols);
}

static void the_share_is_between_0_and_1(void **state)
{
    struct mt_source source = {.input_bytes = 0, .progress_bytes = 7};

    (void)state;
    assert_true(mt_source_share(&source) == 0);
    source.input_bytes = 28;
    assert_true(mt_source_share(&source) == 0.25);
    source.progress_bytes = 29;
    assert_true(mt_source_share(&source) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_event_is_handed_on),
                                       cmocka_unit_test(a_failure_ends_the_reading),
                                       cmocka_unit_test(a_watch_sees_every_batch_of_every_reading),
                                       cmocka_unit_test(the_share_is_between_0_and_1)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
