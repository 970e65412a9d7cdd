/* Infers pools that the trace does not name. */
#include "cmocka_all.h"

#include <string.h>

#include "lost_pools.h"
#include "memory_source.h"
#include "pool_search.h"
#include "replay.h"
#include "util.h"

#define BASE  UINT64_C(0x7f0000000000)
#define AT(n) (BASE + (uint64_t)(n)*64 * MT_MIB)

static struct mt_replay_summary summary;

struct seen {
    size_t events, restarts;
    uint64_t last_reserved;
};

static enum mt_status see(void *context, const struct mt_event *event,
                          const struct mt_replay_view *view)
{
    struct seen *seen = context;

    (void)event;
    seen->events++;
    seen->last_reserved = view->counters->reserved.now;
    return MT_OK;
}

static enum mt_status forget(void *context)
{
    struct seen *seen = context;

    seen->restarts++;
    seen->events = 0;
    return MT_OK;
}

static struct mt_event event(uint8_t kind, uint64_t addr, uint64_t size_bytes)
{
    struct mt_event event = {0};

    event.kind = kind;
    event.addr = addr;
    event.size_bytes = size_bytes;
    event.stack = event.name = MT_NO_ID;
    return event;
}

/* Short words for long tables. */
#define TAKE(n, mib)        event(MT_EVENT_SEGMENT_ALLOC, AT(n), (mib)*MT_MIB)
#define GIVE(n, mib)        event(MT_EVENT_SEGMENT_FREE, AT(n), (mib)*MT_MIB)
#define MAP(addr, mib)      event(MT_EVENT_SEGMENT_MAP, addr, (mib)*MT_MIB)
#define UNMAP(addr, mib)    event(MT_EVENT_SEGMENT_UNMAP, addr, (mib)*MT_MIB)
#define ALLOC(addr, size)   event(MT_EVENT_ALLOC, addr, size)
#define RELEASE(addr, size) event(MT_EVENT_FREE_COMPLETED, addr, size)
#define FLUSH               event(MT_EVENT_EMPTY_CACHE, 0, 0)

