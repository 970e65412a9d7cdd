/* Compares replays that share one reading with the same replays one by one, for real traces and for
 * random programs. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/memory_source.h"
#include "dice.h"
#include "grow.h"
#include "import.h"
#include "replay.h"
#include "util.h"

struct job {
    struct mt_replay_options options;
    uint64_t most_events; /* after which the observer stops; 0 = it does not */
};

/* A replay may follow one before it (one_replay.h), if that has the larger limit. */
static const struct job jobs_of_captures[] = {
    {.options = {.policy = "pytorch:"}},
    {{.policy = "pytorch", .limit_bytes = 64 * MT_GIB, .no_inferred_pools = true}, 500},
    {{.policy = "pytorch", .limit_bytes = 4676 * MT_MIB, .no_inferred_pools = true}, 700},
    {.options = {.policy = "pytorch", .limit_bytes = 4500 * MT_MIB, .no_inferred_pools = true}},
    {.options = {.policy = "pytorch", .limit_bytes = 1200 * MT_MIB, .no_inferred_pools = true}},
    {.options = {.policy = "pytorch", .limit_bytes = 512 * MT_MIB, .no_inferred_pools = true}},
    {.options = {.policy = "pytorch", .limit_bytes = 100 * MT_MIB, .no_inferred_pools = true}},
    {.options = {.policy = "pytorch:expandable_segments:True", .verify = true}},
    {.options = {.policy = "pytorch:expandable_segments:True", .limit_bytes = 4800 * MT_MIB}},
    {{.policy = "pytorch:expandable_segments:True", .limit_bytes = 4400 * MT_MIB}, 300},
    {.options = {.policy = "pytorch:expandable_segments:True", .limit_bytes = 1000 * MT_MIB}},
    {.options = {.policy = "pytorch:expandable_segments:True", .limit_bytes = 200 * MT_MIB}},
    {.options = {.policy = "bfc", .limit_bytes = 200 * MT_MIB}},
    {.options = {"pytorch:max_split_size_mb:64", .limit_bytes = 4800 * MT_MIB, .blind = true}},
    {.options = {"pytorch:max_split_size_mb:64", .limit_bytes = 4600 * MT_MIB, .blind = true}},
    {.options = {"pytorch:max_split_size_mb:64", .limit_bytes = 900 * MT_MIB, .blind = true}},
    {.options = {.policy = "recorded", .no_inferred_limit = true, .no_inferred_pools = true}},
    /* These share nothing, because garbage collection computes with the limit. */
    {.options = {"pytorch:garbage_collection_threshold:0.5", .limit_bytes = 8000 * MT_MIB}},
    {.options = {"pytorch:garbage_collection_threshold:0.5", .limit_bytes = 4800 * MT_MIB}},
};

enum {
    FOLLOWERS = 10,
    FOLLOWERS_IF_GC = 5, /* if garbage collection is an option of the run: without "pytorch" */
    EVENTS = 500,        /* of a random program */
    SLOTS = 24,          /* its blocks */
    PROGRAMS = 44,
    LIMITS = 11,
    MOST_JOBS = 72
};

/* What an observer saw. A follower and its leader have the same view. */
struct seen {
    uint64_t events, reserved, most;
    const struct mt_replay_view *first_view, *last_view; /* at events of memory */
};

/* How many replays followed another one at the first and at the last event of memory. */
struct followers {
    size_t first, last;
};

struct outcome {
    struct mt_replay_summary summary;
    struct seen seen;
};

