/* Pools that the run did not have: which requests they select, and the result. */
#include "cmocka_all.h"

#include <string.h>

#include "foresight.h"
#include "memory_source.h"
#include "replay.h"
#include "util.h"

static struct memory_source source;
static struct mt_replay_summary summary;
static struct mt_error error;

static uint32_t text_id(const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&source.source.symbols, text, strlen(text), &id), MT_OK);
    return id;
}

static uint32_t stack_id(uint32_t parent, const char *function, const char *file, uint32_t line)
{
    uint32_t frame, stack;

    assert_int_equal(
        mt_symbols_frame(&source.source.symbols, text_id(function), text_id(file), line, &frame),
        MT_OK);
    assert_int_equal(mt_symbols_stack(&source.source.symbols, parent, frame, &stack), MT_OK);
    return stack;
}

static struct mt_event event(uint8_t kind, uint64_t addr, uint64_t size_bytes)
{
    struct mt_event made = {.kind = kind, .addr = addr, .size_bytes = size_bytes};

    made.stack = made.name = MT_NO_ID;
    made.heap = 1;
    return made;
}

static void begin(struct mt_event *events, size_t count)
{
    memory_source_init(&source, events, count, 3);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
}

static bool means(const char *text, const struct mt_event *request, const char *phase)
{
    struct mt_request_facts facts = {request, phase, 0};
    struct mt_request_selector *selector;
    bool first, again;

    if (mt_request_selector_new(text, &selector, &error) != MT_OK)
        fail_msg("%s: %s", text, error.text);
    mt_request_selector_match(selector, &source.source.symbols, &facts, &first);
    mt_request_selector_match(selector, &source.source.symbols, &facts, &again);
    assert_int_equal(first, again); /* the stored answer equals a search */
    mt_request_selector_free(selector);
    return first;
}

TEST(sizes_are_compared_as_written)
{
    struct mt_event request = event(MT_EVENT_ALLOC, 4096, MT_MIB);

    begin(&request, 1);
    assert_true(means("size>=1MiB", &request, NULL));
    assert_true(means("size<=1MiB", &request, NULL));
    assert_true(means("size=1048576", &request, NULL));
    assert_true(means("size>1048575", &request, NULL));
    assert_true(means("size<1048577", &request, NULL));
    assert_false(means("size>1MiB", &request, NULL));
    assert_false(means("size<1MiB", &request, NULL));
    assert_false(means("size>=1048577", &request, NULL));
    assert_false(means("size<=1048575", &request, NULL));
    assert_false(means("size=1048577", &request, NULL));
    memory_source_release(&source);
}

TEST(a_site_is_any_frame)
{
    struct mt_event request = event(MT_EVENT_ALLOC, 4096, 100), sibling = request, bare = request;

    begin(&request, 1);
    uint32_t outer = stack_id(MT_NO_ID, "main", "run.py", 7);
    request.stack = stack_id(outer, "embedding", "/lib/functional.py", 25);
    sibling.stack = stack_id(outer, "relu", "/lib/functional.py", 0);
    assert_true(means("site=~embedding", &request, NULL));
    assert_true(means("site=~^embedding$", &request, NULL));
    assert_true(means("site=~functional\\.py:25$", &request, NULL));
    assert_true(means("site=~^(main|nobody)$", &request, NULL));
    assert_true(means("site=~^run.py:7$", &request, NULL));
    assert_false(means("site=~^bedding", &request, NULL));
    assert_false(means("site=~embedding.*functional", &request, NULL)); /* two texts */
    assert_false(means("site=~functional.py:", &sibling, NULL));        /* no line is known */
    assert_true(means("site=~functional.py", &sibling, NULL));
    assert_true(means("site=~main", &sibling, NULL));
    assert_false(means("site=~embedding", &sibling, NULL));
    assert_false(means("site=~.*", &bare, NULL)); /* without a stack there is none */
    memory_source_release(&source);
}

TEST(conditions_hold_together)
{
    struct mt_event request = event(MT_EVENT_ALLOC, 4096, 5000);

    begin(&request, 1);
    request.stack = stack_id(MT_NO_ID, "a,b", "f.py", 1);
    assert_true(means("site=~a,size>4000,size<6000,phase=~step#3/for", &request, "step#3/forward"));
    assert_false(means("site=~a,size>4000,size<5000", &request, NULL));
    assert_false(means("phase=~backward", &request, "step#3/forward"));
    assert_false(means("phase=~.*", &request, NULL));
    /* a comma belongs to the expression, unless a condition begins behind it */
    assert_true(means("site=~a,b", &request, NULL));
    assert_true(means("site=~^a{1,1},b$,size=5000", &request, NULL));
    memory_source_release(&source);
}

