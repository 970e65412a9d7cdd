/* Compares replays that share one reading of real traces with the same replays one by one. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/memory_source.h"
#include "grow.h"
#include "import.h"
#include "replay.h"
#include "util.h"

static const struct mt_replay_options replays[] = {
    {.policy = "pytorch:"},
    {.policy = "pytorch", .limit_bytes = 512 * MT_MIB, .no_inferred_pools = true},
    {.policy = "pytorch:expandable_segments:True", .verify = true},
    {.policy = "bfc", .limit_bytes = 200 * MT_MIB},
    {.policy = "recorded", .no_inferred_limit = true, .no_inferred_pools = true},
    /* These share their beginning (one_replay.h): the next four also with the second one. */
    {.policy = "pytorch", .limit_bytes = 100 * MT_MIB, .no_inferred_pools = true},
    {.policy = "pytorch", .limit_bytes = 4500 * MT_MIB, .no_inferred_pools = true},
    {.policy = "pytorch", .limit_bytes = 4676 * MT_MIB, .no_inferred_pools = true},
    {.policy = "pytorch", .limit_bytes = 64 * MT_GIB, .no_inferred_pools = true},
    {.policy = "pytorch:expandable_segments:True", .limit_bytes = 200 * MT_MIB},
    {.policy = "pytorch:expandable_segments:True", .limit_bytes = 4400 * MT_MIB},
    {.policy = "pytorch:max_split_size_mb:64", .limit_bytes = 4800 * MT_MIB, .blind = true},
    {.policy = "pytorch:max_split_size_mb:64", .limit_bytes = 4600 * MT_MIB, .blind = true},
    /* These do not, because garbage collection computes with the limit. */
    {.policy = "pytorch:garbage_collection_threshold:0.5", .limit_bytes = 4800 * MT_MIB},
    {.policy = "pytorch:garbage_collection_threshold:0.5", .limit_bytes = 8000 * MT_MIB},
};

enum {
    COUNT = MT_ARRAY_LEN(replays),
    STOPS = 1,      /* whose observer stops early */
    STOPS_LATER = 6 /* the same, in a replay that follows it */
};

/* What an observer saw. */
struct seen {
    uint64_t events, reserved, most;
};

static enum mt_status see(void *context, const struct mt_event *event,
                          const struct mt_replay_view *view)
{
    struct seen *seen = context;

    seen->reserved += event->seq * (view->counters->reserved.now / MT_MIB);
    return ++seen->events == seen->most ? MT_END : MT_OK;
}

static enum mt_status count_event(void *context, const struct mt_event *event)
{
    uint64_t *count = context;

    ++*count;
    return event->seq == UINT64_MAX ? MT_END : MT_OK;
}

static struct mt_source *open_capture(const char *folder, const char *name)
{
    struct mt_source *source;
    struct mt_error error;
    char path[512];

    snprintf(path, sizeof path, "%s/%s/%s", MEMTRACE_FIXTURES, folder, name);
    if (mt_import_open_any(path, &source, &error) != MT_OK)
        fail_msg("%s: %s", name, error.text);
    return source;
}

static void rewind_source(struct mt_source *source)
{
    struct mt_error error;

    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
}

static void run_one_by_one(struct mt_source *source, struct mt_replay_summary *summaries,
                           struct seen *seen)
{
    struct mt_error error;

    for (size_t i = 0; i < COUNT; i++) {
        const struct mt_replay_observer observer = {&seen[i], see, NULL};

        rewind_source(source);
        assert_int_equal(mt_replay_run(source, &replays[i], &observer, &summaries[i], &error),
                         MT_OK);
    }
}

static uint64_t run_together(struct mt_source *source, struct mt_replay_summary *summaries,
                             struct seen *seen)
{
    struct mt_replay_observer observers[COUNT];
    struct mt_replay_job jobs[COUNT];
    uint64_t events = 0;
    const struct mt_replay_listener listener = {&events, count_event};
    struct mt_error error;

    for (size_t i = 0; i < COUNT; i++) {
        observers[i] = (struct mt_replay_observer){&seen[i], see, NULL};
        jobs[i] = (struct mt_replay_job){&replays[i], &observers[i], &summaries[i]};
    }
    rewind_source(source);
    assert_int_equal(mt_replay_run_together(source, jobs, COUNT, &listener, &error), MT_OK);
    return events;
}