static enum mt_status see(void *context, const struct mt_event *event,
                          const struct mt_replay_view *view)
{
    struct seen *seen = context;

    if (mt_event_is_memory(event)) {
        seen->first_view = seen->first_view ? seen->first_view : view;
        seen->last_view = view;
    }
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

static void run_one_by_one(struct mt_source *source, const struct job *jobs, size_t count,
                           struct outcome *outcomes)
{
    struct mt_error error;

    for (size_t i = 0; i < count; i++) {
        const struct mt_replay_observer observer = {&outcomes[i].seen, see, NULL};

        outcomes[i].seen.most = jobs[i].most_events;
        rewind_source(source);
        assert_int_equal(
            mt_replay_run(source, &jobs[i].options, &observer, &outcomes[i].summary, &error),
            MT_OK);
    }
}

static uint64_t run_together(struct mt_source *source, const struct job *jobs, size_t count,
                             struct outcome *outcomes)
{
    struct mt_replay_observer observers[MOST_JOBS];
    struct mt_replay_job together[MOST_JOBS];
    uint64_t events = 0;
    const struct mt_replay_listener listener = {&events, count_event};
    struct mt_error error;

    assert_true(count <= MOST_JOBS);
    for (size_t i = 0; i < count; i++) {
        outcomes[i].seen.most = jobs[i].most_events;
        observers[i] = (struct mt_replay_observer){&outcomes[i].seen, see, NULL};
        together[i] = (struct mt_replay_job){&jobs[i].options, &observers[i], &outcomes[i].summary};
    }
    rewind_source(source);
    assert_int_equal(mt_replay_run_together(source, together, count, &listener, &error), MT_OK);
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

static struct followers compare(struct mt_source *source, const struct job *jobs, size_t count,
                                bool two_threads)
{
    struct outcome *alone = calloc(count, sizeof *alone);
    struct outcome *together = calloc(count, sizeof *together);
    struct followers followers = {0, 0};

    assert_non_null(alone);
    assert_non_null(together);
    run_one_by_one(source, jobs, count, alone);
    assert_true(source->symbols_complete);
    source->symbols_complete = two_threads;
    uint64_t readings = source->readings;
    uint64_t events = run_together(source, jobs, count, together);
    source->symbols_complete = true;
    assert_int_equal(source->readings, readings + 1);
    assert_int_equal(events, alone[0].seen.events);
    for (size_t i = 0; i < count; i++) {
        assert_same(&alone[i].summary, &together[i].summary);
        assert_int_equal(alone[i].seen.events, together[i].seen.events);
        assert_int_equal(alone[i].seen.reserved, together[i].seen.reserved);
        assert_true(!jobs[i].most_events || together[i].seen.events == jobs[i].most_events);
        followers.first += i && together[i].seen.first_view == together[i - 1].seen.first_view;
        followers.last += i && together[i].seen.last_view == together[i - 1].seen.last_view;
    }
    free(alone);
    free(together);
    return followers;
}

static void compare_capture(struct mt_source *source, size_t followers)
{
    for (unsigned two_threads = 0; two_threads < 2; two_threads++) {
        struct followers found =
            compare(source, jobs_of_captures, MT_ARRAY_LEN(jobs_of_captures), two_threads);
        assert_int_equal(found.first, followers);
        rewind_source(source);
    }
}

static void compare_file(const char *folder, const char *name, size_t followers)
{
    struct mt_source *source = open_capture(folder, name);

    compare_capture(source, followers);
    mt_source_close(source);
}

TEST(side_by_side_is_one_by_one)
{
    compare_file("captures", "seq2seq.pickle.zst", FOLLOWERS);
    compare_file("captures", "churn_gc.pickle.zst", FOLLOWERS_IF_GC);
    compare_file("captures", "twogpu.pickle.zst", FOLLOWERS);
    compare_file("captures", "gpt_ring.pickle.zst", 0); /* begins with blocks of an initial state */
    compare_file("recorded", "twogpu.trace.zst", FOLLOWERS);
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
    compare_capture(&small.source, FOLLOWERS_IF_GC);
    mt_source_close(source);
    free(events);
}

static struct mt_event event(uint8_t kind, uint64_t slot, uint64_t size_bytes, uint32_t stream)
{
    struct mt_event event = {.kind = kind, .stream = stream, .heap = 1, .size_bytes = size_bytes};

    event.addr = kind == MT_EVENT_OOM ? 0 : UINT64_C(0x7f0000000000) + slot * MT_GIB;
    event.stack = event.name = MT_NO_ID;
    return event;
}

/* A block, which is live if it has a size. Its free may wait for a stream. */
struct slot {
    uint64_t size_bytes;
    uint32_t stream;
    bool waits, is_never_lost;
};

/* Frees the block, or allocates it again although its free was lost. Returns how many events that
 * takes. */
static size_t use_slot(struct dice *dice, struct slot *slots, uint64_t at, struct mt_event *events)
{
    struct slot *slot = &slots[at];
    size_t count = 0;

    if (!slot->size_bytes || (!slot->is_never_lost && dice_one_in(dice, 6))) {
        slot->stream = (uint32_t)dice_below(dice, 2);
        slot->waits = false;
        slot->size_bytes = dice_one_in(dice, 4)
                               ? 20 * MT_MIB + dice_below(dice, MT_MIB)
                               : 1 + dice_below(dice, MT_KIB << (6 + dice_below(dice, 11)));
        events[0] = event(MT_EVENT_ALLOC, at, slot->size_bytes, slot->stream);
        return 1;
    }
    if (!slot->waits) {
        events[count++] = event(MT_EVENT_FREE_REQUESTED, at, slot->size_bytes, slot->stream);
        slot->waits = dice_one_in(dice, 4);
        if (slot->waits)
            return count;
    }
    events[count++] = event(MT_EVENT_FREE_COMPLETED, at, slot->size_bytes, slot->stream);
    slot->size_bytes = 0;
    slot->waits = false;
    return count;
}

/* Up to three events of segments that no allocator has. */
static size_t add_segments(struct dice *dice, struct mt_event *events)
{
    static const uint8_t kinds[] = {MT_EVENT_SEGMENT_ALLOC, MT_EVENT_SEGMENT_FREE,
                                    MT_EVENT_SEGMENT_MAP, MT_EVENT_SEGMENT_UNMAP};
    size_t count = 1 + dice_below(dice, 3);

    for (size_t i = 0; i < count; i++) {
        uint8_t kind = kinds[dice_below(dice, MT_ARRAY_LEN(kinds))];
        uint64_t slot = 100 + dice_below(dice, 50);
        uint64_t size_bytes = 2 * MT_MIB * (1 + dice_below(dice, 11));

        events[i] = event(kind, slot, size_bytes, (uint32_t)dice_below(dice, 2));
    }
    return count;
}

static size_t make_program(struct dice *dice, struct mt_event *events)
{
    struct slot slots[SLOTS] = {{0}};
    const bool loses = dice_one_in(dice, 2); /* after a lost free, no replay follows another */
    size_t count = 0;

    for (size_t i = 0; i < SLOTS; i++)
        slots[i].is_never_lost = !loses;
    while (count + 3 < EVENTS) {
        uint64_t what = dice_below(dice, 40), size_bytes = MT_MIB * (1 + dice_below(dice, 60));

        if (what == 0)
            events[count++] = event(MT_EVENT_EMPTY_CACHE, 0, 0, 0);
        else if (what == 1)
            events[count++] = event(MT_EVENT_OOM, 0, size_bytes, (uint32_t)dice_below(dice, 2));
        else if (what < 5)
            count += add_segments(dice, events + count);
        else
            count += use_slot(dice, slots, dice_below(dice, SLOTS), events + count);
    }
    return count;
}

/* Sums of segments are multiples of 2 MiB: every second limit is one byte below such a sum. */
static size_t make_jobs(struct dice *dice, struct job *jobs)
{
    static const char *const policies[] = {
        "pytorch",
        "pytorch:expandable_segments:True",
        "pytorch:max_split_size_mb:21",
        "pytorch:expandable_segments:True,max_split_size_mb:24",
        "pytorch:max_split_size_mb:21,max_non_split_rounding_mb:22",
        "pytorch:garbage_collection_threshold:0.5"};
    size_t count = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++) {
        uint64_t limit = 320 * MT_MIB;

        jobs[count++] = (struct job){{policies[i], .limit_bytes = 4 * MT_GIB}, 0};
        for (size_t k = 1; k < LIMITS; k++) {
            limit -= 2 * MT_MIB * (1 + dice_below(dice, 14));
            jobs[count++] = (struct job){{policies[i], .limit_bytes = limit - k % 2}, 0};
        }
    }
    for (size_t i = 0; i < count; i++)
        jobs[i].options.no_inferred_pools = true;
    return count;
}

TEST(random_programs_side_by_side_are_one_by_one)
{
    static struct mt_event events[EVENTS];
    static struct job jobs[MOST_JOBS];
    size_t first = 0, last = 0;

    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        struct dice dice = {seed};
        struct memory_source source;

        printf("seed %u\n", (unsigned)seed);
        fflush(stdout);
        memory_source_init(&source, events, make_program(&dice, events), 16);
        memory_source_heap(&source, "pytorch");
        source.source.header.has_free_requested = true;
        struct followers followers =
            compare(&source.source, jobs, make_jobs(&dice, jobs), seed % 2 == 1);
        first += followers.first;
        last += followers.last;
        memory_source_release(&source);
    }
    printf("%u replays followed another one, %u at the end\n", (unsigned)first, (unsigned)last);
    assert_true(first > 20 * PROGRAMS && last > PROGRAMS);
}

