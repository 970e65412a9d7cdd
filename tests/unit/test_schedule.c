/* The schedule of passes: invalid tables, which passes share a reading, and how its time is
 * charged. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "analysis.h"
#include "heap_choice.h"
#include "memory_source.h"
#include "schedule.h"
#include "util.h"
#include "read_again.h"

enum { A = 1, B = 2, C = 4, D = 8 };
enum { EVENTS = 10, BATCH = 4 };

static enum mt_status nothing(struct mt_analysis *analysis)
{
    (void)analysis;
    return MT_OK;
}

static enum mt_status hear_nothing(struct mt_analysis *analysis, const struct mt_event *events,
                                   size_t count)
{
    (void)analysis;
    (void)events;
    (void)count;
    return MT_OK;
}

static enum mt_status drive_nothing(struct mt_analysis *analysis,
                                    const struct mt_replay_listener *listener)
{
    (void)analysis;
    (void)listener;
    return MT_OK;
}

static const struct mt_pass sound[] = {
    {.name = "a", .gives = A, .begin = nothing},
    {.name = "b", .needs = A, .gives = B, .batch = hear_nothing},
    {.name = "c", .needs = A | B, .gives = C, .drive = drive_nothing},
};

/* The sound table with another second pass. */
static void assert_broken(struct mt_pass second, const char *rule)
{
    struct mt_pass passes[MT_ARRAY_LEN(sound)];
    const char *why = "";

    memcpy(passes, sound, sizeof sound);
    passes[1] = second;
    assert_false(mt_schedule_is_sound(passes, MT_ARRAY_LEN(passes), &why));
    if (!strstr(why, rule))
        fail_msg("broken is '%s', not '%s'", why, rule);
}

static void broken_tables_are_found(void **unused)
{
    const struct mt_pass good = sound[1];
    struct mt_pass bad;
    const char *why = "";

    (void)unused;
    assert_true(mt_schedule_is_sound(sound, MT_ARRAY_LEN(sound), &why));
    assert_false(mt_schedule_is_sound(sound, 0, &why));
    bad = good;
    bad.name = "";
    assert_broken(bad, "name");
    bad = good;
    bad.name = "a";
    assert_broken(bad, "strcmp");
    bad = good;
    bad.gives = 0;
    assert_broken(bad, "gives");
    bad = good;
    bad.gives = A | B; /* a second producer, which needs its own result */
    assert_broken(bad, "needs & ");
    bad.needs = 0; /* a second producer */
    assert_broken(bad, "gives & known");
    bad = good;
    bad.needs = D; /* nothing produces that */
    assert_broken(bad, "~known");
    bad = good;
    bad.needs = C; /* produced by a later pass, which waits for this one */
    assert_broken(bad, "~known");
    bad = good;
    bad.gives = D; /* without it, nothing produces what the third needs */
    assert_broken(bad, "~known");
    bad = good;
    bad.batch = NULL; /* nothing to do */
    assert_broken(bad, "receives_events(pass)");
    bad = good;
    bad.drive = drive_nothing;
    assert_broken(bad, "!pass->batch || !pass->drive");
    bad.batch = NULL;
    bad.hears_all_heaps = true; /* a replay reads the heaps in view */
    assert_broken(bad, "!pass->drive ||");
    bad = (struct mt_pass){.name = "b", .gives = B, .begin = nothing, .hears_all_heaps = true};
    assert_broken(bad, "hears_all_heaps");
}

/* A log: a capital begins a pass, a small letter ends it, a digit counts the events it received. */
static char story[200];

/* The step that fails, as named in the log; NULL = none. */
static const char *failing;

static enum mt_status tell(const char *text)
{
    strcat(story, text);
    return failing && !strcmp(text, failing) ? MT_ERR_MEMORY : MT_OK;
}

/* With a star: events of all heaps. */
static enum mt_status hear(const struct mt_analysis *analysis, const char *who, size_t count)
{
    bool all = analysis->source->view.level == MT_VIEW_EVERYTHING;
    char text[16];

    snprintf(text, sizeof text, "%s%zu%s", who, count, all ? "*" : "");
    return tell(text);
}

#define STEP(function, text)                                                                       \
    static enum mt_status function(struct mt_analysis *analysis)                                   \
    {                                                                                              \
        (void)analysis;                                                                            \
        return tell(text);                                                                         \
    }