static void assert_same(const struct mt_replay_summary *one, const struct mt_replay_summary *other)
{
    assert_string_equal(one->policy, other->policy);
    assert_int_equal(one->device_count, other->device_count);
    for (uint16_t i = 0; i < one->device_count; i++) {
        const struct mt_replay_result *a = &one->devices[i], *b = &other->devices[i];

        assert_int_equal(a->device, b->device);
        assert_memory_equal(&a->counters, &b->counters, sizeof a->counters);
        assert_int_equal(a->limit_bytes, b->limit_bytes);
        assert_int_equal(a->same_from_bytes, b->same_from_bytes);
        assert_int_equal(a->same_until_bytes, b->same_until_bytes);
        assert_int_equal(a->address_ties, b->address_ties);
        assert_int_equal(a->failed_requests, b->failed_requests);
        assert_int_equal(a->orphan_frees, b->orphan_frees);
        assert_int_equal(a->verify.allocations, b->verify.allocations);
        assert_int_equal(a->verify.addresses_exact, b->verify.addresses_exact);
        assert_int_equal(a->verify.segment_events_exact, b->verify.segment_events_exact);
        assert_string_equal(a->verify.first_difference, b->verify.first_difference);
    }
}

static void compare(struct mt_source *source, bool two_threads)
{
    struct mt_replay_summary *alone = calloc(COUNT, sizeof *alone),
                             *together = calloc(COUNT, sizeof *together);
    struct seen seen_alone[COUNT] = {{0}}, seen_together[COUNT] = {{0}};
    uint64_t readings, events;

    assert_non_null(alone);
    assert_non_null(together);
    seen_alone[STOPS].most = seen_together[STOPS].most = 500;
    seen_alone[STOPS_LATER].most = seen_together[STOPS_LATER].most = 700;
    run_one_by_one(source, alone, seen_alone);
    assert_true(source->symbols_complete);
    source->symbols_complete = two_threads;
    readings = source->readings;
    events = run_together(source, together, seen_together);
    assert_int_equal(source->readings, readings + 1);
    assert_int_equal(events, seen_alone[0].events);
    assert_int_equal(seen_together[STOPS].events, 500);
    assert_int_equal(seen_together[STOPS_LATER].events, 700);
    for (size_t i = 0; i < COUNT; i++) {
        assert_same(&alone[i], &together[i]);
        assert_memory_equal(&seen_alone[i], &seen_together[i], sizeof seen_alone[i]);
    }
    free(alone);
    free(together);
}

static void compare_file(const char *folder, const char *name)
{
    struct mt_source *source = open_capture(folder, name);

    compare(source, true);
    rewind_source(source);
    compare(source, false);
    mt_source_close(source);
}

TEST(side_by_side_is_one_by_one)
{
    compare_file("captures", "seq2seq.pickle.zst");
    compare_file("captures", "churn_gc.pickle.zst");
    compare_file("captures", "twogpu.pickle.zst");
    compare_file("captures", "gpt_ring.pickle.zst");
    compare_file("recorded", "twogpu.trace.zst");
}

static size_t read_all(struct mt_source *source, struct mt_event **events)
{
    struct mt_event_batch batch;
    struct mt_error error;
    size_t count = 0, capacity = 0;

    *events = NULL;
    while (mt_source_next(source, &batch, &error) == MT_OK) {
        assert_int_equal(mt_grow(events, &capacity, count + batch.count, sizeof **events), MT_OK);
        memcpy(*events + count, batch.events, batch.count * sizeof **events);
        count += batch.count;
    }
    return count;
}

/* Batches have two events, and the next batch overwrites them: nearly every look-ahead moves the
 * window, and no replay may still use the event from which the previous one looked ahead. */
TEST(looking_ahead_disturbs_no_other)
{
    struct mt_source *source = open_capture("captures", "churn_gc.pickle.zst");
    struct memory_source small;
    struct mt_event *events;
    size_t count = read_all(source, &events);

    memory_source_init(&small, events, count, 2);
    mt_symbols_release(&small.source.symbols);
    small.source.symbols = source->symbols;
    small.source.header = source->header;
    compare(&small.source, true);
    rewind_source(&small.source);
    compare(&small.source, false);
    mt_source_close(source);
    free(events);
}

/* Each thread goes on alone after the replay of the other one has ended. */
TEST(no_thread_waits_for_one_that_ended)
{
    struct mt_source *source = open_capture("captures", "churn_gc.pickle.zst");
    struct mt_replay_summary *summaries = calloc(2, sizeof *summaries);
    struct mt_error error;

    assert_non_null(summaries);
    for (size_t i = 0; i < 2; i++) {
        struct seen seen[2] = {{.most = i ? 500 : 0}, {.most = i ? 0 : 500}};
        const struct mt_replay_observer observers[2] = {{&seen[0], see, NULL},
                                                        {&seen[1], see, NULL}};
        const struct mt_replay_job jobs[2] = {{&replays[0], &observers[0], &summaries[0]},
                                              {&replays[0], &observers[1], &summaries[1]}};

        rewind_source(source);
        source->symbols_complete = true;
        assert_int_equal(mt_replay_run_together(source, jobs, 2, NULL, &error), MT_OK);
        assert_int_equal(seen[1 - i].events, 500);
        assert_true(seen[i].events > 1000);
    }
    free(summaries);
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