/* A cached segment of 40 MiB, a request for 60 MiB, and then one for `last_mib`: limits below 100
 * MiB refuse the second one until the cache is empty. Returns how many of the limits of 4096, 90,
 * 80 and 50 MiB share a state at the end. */
static size_t followers_after_refusal(uint64_t last_mib)
{
    const struct job jobs[] = {{.options = {"pytorch:", .limit_bytes = 4 * MT_GIB}},
                               {.options = {"pytorch:", .limit_bytes = 90 * MT_MIB}},
                               {.options = {"pytorch:", .limit_bytes = 80 * MT_MIB}},
                               {.options = {"pytorch:", .limit_bytes = 50 * MT_MIB}}};
    struct mt_event events[] = {
        event(MT_EVENT_ALLOC, 0, 40 * MT_MIB, 0), event(MT_EVENT_FREE_COMPLETED, 0, 40 * MT_MIB, 0),
        event(MT_EVENT_ALLOC, 1, 60 * MT_MIB, 0), event(MT_EVENT_ALLOC, 2, last_mib * MT_MIB, 0)};
    struct memory_source source;

    memory_source_init(&source, events, MT_ARRAY_LEN(events), 2);
    memory_source_heap(&source, "pytorch");
    struct followers followers = compare(&source.source, jobs, MT_ARRAY_LEN(jobs), false);
    memory_source_release(&source);
    assert_int_equal(followers.first, 3);
    return followers.last;
}