TEST(what_is_no_selector_is_refused)
{
    static const char *const wrong[] = {
        "",        "embedding",      "site=embedding",  "site=~",
        "site=~(", "size>=",         "size>=20bananas", "size<0",
        "size",    "size=1,,size=1", "pool=~x",         "size>18446744073709551615"};
    struct mt_request_selector *selector;

    for (size_t i = 0; i < MT_ARRAY_LEN(wrong); i++) {
        if (mt_request_selector_new(wrong[i], &selector, &error) != MT_ERR_USAGE)
            fail_msg("'%s' was taken", wrong[i]);
        assert_null(selector);
        assert_true(strlen(error.text) > 0);
    }
}

static enum mt_status run(const char *policy, uint64_t limit_bytes)
{
    const struct mt_replay_options options = {.policy = policy, .limit_bytes = limit_bytes};

    source.at = 0;
    return mt_replay_run(&source.source, &options, NULL, &summary, &error);
}

static const struct mt_replay_result *replay(const char *policy, uint64_t limit_bytes)
{
    if (run(policy, limit_bytes) != MT_OK)
        fail_msg("%s", error.text);
    return &summary.devices[0];
}

/* 3 MiB need a segment of 20 MiB; 1 MiB and 100 B share one of 2 MiB. In separate pools, each
 * request has its own segment. */
TEST(pools_do_not_share)
{
    struct mt_event events[] = {
        event(MT_EVENT_ALLOC, 0x1000, 3 * MT_MIB), event(MT_EVENT_ALLOC, 0x2000, 3 * MT_MIB),
        event(MT_EVENT_ALLOC, 0x3000, MT_MIB - 512), event(MT_EVENT_ALLOC, 0x4000, 100)};

    begin(events, MT_ARRAY_LEN(events));
    events[0].stack = stack_id(MT_NO_ID, "embedding", "f.py", 1);
    const struct mt_replay_result *result = replay("pytorch", 0);
    assert_int_equal(result->counters.reserved.peak, 22 * MT_MIB);
    assert_int_equal(result->pool_count, 0);
    result = replay("pytorch --pool site=~embedding", 0);
    assert_int_equal(result->counters.reserved.peak, 42 * MT_MIB);
    assert_int_equal(result->pool_count, 1);
    assert_int_equal(result->pools[0].requests, 1);
    assert_int_equal(result->pools[0].requested_bytes, 3 * MT_MIB);
    assert_string_equal(summary.policy, "pytorch --pool site=~embedding");
    result = replay("pytorch: --pool size=100 --pool size<3MiB", 0);
    assert_int_equal(result->counters.reserved.peak, 24 * MT_MIB);
    assert_int_equal(result->pools[0].requests, 1); /* the first matching pool */
    assert_int_equal(result->pools[1].requests, 1);
    assert_int_equal(result->pools[1].requested_bytes, MT_MIB - 512);
    result = replay("pytorch:expandable_segments=True --pool size=100", 0);
    assert_int_equal(result->counters.reserved.peak, 24 * MT_MIB);
    assert_string_equal(summary.policy, "pytorch:expandable_segments:True --pool size=100");
    memory_source_release(&source);
}

/* Requests of private pools, and blocks that existed before, stay where they are. */
TEST(only_requests_of_the_default_pool_move)
{
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_ALLOC, 0x100000000, 2 * MT_MIB),
                                event(MT_EVENT_ALLOC, 0x100000000, 77),
                                event(MT_EVENT_ALLOC, 0x3000, 100),
                                event(MT_EVENT_ALLOC, 0x4000, 100)};
    uint32_t pool;

    begin(events, MT_ARRAY_LEN(events));
    assert_int_equal(mt_symbols_pool(&source.source.symbols, 0, 1, &pool), MT_OK);
    events[0].flags = events[1].flags = MT_EVENT_INITIAL;
    events[3].pool = (uint16_t)pool;
    const struct mt_replay_result *result = replay("pytorch --pool size=100", 0);
    assert_int_equal(result->pools[0].requests, 1);
    assert_int_equal(result->pools[0].private_requests, 1);
    assert_int_equal(result->pools[0].private_requested_bytes, 100);
    assert_int_equal(result->counters.reserved.peak, 6 * MT_MIB);
    assert_int_equal(run("pytorch --pool size=77", 0), MT_ERR_USAGE);
    memory_source_release(&source);
}

