/* How the readings of a source, and their events, are charged to the parts of an analysis. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string.h>

#include "analysis.h"
#include "capture.h"
#include "memory_source.h"
#include "source.h"

enum { EVENTS = 10, BATCH = 4 };

struct run {
    struct memory_source source;
    struct mt_event events[EVENTS];
    struct mt_report report;
    struct mt_analysis analysis;
    struct mt_error error;
};

static void begin_run(struct run *run)
{
    memset(run, 0, sizeof *run);
    for (size_t i = 0; i < EVENTS; i++)
        run->events[i].kind = MT_EVENT_MARK;
    memory_source_init(&run->source, run->events, EVENTS, BATCH);
    run->analysis = (struct mt_analysis){
        .source = &run->source.source, .report = &run->report, .error = &run->error};
    run->source.source.view.level = MT_VIEW_FRAMEWORK;
    mt_readings_begin(&run->analysis.readings, run->analysis.source, &run->report.passes);
}

static enum mt_status count_event(void *context, struct mt_event *event)
{
    size_t *count = context;

    ++*count;
    return event->seq == 5 ? MT_END : MT_OK;
}

static void read_six_events(struct mt_analysis *analysis)
{
    size_t count = 0;

    assert_int_equal(mt_read_again_events(analysis, &count, count_event), MT_OK);
    assert_int_equal(count, 6); /* up to the event at which it ended */
}

TEST(each_reading_is_charged_once)
{
    const char *why = "";
    struct run run;

    begin_run(&run);
    struct mt_readings *readings = &run.analysis.readings;
    struct mt_pass_log *log = &run.report.passes;
    uint32_t whole = mt_readings_enter(readings, "parts");
    uint32_t outer = mt_readings_enter(readings, "part");
    read_six_events(&run.analysis);
    mt_readings_leave(readings, outer);
    outer = mt_readings_enter(readings, "part"); /* the same entry */
    mt_readings_leave(readings, outer);
    read_six_events(&run.analysis);
    mt_readings_hold(readings, 100);
    mt_readings_leave(readings, whole);
    assert_int_equal(log->count, 2);
    assert_string_equal(log->costs[0].name, "parts");
    assert_string_equal(log->costs[1].name, "part");
    assert_int_equal(log->costs[0].memory_bytes, 100);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(log->costs[i].readings, 1);
        assert_int_equal(log->costs[i].events, 2 * BATCH); /* it ended in the second batch */
    }
    assert_true(mt_readings_is_sound(readings, &why));
    log->costs[1].readings++; /* this one has no producer */
    assert_false(mt_readings_is_sound(readings, &why));
    log->costs[1].readings--;
    run.source.source.readings++; /* this one is charged to no pass */
    assert_false(mt_readings_is_sound(readings, &why));
    run.source.source.readings--;
    mt_arena_release(&run.report.arena);
    memory_source_release(&run.source);
}

/* The batch read to choose the heaps is passed on, so it is decoded once. */
TEST(a_look_ahead_is_part_of_the_reading)
{
    struct mt_event_batch batch;
    struct run run;
    size_t events = 0;

    begin_run(&run);
    run.events[0].kind = MT_EVENT_SEGMENT_ALLOC;
    assert_int_equal(mt_heap_view_choose(&run.source.source, &run.error), MT_OK);
    assert_int_equal(run.source.source.events_read, BATCH);
    while (mt_source_next(&run.source.source, &batch, &run.error) == MT_OK)
        events += batch.count;
    assert_int_equal(events, EVENTS);
    assert_int_equal(run.source.source.readings, 1);
    assert_int_equal(run.source.source.events_read, EVENTS);
    memory_source_release(&run.source);
}

struct audience {
    const struct mt_source *source;
    uint64_t told; /* bit N: reading N showed its progress */
    bool names_savings;
};

static void note_reading(void *context, const char *what, double share)
{
    struct audience *audience = context;

    assert_in_range(audience->source->readings, 1, 63);
    assert_true(share <= 1);
    audience->told |= UINT64_C(1) << audience->source->readings;
    audience->names_savings |= strcmp(what, "searching for savings") == 0;
}

TEST(each_reading_shows_its_progress)
{
    struct capture capture = {
        .source = capture_open(capture_path("captures", "gpt_default", ".pickle.zst"))};
    struct audience audience = {.source = capture.source};
    const struct mt_analyze_options options = {.progress = {note_reading, &audience},
                                               .needs = true};
    struct mt_error error = {0};

    assert_int_equal(mt_analyze(capture.source, &options, &capture.report, &error), MT_OK);
    assert_in_range(capture.source->readings, 4, 63);
    assert_int_equal(audience.told, (UINT64_C(2) << capture.source->readings) - 2);
    assert_true(audience.names_savings);
    assert_null(capture.source->watch.was_read);
    capture_close(&capture);
}

/* A question about an early event needs no block after it, yet damage behind it is reported. */
TEST(blocks_end_with_the_last_instant)
{
    const struct mt_question question = {.at = MT_AT_EVENT, .value = 5000};
    const struct mt_analyze_options options = {.question = &question};
    struct capture capture =
        capture_analyze(capture_path("recorded", "vllm", ".trace.zst"), &options);
    const struct mt_pass_log *log = &capture.report->passes;
    uint64_t whole = capture.source->integrity.events_read, events = 0;

    for (uint32_t i = 0; i < log->count; i++)
        if (strcmp(log->costs[i].name, "blocks") == 0)
            events = log->costs[i].events;
    assert_in_range(events, 5000, 32768); /* the first frame */
    assert_int_equal(whole, 64944);
    assert_true(capture.source->integrity.closed);
    capture_close(&capture);
}

/* Also if a second thread reads ahead: since the second frame. The file lacks its last bytes. */
TEST(blocks_that_end_early_hide_no_damage)
{
    const struct mt_question question = {.at = MT_AT_EVENT, .value = 40000};
    const struct mt_analyze_options options = {.question = &question};
    char path[] = "/tmp/memtrace-cut-XXXXXX", bytes[1 << 18];
    const int from = open(capture_path("recorded", "vllm", ".trace.zst"), O_RDONLY);
    const int to = mkstemp(path);
    const ssize_t length = read(from, bytes, sizeof bytes);

    assert_in_range(length, 100000, sizeof bytes - 1);
    assert_int_equal(write(to, bytes, (size_t)length - 8), length - 8);
    struct capture capture = capture_analyze(path, &options);
    assert_true(capture.source->integrity.cut && capture.report->integrity.cut);
    capture_close(&capture);
    close(from);
    close(to);
    unlink(path);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
