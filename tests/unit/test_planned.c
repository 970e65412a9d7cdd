/* The policy `planned` (docs/internals/policies.md): an example by hand, and which requests are
 * planned. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "memory_source.h"
#include "replay.h"
#include "util.h"

enum { MOST = 80 };

static struct mt_event events[MOST];
static size_t count;
static struct memory_source source;
static struct mt_replay_summary summary;
static struct mt_error error;

static void add(uint8_t kind, char name, uint64_t kib)
{
    struct mt_event *event = &events[count++];

    assert_true(count < MOST);
    *event = (struct mt_event){.kind = kind, .addr = (uint64_t)name << 32, .size_bytes = kib << 10};
    event->stack = event->name = MT_NO_ID;
    event->heap = 1;
}

static void take(char name, uint64_t kib)
{
    add(MT_EVENT_ALLOC, name, kib);
}

static void give(char name)
{
    add(MT_EVENT_FREE_REQUESTED, name, 0);
    add(MT_EVENT_FREE_COMPLETED, name, 0);
}

/* Ranges get their names after the source is open. */
static void step(bool begins)
{
    add(begins ? MT_EVENT_PHASE_PUSH : MT_EVENT_PHASE_POP, 0, 0);
}

static void begin(void)
{
    unsigned number = 0;
    char name[16];
    uint32_t id;

    memory_source_init(&source, events, count, 5);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind != MT_EVENT_PHASE_PUSH && events[i].kind != MT_EVENT_PHASE_POP)
            continue;
        snprintf(name, sizeof name, "step#%u", number);
        number += events[i].kind == MT_EVENT_PHASE_POP;
        assert_int_equal(mt_symbols_string(&source.source.symbols, name, strlen(name), &id), MT_OK);
        events[i].name = id;
    }
}

struct level {
    uint64_t reserved_kib, allocated_kib, device_allocs;
};

static struct level seen[MOST];

static enum mt_status watch(void *context, const struct mt_event *event,
                            const struct mt_replay_view *view)
{
    (void)context;
    if (event->seq < MOST)
        seen[event->seq] =
            (struct level){view->counters->reserved.now >> 10, view->counters->allocated.now >> 10,
                           view->counters->device_allocs};
    return MT_OK;
}

static enum mt_status run(const char *policy, uint64_t limit_bytes)
{
    const struct mt_replay_options options = {.policy = policy, .limit_bytes = limit_bytes};
    const struct mt_replay_observer observer = {NULL, watch, NULL};

    assert_int_equal(mt_source_rewind(&source.source, &error), MT_OK);
    return mt_replay_run(&source.source, &options, &observer, &summary, &error);
}

static const struct mt_replay_result *replay(const char *policy, uint64_t limit_bytes)
{
    if (run(policy, limit_bytes) != MT_OK)
        fail_msg("%s", error.text);
    return &summary.devices[0];
}

static void usual_step(bool is_first)
{
    step(true);
    if (!is_first)
        give('G');
    take('A', 1024);
    take('B', 3072);
    take('G', 512);
    give('A');
    take('C', 2048);
    give('B');
    give('C');
    step(false);
}

static void example(void)
{
    count = 0;
    usual_step(true);
    usual_step(false);
    step(true); /* another one */
    give('G');
    take('A', 1024);
    take('X', 700);
    take('C', 2048);
    give('C');
    give('X');
    give('A');
    step(false);
}

TEST(the_example_of_the_document)
{
    /* after every memory event except the completion of a free, in order */
    static const struct level wanted[] = {
        {5120, 1024, 1},  {5120, 4096, 1},  {7168, 4608, 2}, {7168, 3584, 2},
        {7168, 5632, 2},  {7168, 2560, 2},  {7168, 512, 2}, /* step 0 */
        {7168, 0, 2},     {7168, 1024, 2},  {7168, 4096, 2}, {7168, 4608, 2},
        {7168, 3584, 2},  {7168, 5632, 2},  {7168, 2560, 2}, {7168, 512, 2}, /* step 1 */
        {7168, 0, 2},     {7168, 1024, 2},  {7168, 1724, 2}, {27648, 3772, 3},
        {27648, 1724, 3}, {27648, 1024, 3}, {27648, 0, 3}, /* step 2 */
    };
    size_t i, at = 0;

    example();
    begin();
    const struct mt_replay_result *result = replay("planned", 0);
    for (i = 0; i < count; i++) {
        if (events[i].kind != MT_EVENT_ALLOC && events[i].kind != MT_EVENT_FREE_REQUESTED)
            continue;
        if (memcmp(&seen[i], &wanted[at], sizeof seen[i]) != 0)
            fail_msg("row %zu: %llu, %llu, %llu", at, (unsigned long long)seen[i].reserved_kib,
                     (unsigned long long)seen[i].allocated_kib,
                     (unsigned long long)seen[i].device_allocs);
        at++;
    }
    assert_int_equal(at, MT_ARRAY_LEN(wanted));
    assert_int_equal(result->plan.arena_bytes, 5120 << 10);
    assert_int_equal(result->plan.bound_bytes, 5120 << 10);
    assert_int_equal(result->plan.steps, 3);
    assert_int_equal(result->plan.equal_steps, 2);
    assert_int_equal(result->plan.requests, 11);
    assert_int_equal(result->plan.hits, 7);
    assert_int_equal(result->plan.misses, 1);
    assert_int_equal(result->counters.reserved.peak, 27648 << 10);
    assert_int_equal(result->counters.allocated.peak, 5632 << 10);
    assert_false(result->policy_exact);
    assert_string_equal(summary.policy, "planned");
    memory_source_release(&source);
}

