/* One loop over all events of a source, and who follows it. */
#include "cmocka_all.h"

#include <sched.h>
#include <stdlib.h>

#include "memory_source.h"
#include "test_threads.h"

enum { EVENTS = 10, BATCH = 3, LONG_EVENTS = 50000, FAILS_AT = 49984 };

struct seen {
    uint64_t events, fails_at;
};

static enum mt_status on_event(void *self, struct mt_event *event)
{
    struct seen *seen = self;

    assert_int_equal(event->seq, seen->events);
    return ++seen->events == seen->fails_at ? MT_ERR_MEMORY : MT_OK;
}

TEST(every_event_is_handed_on)
{
    struct mt_event events[EVENTS] = {{0}};
    struct memory_source program;
    struct seen seen = {0, 0};

    memory_source_init(&program, events, EVENTS, BATCH);
    assert_int_equal(mt_source_each(&program.source, on_event, &seen, NULL), MT_OK);
    assert_int_equal(seen.events, EVENTS);
    mt_symbols_release(&program.source.symbols);
}

/* In the middle of a batch, as its last event, and as the last of all. */
TEST(a_failure_ends_the_reading)
{
    struct mt_event events[EVENTS] = {{0}};
    struct memory_source program;

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

TEST(a_watch_sees_every_batch_of_every_reading)
{
    struct mt_event events[EVENTS] = {{0}};
    struct memory_source program;
    struct follower follower = {0, 0};
    struct seen seen = {0, 0};

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

TEST(the_share_is_between_0_and_1)
{
    struct mt_source source = {.input_bytes = 0, .progress_bytes = 7};

    assert_true(mt_source_share(&source) == 0);
    source.input_bytes = 28;
    assert_true(mt_source_share(&source) == 0.25);
    source.progress_bytes = 29;
    assert_true(mt_source_share(&source) == 1);
}

static enum mt_status next_of_long(struct mt_source *source, struct mt_event_batch *batch,
                                   struct mt_error *error)
{
    struct memory_source *self = (struct memory_source *)source;
    enum mt_status status = MT_OK;

    if (self->at == FAILS_AT && source->header.never_refused)
        return mt_fail(error, MT_ERR_FORMAT, 7, "broken");
    status = memory_source_next(source, batch, error);
    source->integrity.events_read = source->progress_bytes = self->at;
    source->integrity.cut |= status == MT_END;
    return status;
}

/* What a reader that stops after `most` events can see of the source. */
static void read_long(struct mt_source *source, uint64_t most, bool ahead, uint64_t seen[6])
{
    struct mt_event_batch batch = {0};
    struct mt_error error = {0};
    enum mt_status status = mt_source_rewind(source, NULL);
    uint64_t events = 0, before = source->events_read;

    source->integrity = (struct mt_integrity){0};
    mt_source_read_ahead(source, ahead);
    while (events < most && (status = mt_source_next(source, &batch, &error)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++)
            assert_int_equal(batch.events[i].seq, events + i);
        events += batch.count;
        assert_true(mt_source_share(source) == (double)events / LONG_EVENTS);
        memset(batch.events, 0x55, batch.count * sizeof *batch.events);
    }
    mt_source_read_ahead(source, false);
    assert_null(source->ahead);
    seen[0] = events;
    seen[1] = source->events_read - before;
    seen[2] = source->integrity.events_read;
    seen[3] = source->integrity.cut;
    seen[4] = source->progress_bytes;
    seen[5] = (uint64_t)status;
    assert_string_equal(error.text, status == MT_ERR_FORMAT ? "broken" : "");
}

/* Whether it ends, stops or fails, and also if there is no second thread. */
TEST(reading_ahead_shows_the_same)
{
    static const struct mt_source_ops ops = {next_of_long, memory_source_rewind, NULL, NULL, NULL};
    static const uint64_t stops[] = {1, 32768, 32769, 40000, UINT64_MAX};
    struct mt_event *events = calloc(LONG_EVENTS, sizeof *events);
    struct memory_source program;
    uint64_t alone[6], ahead[6];

    assert_non_null(events);
    memory_source_init(&program, events, LONG_EVENTS, 64);
    program.source.ops = &ops;
    program.source.input_bytes = LONG_EVENTS;
    program.source.symbols_complete = true;
    test_threads_made = 0;
    for (size_t i = 0; i < 4 * sizeof stops / sizeof *stops; i++) {
        program.source.header.never_refused = i & 1; /* fails before the end */
        read_long(&program.source, stops[i / 4], false, alone);
        test_has_no_threads = i & 2;
        read_long(&program.source, stops[i / 4], true, ahead);
        test_has_no_threads = false;
        assert_memory_equal(alone, ahead, sizeof alone);
    }
    assert_int_equal(test_threads_made, 6); /* of the three longest readings, whole or not */
    memory_source_release(&program);
    free(events);
}

TEST(a_reading_that_is_left_shows_the_notes_of_a_whole_one)
{
    static const struct mt_source_ops ops = {next_of_long, memory_source_rewind, NULL, NULL, NULL};
    struct mt_event *events = calloc(LONG_EVENTS, sizeof *events);
    struct memory_source program;
    struct mt_event_batch batch;
    uint64_t whole[6];

    assert_non_null(events);
    memory_source_init(&program, events, LONG_EVENTS, 64);
    program.source.ops = &ops;
    program.source.input_bytes = LONG_EVENTS;
    program.source.symbols_complete = true;
    read_long(&program.source, UINT64_MAX, false, whole);
    assert_int_equal(mt_source_rewind(&program.source, NULL), MT_OK);
    program.source.integrity.cut = false;
    mt_source_read_ahead(&program.source, true);
    for (int i = 0; i < 40000 / 64; i++)
        assert_int_equal(mt_source_next(&program.source, &batch, NULL), MT_OK);
    assert_non_null(program.source.ahead);
    mt_source_leave(&program.source);
    assert_null(program.source.ahead);
    assert_true(program.source.integrity.cut);
    assert_int_equal(program.source.integrity.events_read, LONG_EVENTS);
    memory_source_release(&program);
    free(events);
}

static enum mt_status next_that_defines(struct mt_source *source, struct mt_event_batch *batch,
                                        struct mt_error *error)
{
    uint32_t id;

    enum mt_status status = mt_source_change_symbols(source);

    if (status != MT_OK)
        return status;
    assert_int_equal(mt_symbols_stream(&source->symbols, source->progress_bytes + 1, &id), MT_OK);
    return next_of_long(source, batch, error);
}

TEST(reading_ahead_defines_what_the_reader_has_reached)
{
    static const struct mt_source_ops ops = {next_that_defines, memory_source_rewind, NULL, NULL,
                                             NULL};
    struct mt_event *events = calloc(LONG_EVENTS, sizeof *events);
    struct memory_source program;
    struct mt_event_batch batch;
    uint32_t before, batches = 0;

    assert_non_null(events);
    memory_source_init(&program, events, LONG_EVENTS, 64);
    program.source.ops = &ops;
    program.source.announces_changes = true;
    before = program.source.symbols.stream_count;
    mt_source_read_ahead(&program.source, true);
    while (mt_source_next(&program.source, &batch, NULL) == MT_OK) {
        batches++;
        for (int i = 0; i < 100; i++)
            sched_yield();
        assert_int_equal(program.source.symbols.stream_count, before + batches);
    }
    assert_int_equal(batches, (LONG_EVENTS + 63) / 64);
    memory_source_release(&program);
    free(events);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