TEST(empty_pools_are_refused)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 0x1000, 100)};

    begin(events, MT_ARRAY_LEN(events));
    assert_int_equal(run("pytorch --pool size>100", 0), MT_ERR_USAGE);
    assert_non_null(strstr(error.text, "'size>100': no request matches"));
    assert_int_equal(run("pytorch --pool size=100 --pool size>50", 0), MT_ERR_USAGE);
    assert_non_null(strstr(error.text, "'size>50' would be empty"));
    assert_int_equal(run("pytorch --pool ", 0), MT_ERR_USAGE);
    assert_int_equal(run("best-fit --pool size=100", 0), MT_ERR_USAGE);
    assert_int_equal(run("recorded --pool size=100", 0), MT_ERR_USAGE);
    memory_source_release(&source);
}

/* The phase of a request is that at the request, even if the allocator's events are recorded before
 * the phase begins. */
TEST(phases_are_those_at_the_request)
{
    struct mt_event events[] = {
        event(MT_EVENT_PHASE_PUSH, 0, 0), event(MT_EVENT_ALLOC, 0x1000, 100),
        event(MT_EVENT_PHASE_POP, 0, 0),  event(MT_EVENT_SEGMENT_ALLOC, 0x7f0000000000, 2 * MT_MIB),
        event(MT_EVENT_PHASE_PUSH, 0, 0), event(MT_EVENT_ALLOC, 0x2000, 200),
        event(MT_EVENT_PHASE_POP, 0, 0),  event(MT_EVENT_ALLOC, 0x3000, 400)};

    begin(events, MT_ARRAY_LEN(events));
    events[0].name = events[2].name = text_id("forward");
    events[4].name = events[6].name = text_id("backward");
    const struct mt_replay_result *result = replay("pytorch --pool phase=~^backward$", 0);
    assert_int_equal(result->pools[0].requests, 1);
    assert_int_equal(result->pools[0].requested_bytes, 200);
    result = replay("pytorch --pool phase=~.", 0);
    assert_int_equal(result->pools[0].requests, 2);
    memory_source_release(&source);
}

/* Like torch 2.11, measured on a real allocator: under a limit of 200 MiB with 120 MiB cached, a
 * request of 120 MiB in use_mem_pool() fails without a flush. Conversely, a request of the default
 * pool flushes in vain, because a pool in use keeps its segments. */
TEST(a_private_request_does_not_flush)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 0x1000, 120 * MT_MIB),
                                event(MT_EVENT_FREE_REQUESTED, 0x1000, 120 * MT_MIB),
                                event(MT_EVENT_FREE_COMPLETED, 0x1000, 120 * MT_MIB),
                                event(MT_EVENT_ALLOC, 0x2000, 121 * MT_MIB)};
    uint32_t pool;

    begin(events, MT_ARRAY_LEN(events));
    const struct mt_replay_result *result = replay("pytorch:", 200 * MT_MIB);
    assert_int_equal(result->counters.ooms, 0);
    assert_int_equal(result->counters.retries, 1);
    result = replay("pytorch: --pool size=121MiB", 200 * MT_MIB);
    assert_int_equal(result->counters.ooms, 1);
    assert_int_equal(result->counters.retries, 0);
    assert_int_equal(result->counters.device_frees, 0);
    result = replay("pytorch: --pool size=120MiB", 200 * MT_MIB);
    assert_int_equal(result->counters.ooms, 1);
    assert_int_equal(result->counters.retries, 1);
    assert_int_equal(result->counters.device_frees, 0);
    assert_int_equal(mt_symbols_pool(&source.source.symbols, 0, 1, &pool), MT_OK);
    events[3].pool = (uint16_t)pool;
    result = replay("pytorch:", 200 * MT_MIB);
    assert_int_equal(result->counters.ooms, 1);
    assert_int_equal(result->counters.retries, 0);
    memory_source_release(&source);
}

/* A pool is in use until the run ends, so emptying the cache does not release its segments. */
TEST(emptying_the_cache_leaves_pools)
{
    struct mt_event events[] = {
        event(MT_EVENT_ALLOC, 0x1000, 100), event(MT_EVENT_FREE_REQUESTED, 0x1000, 100),
        event(MT_EVENT_FREE_COMPLETED, 0x1000, 100), event(MT_EVENT_EMPTY_CACHE, 0, 0)};

    begin(events, MT_ARRAY_LEN(events));
    assert_int_equal(replay("pytorch", 0)->counters.reserved.now, 0);
    assert_int_equal(replay("pytorch --pool size=100", 0)->counters.reserved.now, 2 * MT_MIB);
    memory_source_release(&source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