static const struct mt_replay_result *run(struct mt_event *events, size_t count,
                                          const struct mt_replay_options *options,
                                          const struct mt_replay_observer *observer,
                                          const char *allocator_options)
{
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, count, 7);
    source.source.header.allocator_options = allocator_options;
    if (mt_replay_run(&source.source, options, observer, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    memory_source_release(&source);
    return &summary.devices[0];
}

static const struct mt_replay_result *verify(struct mt_event *events, size_t count)
{
    struct mt_replay_options options = {.policy = "pytorch", .verify = true};

    return run(events, count, &options, NULL, NULL);
}

static void expect_exact(const struct mt_replay_result *result, uint32_t inferred)
{
    if (!result->verify.exact)
        fail_msg("%s", result->verify.first_difference);
    assert_int_equal(result->pools_inferred, inferred);
}

/* Segment 0 has space, but the request goes to a new segment: another pool. Then the cache is
 * emptied, segment 1 is released and segment 0 stays in use: 1 was private. */
#define TWO_POOLS                                                                                  \
    TAKE(0, 2), ALLOC(AT(0), 1000), TAKE(1, 2), ALLOC(AT(1), 2000), ALLOC(AT(0) + 1024, 3000),     \
        RELEASE(AT(1), 2000), FLUSH, GIVE(1, 2), ALLOC(AT(0) + 4096, 512), RELEASE(AT(0), 1000),   \
        RELEASE(AT(0) + 1024, 3000), RELEASE(AT(0) + 4096, 512), FLUSH, GIVE(0, 2)

TEST(a_request_that_skips_free_space_is_in_another_pool)
{
    struct mt_event events[] = {TWO_POOLS};

    expect_exact(verify(events, MT_ARRAY_LEN(events)), 1);
    assert_int_equal(summary.devices[0].counters.reserved.peak, 4 * MT_MIB);
    assert_int_equal(summary.devices[0].counters.reserved.now, 0);
    assert_int_equal(summary.devices[0].counters.retries, 0);
}

TEST(an_exact_replay_is_not_changed)
{
    struct mt_event events[] = {
        TAKE(0, 2), ALLOC(AT(0), 1000), TAKE(1, 20), ALLOC(AT(1), 2 * MT_MIB), RELEASE(AT(0), 1000),
        FLUSH,      GIVE(0, 2)};

    expect_exact(verify(events, MT_ARRAY_LEN(events)), 0);
}

/* A pool also does not skip the best fit. */
TEST(best_fit_separates_pools)
{
    struct mt_event events[] = {TAKE(0, 20),
                                ALLOC(AT(0), 8 * MT_MIB),
                                ALLOC(AT(0) + 8 * MT_MIB, 9 * MT_MIB), /* 3 are left */
                                TAKE(1, 20),
                                ALLOC(AT(1), 9 * MT_MIB),
                                ALLOC(AT(1) + 9 * MT_MIB, 5 * MT_MIB), /* 6 are left */
                                RELEASE(AT(0), 8 * MT_MIB),
                                ALLOC(AT(0), 5 * MT_MIB), /* placed in 8, although 6 would fit */
                                RELEASE(AT(1), 9 * MT_MIB),
                                RELEASE(AT(1) + 9 * MT_MIB, 5 * MT_MIB),
                                FLUSH,
                                GIVE(1, 20),
                                ALLOC(AT(0) + 5 * MT_MIB, 2 * MT_MIB)};

    expect_exact(verify(events, MT_ARRAY_LEN(events)), 1);
}

/* Small and large segments of both pools; the two large ones are used in this order. Only the order
 * of their release distinguishes the pools: the small segments of a private pool come first. */
static void expect_reversed_guess(unsigned first, unsigned second)
{
    struct mt_event events[] = {TAKE(0, 2),
                                ALLOC(AT(0), 512),
                                TAKE(first, 20),
                                ALLOC(AT(first), 2 * MT_MIB),
                                TAKE(2, 2),
                                ALLOC(AT(2), 512),
                                TAKE(second, 20),
                                ALLOC(AT(second), 2 * MT_MIB),
                                RELEASE(AT(0), 512),
                                RELEASE(AT(1), 2 * MT_MIB),
                                RELEASE(AT(2), 512),
                                RELEASE(AT(3), 2 * MT_MIB),
                                FLUSH,
                                GIVE(0, 2),
                                GIVE(1, 20),
                                GIVE(3, 20),
                                GIVE(2, 2)};

    expect_exact(verify(events, MT_ARRAY_LEN(events)), 2);
}

TEST(the_order_of_release_reverses_a_guess)
{
    expect_reversed_guess(1, 3);
}

/* The order of use is misleading: one part is wrong. */
TEST(one_part_may_be_reversed)
{
    expect_reversed_guess(3, 1);
}

/* Segment 1 is entirely free when the cache is emptied, and stays. */
TEST(segments_that_a_flush_keeps_are_private)
{
    struct mt_event events[] = {TAKE(0, 2),
                                ALLOC(AT(0), 512),
                                TAKE(1, 20),
                                ALLOC(AT(1), 2 * MT_MIB),
                                RELEASE(AT(0), 512),
                                RELEASE(AT(1), 2 * MT_MIB),
                                FLUSH,
                                GIVE(0, 2),
                                TAKE(3, 2),
                                ALLOC(AT(3), 512),
                                ALLOC(AT(1), 2 * MT_MIB),
                                RELEASE(AT(1), 2 * MT_MIB),
                                FLUSH,
                                GIVE(1, 20)};
    struct memory_source source;
    struct mt_pool_evidence evidence;
    struct mt_lost_pools pools;

    memory_source_init(&source, events, MT_ARRAY_LEN(events), 64);
    assert_int_equal(mt_pool_evidence_collect(&source.source, &evidence, NULL), MT_OK);
    assert_int_equal(evidence.count, 3);
    assert_int_equal(evidence.kept.count, 1);
    mt_lost_pools_guess(&evidence, &pools);
    for (size_t i = 0; i < MT_ARRAY_LEN(events); i++)
        assert_int_equal(mt_lost_pools_of(&pools, &events[i]) != 0,
                         events[i].addr >= AT(1) && events[i].addr < AT(2));
    assert_int_equal(mt_lost_pools_count(&pools, 0), 1);
    mt_lost_pools_release(&pools);
    mt_pool_evidence_release(&evidence);
    memory_source_release(&source);
    expect_exact(verify(events, MT_ARRAY_LEN(events)), 1);
}

/* Two reservations of one stream and size class at the same time. */
TEST(two_reservations_are_two_pools)
{
    struct mt_replay_options options = {.policy = "pytorch", .verify = true};
    uint64_t here = BASE, there = BASE + 1024 * MT_GIB;
    struct mt_event events[] = {MAP(here, 2),
                                ALLOC(here, MT_MIB),
                                ALLOC(here + MT_MIB, MT_MIB), /* full */
                                MAP(there, 2),
                                ALLOC(there, MT_MIB),
                                ALLOC(there + MT_MIB, MT_MIB),
                                MAP(here + 2 * MT_MIB, 2),
                                ALLOC(here + 2 * MT_MIB, MT_MIB),
                                RELEASE(there, MT_MIB),
                                RELEASE(there + MT_MIB, MT_MIB),
                                FLUSH,
                                UNMAP(there, 2),
                                ALLOC(here + 3 * MT_MIB, MT_MIB)};
    const struct mt_replay_result *result =
        run(events, MT_ARRAY_LEN(events), &options, NULL, "expandable_segments:True");

    expect_exact(result, 1);
}

/* Pools that the trace names are not changed. The others follow from them. */
TEST(named_pools_are_kept)
{
    struct mt_event events[] = {TAKE(0, 2),
                                ALLOC(AT(0), 512),
                                TAKE(1, 2),
                                ALLOC(AT(1), 512),
                                ALLOC(AT(0) + 512, 512),
                                RELEASE(AT(1), 512),
                                FLUSH,
                                GIVE(1, 2),
                                ALLOC(AT(0) + 1024, 512)};

    events[0].pool = events[1].pool = events[4].pool = events[8].pool = 1;
    expect_exact(verify(events, MT_ARRAY_LEN(events)), 0); /* 1 is the default pool's */
    events[4].pool = 0;                                    /* one lost its name */
    expect_exact(verify(events, MT_ARRAY_LEN(events)), 1);
}

/* No pool explains an address outside of all segments. */
TEST(other_differences_remain)
{
    struct mt_event events[] = {TAKE(0, 2),        ALLOC(AT(0) + 512, 512), TAKE(1, 2),
                                ALLOC(AT(1), 512), RELEASE(AT(1), 512),     FLUSH,
                                GIVE(1, 2)};
    const struct mt_replay_result *result = verify(events, MT_ARRAY_LEN(events));

    assert_false(result->verify.exact);
    assert_int_equal(result->pools_inferred, 0);
    assert_int_equal(result->verify.first_difference_event, 1);
}

/* An observer sees one replay, or is notified to discard the first. */
TEST(observers_see_one_run)
{
    struct mt_event events[] = {TWO_POOLS};
    struct mt_replay_options options = {.policy = "pytorch"};
    struct seen seen = {0};
    struct mt_replay_observer observer = {&seen, see, forget};
    const struct mt_replay_result *result =
        run(events, MT_ARRAY_LEN(events), &options, &observer, NULL);

    assert_int_equal(result->pools_inferred, 1);
    assert_false(result->verify.wanted); /* was not requested */
    assert_int_equal(result->verify.allocations, 0);
    assert_int_equal(seen.restarts, 1);
    assert_int_equal(seen.events, MT_ARRAY_LEN(events));
    observer.restart = NULL;
    seen = (struct seen){0};
    result = run(events, MT_ARRAY_LEN(events), &options, &observer, NULL);
    assert_int_equal(result->pools_inferred, 0);
    assert_int_equal(seen.events, MT_ARRAY_LEN(events));
}

/* Damaged traces: the same base twice, sizes that wrap, blocks outside of segments. */
TEST(damaged_traces_are_handled)
{
    struct mt_event events[] = {TAKE(0, 2),
                                ALLOC(AT(0), 512),
                                TAKE(0, 2),
                                TAKE(1, 2),
                                ALLOC(AT(1), 512),
                                GIVE(0, 2),
                                GIVE(0, 2),
                                GIVE(0, 2),
                                event(MT_EVENT_SEGMENT_ALLOC, UINT64_MAX - 1, UINT64_MAX),
                                event(MT_EVENT_SEGMENT_MAP, UINT64_MAX, 1),
                                event(MT_EVENT_SEGMENT_MAP, 1, UINT64_MAX),
                                event(MT_EVENT_SEGMENT_UNMAP, 1, UINT64_MAX),
                                event(MT_EVENT_SEGMENT_MAP, 0, 0),
                                ALLOC(0, UINT64_MAX),
                                ALLOC(UINT64_MAX, 1),
                                event(MT_EVENT_OOM, 0, UINT64_MAX),
                                FLUSH,
                                GIVE(5, 2),
                                GIVE(1, 0)};

    assert_false(verify(events, MT_ARRAY_LEN(events))->verify.exact);
}

/* One flush releases all segments, each in a different order than a single pool has: the number of
 * pairs is the square of the number of segments. The search gives up before it has tried all. */
TEST(the_pairs_of_one_flush_are_bounded)
{
    enum { SEGMENTS = 1500, EVENTS = 2 * SEGMENTS + 1, MAX_PAIRS = 4096 + 4 * EVENTS + 1 };
    static struct mt_event events[EVENTS];
    struct mt_pool_evidence evidence = {0};
    struct memory_source source;
    struct mt_error error;

    for (size_t i = 0; i < SEGMENTS; i++) {
        events[i] = TAKE(i, 20);
        events[SEGMENTS + 1 + i] = GIVE(SEGMENTS - 1 - i, 20);
    }
    events[SEGMENTS] = FLUSH;
    memory_source_init(&source, events, EVENTS, 64);
    assert_int_equal(mt_pool_evidence_collect(&source.source, &evidence, &error), MT_OK);
    assert_true(evidence.gave_up);
    assert_in_range(evidence.unequal.count, 4096, MAX_PAIRS);
    mt_pool_evidence_release(&evidence);
    memory_source_release(&source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