/* Unplanned requests get what the arena leaves of a limit. If the arena is larger than the device,
 * all requests fail. */
TEST(a_limit_is_for_both)
{
    example();
    begin();
    assert_int_equal(replay("planned", 27648 << 10)->counters.ooms, 0);
    assert_int_equal(replay("planned", 27647 << 10)->counters.ooms, 1); /* C of the last step */
    assert_int_equal(replay("planned", 7167 << 10)->counters.ooms, 4);  /* G, G, X and C */
    assert_int_equal(replay("planned", 5119 << 10)->counters.ooms, 8);  /* all that is planned */
    memory_source_release(&source);
}

TEST(options_are_those_of_the_rest)
{
    example();
    begin();
    assert_int_equal(replay("planned:expandable_segments:True", 0)->counters.reserved.peak,
                     (5120 + 2048 + 20480) << 10);
    assert_string_equal(summary.policy, "planned:expandable_segments:True");
    assert_int_equal(run("planned:no_such_option:True", 0), MT_ERR_USAGE);
    assert_int_equal(run("planned --pool size>0", 0), MT_ERR_USAGE);
    memory_source_release(&source);
}

TEST(without_a_repeating_step_there_is_no_plan)
{
    unsigned i;

    count = 0;
    take('A', 1024);
    give('A');
    begin();
    assert_int_equal(run("planned", 0), MT_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "no steps that repeat"));
    memory_source_release(&source);
    for (count = 0, i = 0; i < 3; i++) {
        step(true);
        take('A', 1024 + i);
        give('A');
        step(false);
    }
    begin();
    assert_int_equal(run("planned", 0), MT_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "no two of 3 steps make the same requests"));
    memory_source_release(&source);
}

/* Blocks of private pools and of other streams are not in the arena. */
TEST(pools_and_side_streams_are_not_planned)
{
    unsigned i;
    uint32_t id;

    for (count = 0, i = 0; i < 2; i++) {
        step(true);
        take('A', 4096);
        take('B', 512);
        events[count - 1].stream = 1;
        take('C', 256);
        events[count - 1].pool = 1;
        give('A');
        give('B');
        give('C');
        step(false);
    }
    begin();
    assert_int_equal(mt_symbols_stream(&source.source.symbols, 0x77, &id), MT_OK);
    assert_int_equal(mt_symbols_pool(&source.source.symbols, 0, 1, &id), MT_OK);
    const struct mt_replay_result *result = replay("planned", 0);
    assert_int_equal(result->plan.arena_bytes, 4096 << 10);
    assert_int_equal(result->plan.hits, 2);
    assert_int_equal(result->counters.reserved.peak, (4096 + 2048 + 2048) << 10);
    memory_source_release(&source);
}

/* Steps have the same requests, but one frees later: A and B could share an address in the other
 * two steps, but must not. */
TEST(lifetimes_are_the_longest_of_all_equal_steps)
{
    unsigned i;

    for (count = 0, i = 0; i < 3; i++) {
        step(true);
        take('A', 4096);
        if (i != 1)
            give('A');
        take('B', 4096);
        if (i == 1)
            give('A');
        give('B');
        step(false);
    }
    begin();
    const struct mt_replay_result *result = replay("planned", 0);
    assert_int_equal(result->plan.equal_steps, 3);
    assert_int_equal(result->plan.arena_bytes, 8192 << 10);
    assert_int_equal(result->plan.hits, 6);
    assert_int_equal(result->plan.misses, 0);
    memory_source_release(&source);
}

/* A set-up step may request a block of the same size that is never freed. */
TEST(blocks_that_stay_are_not_planned)
{
    unsigned i;

    for (count = 0, i = 0; i < 3; i++) {
        step(true);
        take(i ? 'A' : 'S', 4096);
        take('B', 2048);
        if (!i)
            take('T', 1024);
        if (i)
            give('A');
        give('B');
        step(false);
    }
    begin();
    const struct mt_replay_result *result = replay("planned", 0);
    assert_int_equal(result->plan.equal_steps, 2);
    assert_int_equal(result->plan.hits, 5);
    assert_int_equal(result->plan.misses, 0);
    memory_source_release(&source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