STEP(begin_p, "P")
STEP(begin_q, "Q")
STEP(end_q, "q")
STEP(begin_r, "R")
STEP(end_r, "r")
STEP(begin_s, "S")

static enum mt_status hear_q(struct mt_analysis *analysis, const struct mt_event *events,
                             size_t count)
{
    (void)events;
    return hear(analysis, "q", count);
}

static enum mt_status hear_r(struct mt_analysis *analysis, const struct mt_event *events,
                             size_t count)
{
    (void)events;
    return hear(analysis, "r", count);
}

/* Processes one event after the other, like a replay. */
static enum mt_status drive_q(struct mt_analysis *analysis,
                              const struct mt_replay_listener *listener)
{
    struct mt_event_batch batch;
    enum mt_status status = MT_OK;

    while (status == MT_OK &&
           (status = mt_source_next(analysis->source, &batch, analysis->error)) == MT_OK)
        for (size_t i = 0; i < batch.count && status == MT_OK; i++)
            status = listener->event(listener->context, &batch.events[i]);
    return status == MT_END ? MT_OK : status;
}

static bool is_not_wanted(const struct mt_analysis *analysis)
{
    (void)analysis;
    return false;
}

static uint64_t hold_100_bytes(const struct mt_analysis *analysis)
{
    (void)analysis;
    return 100;
}

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
    story[0] = '\0';
}

static void end_run(struct run *run)
{
    const char *why = "";

    assert_true(mt_readings_is_sound(&run->analysis.readings, &why));
    mt_arena_release(&run->report.arena);
    memory_source_release(&run->source);
}

static void assert_run(const struct mt_pass *passes, size_t count, uint64_t readings,
                       const char *wanted)
{
    struct run run;

    begin_run(&run);
    assert_int_equal(mt_schedule_run(passes, count, &run.analysis), MT_OK);
    assert_string_equal(story, wanted);
    assert_int_equal(run.source.source.view.level, MT_VIEW_FRAMEWORK);
    assert_int_equal(run.source.source.readings, readings);
    assert_int_equal(run.source.source.events_read, readings * EVENTS);
    end_run(&run);
}

static void passes_share_a_reading_if_possible(void **unused)
{
    struct mt_pass passes[] = {
        {.name = "p", .gives = A, .begin = begin_p},
        {.name = "q", .needs = A, .gives = B, .begin = begin_q, .batch = hear_q, .end = end_q},
        {.name = "r", .gives = C, .begin = begin_r, .batch = hear_r, .end = end_r},
        {.name = "s", .needs = A, .gives = D, .begin = begin_s},
    };

    (void)unused;
    assert_run(passes, MT_ARRAY_LEN(passes), 1, "PSQRq4r4q4r4q2r2qr");
    passes[2].needs = B; /* only known after the first reading */
    assert_run(passes, MT_ARRAY_LEN(passes), 2, "PSQq4q4q2qRr4r4r2r");
    passes[2].needs = A;
    passes[2].hears_all_heaps = true; /* another view */
    assert_run(passes, MT_ARRAY_LEN(passes), 2, "PSQq4q4q2qRr4*r4*r2*r");
    passes[1].is_wanted = is_not_wanted;
    assert_run(passes, MT_ARRAY_LEN(passes), 1, "PSRr4*r4*r2*r");
}

static void assert_fails(const struct mt_pass *passes, size_t count, const char *step,
                         const char *wanted)
{
    struct run run;

    begin_run(&run);
    failing = step;
    assert_int_equal(mt_schedule_run(passes, count, &run.analysis), MT_ERR_MEMORY);
    failing = NULL;
    assert_string_equal(story, wanted);
    assert_int_equal(run.source.source.view.level, MT_VIEW_FRAMEWORK);
    end_run(&run);
}