TEST(equal_refusals_keep_a_state_shared)
{
    assert_int_equal(followers_after_refusal(20), 1); /* 90 and 80 MiB */
    assert_int_equal(followers_after_refusal(25), 0);
}

/* Each request finds only the cached memory of another stream, so all limits below 120 MiB refuse
 * it once. Returns how many of the limits of 4096, 90 and 80 MiB share a state at the end. */
static size_t followers_after_refusals(size_t refusals)
{
    const struct job jobs[] = {{.options = {"pytorch:", .limit_bytes = 4 * MT_GIB}},
                               {.options = {"pytorch:", .limit_bytes = 90 * MT_MIB}},
                               {.options = {"pytorch:", .limit_bytes = 80 * MT_MIB}}};
    struct mt_event events[100];
    struct memory_source source;
    size_t count = 0;

    for (uint32_t i = 0; i <= refusals; i++) {
        events[count++] = event(MT_EVENT_ALLOC, 0, 60 * MT_MIB, i % 2);
        events[count++] = event(MT_EVENT_FREE_COMPLETED, 0, 60 * MT_MIB, i % 2);
    }
    memory_source_init(&source, events, count, 2);
    memory_source_heap(&source, "pytorch");
    count = compare(&source.source, jobs, MT_ARRAY_LEN(jobs), false).last;
    memory_source_release(&source);
    return count;
}