static void a_failed_step_is_the_last(void **unused)
{
    struct mt_pass passes[] = {
        {.name = "p", .gives = A, .begin = begin_p},
        {.name = "q", .needs = A, .gives = B, .begin = begin_q, .batch = hear_q, .end = end_q},
        {.name = "r", .needs = A, .gives = C, .begin = begin_r, .batch = hear_r, .end = end_r},
        {.name = "s", .needs = B | C, .gives = D, .begin = begin_s},
    };

    (void)unused;
    assert_fails(passes, MT_ARRAY_LEN(passes), "P", "P");
    assert_fails(passes, MT_ARRAY_LEN(passes), "Q", "PQ");
    assert_fails(passes, MT_ARRAY_LEN(passes), "q2", "PQRq4r4q4r4q2");
    assert_fails(passes, MT_ARRAY_LEN(passes), "q", "PQRq4r4q4r4q2r2q");
    assert_fails(passes, MT_ARRAY_LEN(passes), "S", "PQRq4r4q4r4q2r2qrS");
    passes[1].hears_all_heaps = passes[2].hears_all_heaps = true;
    assert_fails(passes, MT_ARRAY_LEN(passes), "r4*", "PQRq4*r4*");
}

static void one_pass_may_drive_a_reading(void **unused)
{
    const struct mt_pass passes[] = {
        {.name = "q", .gives = B, .begin = begin_q, .drive = drive_q, .end = end_q},
        {.name = "r", .gives = C, .begin = begin_r, .batch = hear_r, .end = end_r},
        {.name = "another", .gives = D, .drive = drive_q},
    };

    (void)unused;
    assert_run(passes, MT_ARRAY_LEN(passes), 2, "QRr1r1r1r1r1r1r1r1r1r1qr");
}

static enum mt_status count_event(void *context, struct mt_event *event)
{
    size_t *count = context;

    ++*count;
    return event->seq == 5 ? MT_END : MT_OK;
}

static enum mt_status read_in_parts(struct mt_analysis *analysis)
{
    size_t count = 0;
    uint32_t outer = mt_readings_enter(&analysis->readings, "part");

    assert_int_equal(mt_read_events(analysis, &count, count_event), MT_OK);
    assert_int_equal(count, 6); /* up to the event at which it ended */
    mt_readings_leave(&analysis->readings, outer);
    outer = mt_readings_enter(&analysis->readings, "part");
    mt_readings_leave(&analysis->readings, outer);
    return mt_read_events(analysis, &count, count_event);
}

static void each_reading_is_charged_once(void **unused)
{
    const struct mt_pass passes[] = {
        {.name = "parts", .gives = A, .begin = read_in_parts, .memory_bytes = hold_100_bytes},
        {.name = "q", .gives = B, .batch = hear_q},
        {.name = "r", .gives = C, .batch = hear_r},
    };
    struct mt_pass_log *log;
    const char *why = "";
    struct run run;

    (void)unused;
    begin_run(&run);
    log = &run.report.passes;
    assert_int_equal(mt_schedule_run(passes, MT_ARRAY_LEN(passes), &run.analysis), MT_OK);
    assert_int_equal(log->count, 3);
    assert_string_equal(log->costs[0].name, "parts");
    assert_string_equal(log->costs[1].name, "part");
    assert_string_equal(log->costs[2].name, "q, r");
    assert_int_equal(log->costs[0].memory_bytes, 100);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(log->costs[i].readings, 1);
    assert_int_equal(log->costs[0].events, 2 * BATCH); /* it ended in the second batch */
    assert_int_equal(log->costs[1].events, 2 * BATCH);
    assert_int_equal(log->costs[2].events, EVENTS);
    log->costs[1].readings++; /* this one has no producer */
    assert_false(mt_readings_is_sound(&run.analysis.readings, &why));
    log->costs[1].readings--;
    run.source.source.readings++; /* this one is charged to no pass */
    assert_false(mt_readings_is_sound(&run.analysis.readings, &why));
    run.source.source.readings--;
    end_run(&run);
}

/* The batch read to choose the heaps is passed on, so it is decoded once. */
static void a_look_ahead_is_part_of_the_reading(void **unused)
{
    struct mt_event_batch batch;
    struct run run;
    size_t events = 0;

    (void)unused;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_tables_are_found),
        cmocka_unit_test(passes_share_a_reading_if_possible),
        cmocka_unit_test(a_failed_step_is_the_last),
        cmocka_unit_test(one_pass_may_drive_a_reading),
        cmocka_unit_test(each_reading_is_charged_once),
        cmocka_unit_test(a_look_ahead_is_part_of_the_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