/* Each return costs a copy of the state. */
TEST(a_follower_returns_32_times)
{
    assert_int_equal(followers_after_refusals(32), 1); /* 90 and 80 MiB */
    assert_int_equal(followers_after_refusals(33), 0);
}

/* Each thread goes on alone after the replay of the other one has ended. */
TEST(no_thread_waits_for_one_that_ended)
{
    struct mt_source *source = open_capture("captures", "churn_gc.pickle.zst");
    struct mt_replay_summary *summaries = calloc(2, sizeof *summaries);
    const struct mt_replay_options options = {.policy = "pytorch:"};
    struct mt_error error;

    assert_non_null(summaries);
    for (size_t i = 0; i < 2; i++) {
        struct seen seen[2] = {{.most = i ? 500 : 0}, {.most = i ? 0 : 500}};
        const struct mt_replay_observer observers[2] = {{&seen[0], see, NULL},
                                                        {&seen[1], see, NULL}};
        const struct mt_replay_job jobs[2] = {{&options, &observers[0], &summaries[0]},
                                              {&options, &observers[1], &summaries[1]}};

        rewind_source(source);
        source->symbols_complete = true;
        assert_int_equal(mt_replay_run_together(source, jobs, 2, NULL, &error), MT_OK);
        assert_int_equal(seen[1 - i].events, 500);
        assert_true(seen[i].events > 1000);
    }
    free(summaries);
    mt_source_close(source);
}

static uint64_t highest_reserved(struct mt_source *source, const struct mt_replay_options *options,
                                 struct mt_replay_summary *summary)
{
    uint64_t highest = 0;

    for (uint32_t i = 0; i < MT_BASE_ORDERS; i++) {
        struct mt_replay_options with = *options;
        struct mt_error error;

        mt_replay_use_order(&with, i, false);
        rewind_source(source);
        assert_int_equal(mt_replay_run(source, &with, NULL, summary, &error), MT_OK);
        highest = mt_max_u64(highest, summary->devices[0].counters.reserved.peak);
    }
    return highest;
}

/* One reading is for all orders; none if each free list has only one reservation, whose address
 * decides nothing. Before it, one finds the requests of the pool. */
TEST(orders_share_readings)
{
    static const struct {
        const char *policy;
        uint64_t readings;
    } rows[] = {{"pytorch:max_split_size_mb:64", 1},
                {"pytorch:expandable_segments:True", 0},
                {"pytorch:max_split_size_mb:64 --pool size>=2MiB", 2}};
    struct mt_source *source = open_capture("captures", "seq2seq.pickle.zst");
    struct mt_replay_summary *summary = calloc(1, sizeof *summary);

    assert_non_null(summary);
    for (size_t i = 0; i < MT_ARRAY_LEN(rows); i++) {
        const struct mt_replay_options options = {.policy = rows[i].policy};
        uint64_t highest = highest_reserved(source, &options, summary);
        struct mt_error error;

        rewind_source(source);
        assert_int_equal(mt_replay_run(source, &options, NULL, summary, &error), MT_OK);
        uint64_t readings = source->readings;
        assert_int_equal(mt_replay_orders(source, &options, MT_BASE_ORDERS, summary, &error),
                         MT_OK);
        assert_int_equal(source->readings, readings + rows[i].readings);
        assert_int_equal(summary->devices[0].order_count, MT_BASE_ORDERS);
        assert_int_equal(summary->devices[0].reserved_high_bytes, highest);
    }
    free(summary);
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
