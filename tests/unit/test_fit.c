/* Smallest limits of small traces, for which they can be computed by hand. */
#include "cmocka_all.h"

#include <string.h>

#include "fit.h"
#include "memory_source.h"
#include "util.h"

#define BASE UINT64_C(0x7f0000000000)

static struct mt_fit_summary summary;

static struct mt_event event(uint8_t kind, uint64_t slot, uint64_t size_mib)
{
    struct mt_event event = {0};

    event.kind = kind;
    event.addr = BASE + slot * MT_GIB;
    event.size_bytes = size_mib * MT_MIB;
    event.stack = event.name = MT_NO_ID;
    return event;
}

static struct mt_event on_device(struct mt_event event, uint16_t device)
{
    event.device = device;
    return event;
}

static const struct mt_fit_result *fit_with(struct mt_event *events, size_t count,
                                            const struct mt_fit_options *options)
{
    struct memory_source source;
    struct mt_error error;

    mt_fit_release(&summary);
    memory_source_init(&source, events, count, 3);
    if (mt_fit_run(&source.source, options, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(source.source.integrity.events_read, count); /* all errors are known */
    memory_source_release(&source);
    return &summary.devices[0];
}

static const struct mt_fit_result *fit(struct mt_event *events, size_t count, const char *policy,
                                       uint64_t limit_bytes)
{
    const struct mt_fit_options options = {
        .policy = policy, .limit_bytes = limit_bytes, .orders = 1};

    return fit_with(events, count, &options);
}

/* PyTorch waits for all streams before it fails, so blocks that were freed while used on another
 * stream are free by then. */
TEST(waiting_frees_complete_before_a_failure)
{
    struct mt_event events[] = {
        event(MT_EVENT_ALLOC, 1, 30),        event(MT_EVENT_FREE_REQUESTED, 1, 30),
        event(MT_EVENT_ALLOC, 2, 24),        event(MT_EVENT_FREE_COMPLETED, 1, 30),
        event(MT_EVENT_ALLOC, 1, 6),         event(MT_EVENT_FREE_REQUESTED, 1, 6),
        event(MT_EVENT_FREE_COMPLETED, 1, 6)};
    const struct mt_fit_result *result = fit(events, 7, "pytorch:", 0);

    assert_true(result->fits);
    assert_int_equal(result->fit_bytes, 44 * MT_MIB); /* 24, and 20 for the segment of 6 */
    assert_int_equal(result->reserved_peak_bytes, 54 * MT_MIB);
}

TEST(live_blocks_have_to_fit)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 1, 30), event(MT_EVENT_ALLOC, 2, 24),
                                event(MT_EVENT_FREE_REQUESTED, 1, 30),
                                event(MT_EVENT_FREE_COMPLETED, 1, 30),
                                event(MT_EVENT_ALLOC, 3, 20)};
    const struct mt_fit_result *result = fit(events, 5, "pytorch:", 0);

    assert_true(result->fits);
    assert_int_equal(result->fit_bytes, 54 * MT_MIB);
    assert_int_equal(result->fails_at_bytes, 53 * MT_MIB);
    assert_int_equal(result->fit_reserved_bytes, 54 * MT_MIB);
    assert_int_equal(result->smaller_fit_bytes, 0);
    assert_int_equal(result->larger_fail_bytes, 0);
    assert_false(mt_fit_depends_on_memory(result));
    assert_true(result->first_failure.known);
    assert_int_equal(result->first_failure.event, 1);
    assert_int_equal(result->first_failure.size_bytes, 24 * MT_MIB);
    assert_int_equal(result->first_failure.alive.allocated, 30 * MT_MIB);
    assert_null(result->first_failure.phase);
    assert_int_equal(result->first_failure.site_count, 1);
    assert_int_equal(result->first_failure.sites[0].blocks, 1);
    assert_int_equal(result->first_failure.sites[0].block_bytes, 30 * MT_MIB);
}

/* Without a limit, both segments stay cached. With one, the first is released. */
TEST(a_cache_need_not_fit)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 1, 30), event(MT_EVENT_FREE_REQUESTED, 1, 30),
                                event(MT_EVENT_FREE_COMPLETED, 1, 30),
                                event(MT_EVENT_ALLOC, 2, 40)};
    const struct mt_fit_result *result = fit(events, 4, "pytorch:", 39 * MT_MIB);

    assert_int_equal(result->reserved_peak_bytes, 70 * MT_MIB);
    assert_int_equal(result->fit_bytes, 40 * MT_MIB);
    assert_false(result->limit_fits);
    assert_true(result->limit_failure.known);
    assert_int_equal(result->limit_failure.event, 3);
    result = fit(events, 4, "pytorch:", 40 * MT_MIB);
    assert_true(result->limit_fits);
    assert_false(result->limit_failure.known);
}

/* Requests that failed in the run do not have to fit, but they show that the program depends on
 * available memory. */
TEST(recorded_refusals_need_not_fit)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 1, 30), event(MT_EVENT_OOM, 0, 4000),
                                event(MT_EVENT_ALLOC, 2, 30)};
    const struct mt_fit_result *result = fit(events, 3, "pytorch:", 0);

    assert_int_equal(result->fit_bytes, 60 * MT_MIB);
    assert_int_equal(result->recorded_ooms, 1);
    assert_true(mt_fit_depends_on_memory(result));
}

enum { LARGE = 2, SMALL = 1 }; /* addresses of two segments: the smaller one is lower */

static struct mt_event at(struct mt_event event, uint64_t offset_mib)
{
    event.addr += offset_mib * MT_MIB;
    return event;
}

/* The run used one of two free blocks of 30 MiB, the one in the smaller segment, because its
 * address was lower. So the larger segment became free as a whole and served 60 MiB. With other
 * addresses from the driver, it does not. An exact replay of the recorded addresses does not show
 * what the next run does. */
TEST(the_next_run_has_other_addresses)
{
    struct mt_event events[] = {
        event(MT_EVENT_SEGMENT_ALLOC, LARGE, 60),
        event(MT_EVENT_ALLOC, LARGE, 60),
        event(MT_EVENT_FREE_REQUESTED, LARGE, 60),
        event(MT_EVENT_FREE_COMPLETED, LARGE, 60),
        event(MT_EVENT_ALLOC, LARGE, 30),
        at(event(MT_EVENT_ALLOC, LARGE, 30), 30),
        event(MT_EVENT_SEGMENT_ALLOC, SMALL, 30),
        event(MT_EVENT_ALLOC, SMALL, 30),
        at(event(MT_EVENT_FREE_REQUESTED, LARGE, 30), 30),
        at(event(MT_EVENT_FREE_COMPLETED, LARGE, 30), 30),
        event(MT_EVENT_FREE_REQUESTED, SMALL, 30),
        event(MT_EVENT_FREE_COMPLETED, SMALL, 30),
        event(MT_EVENT_ALLOC, SMALL, 30),
        event(MT_EVENT_FREE_REQUESTED, LARGE, 30),
        event(MT_EVENT_FREE_COMPLETED, LARGE, 30),
        event(MT_EVENT_ALLOC, LARGE, 60),
    };
    const struct mt_fit_options options = {.policy = "pytorch", .orders = 4};
    const struct mt_fit_result *result = fit_with(events, MT_ARRAY_LEN(events), &options);

    assert_int_equal(result->fit_bytes, 90 * MT_MIB);
    assert_int_equal(result->low_bytes, 90 * MT_MIB);
    assert_int_equal(result->high_bytes, 120 * MT_MIB);
}

TEST(devices_are_searched_one_by_one)
{
    struct mt_event events[] = {
        event(MT_EVENT_ALLOC, 1, 30), on_device(event(MT_EVENT_ALLOC, 2, 100), 1),
        event(MT_EVENT_ALLOC, 3, 40), on_device(event(MT_EVENT_ALLOC, 4, 200), 1)};
    const struct mt_fit_result *result = fit(events, 4, "pytorch:", 100 * MT_MIB);

    assert_int_equal(summary.device_count, 2);
    assert_int_equal(result[0].fit_bytes, 70 * MT_MIB);
    assert_int_equal(result[0].first_failure.event, 2);
    assert_true(result[0].limit_fits);
    assert_int_equal(result[1].device, 1);
    assert_int_equal(result[1].fit_bytes, 300 * MT_MIB);
    assert_int_equal(result[1].first_failure.event, 3);
    assert_false(result[1].limit_fits);
}

TEST(a_trace_that_no_limit_serves_is_reported)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 1, 30), event(MT_EVENT_ALLOC, 2, 1)};

    events[1].size_bytes = UINT64_MAX - 5;
    const struct mt_fit_result *result = fit(events, 2, "pytorch:", 0);
    assert_false(result->fits);
    assert_int_equal(result->fit_bytes, 0);
    assert_int_equal(result->first_failure.event, 1);
}

/* The request that ended the run has to fit, unless no device can serve it. */
TEST(an_impossible_request_need_not_fit)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 1, 30), event(MT_EVENT_OOM, 0, 200)};
    const struct mt_fit_result *result = fit(events, 2, "pytorch:", 0);

    assert_int_equal(result->fit_bytes, 230 * MT_MIB);
    events[1].size_bytes = UINT64_C(1) << 40;
    result = fit(events, 2, "pytorch:", 0);
    assert_int_equal(result->fit_bytes, 30 * MT_MIB);
    assert_int_equal(result->impossible_bytes, UINT64_C(1) << 40);
    assert_int_equal(result->died_at, MT_FIT_NOT_DIED);
}

/* The initial state exists under every limit. */
TEST(the_state_at_the_start_has_to_fit)
{
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_ALLOC, 1, 64), event(MT_EVENT_ALLOC, 1, 10),
                                event(MT_EVENT_ALLOC, 2, 20)};

    events[0].flags = events[1].flags = MT_EVENT_INITIAL;
    events[1].aux_bytes = 10 * MT_MIB;
    const struct mt_fit_result *result = fit(events, 3, "pytorch:", 0);
    assert_true(result->starts_in_middle);
    assert_int_equal(result->fit_bytes, 64 * MT_MIB);
    assert_false(result->first_failure.known);
}

/* PyTorch returns segments without blocks before it fails; a larger limit leaves them reserved. */
TEST(cached_segments_of_the_start_need_not_fit)
{
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_ALLOC, 1, 64),
                                event(MT_EVENT_SEGMENT_ALLOC, 100, 200),
                                event(MT_EVENT_ALLOC, 1, 64), event(MT_EVENT_ALLOC, 300, 20)};

    events[0].flags = events[1].flags = events[2].flags = MT_EVENT_INITIAL;
    events[2].aux_bytes = 64 * MT_MIB;
    const struct mt_fit_result *result = fit(events, 4, "pytorch:", 100 * MT_MIB);
    assert_int_equal(result->reserved_peak_bytes, 264 * MT_MIB);
    assert_int_equal(result->fit_bytes, 84 * MT_MIB);
    assert_int_equal(result->fit_reserved_bytes, 84 * MT_MIB);
    assert_int_equal(result->initial_bytes, 64 * MT_MIB);
    assert_true(result->limit_fits);
    assert_int_equal(result->first_failure.event, 3);
}

TEST(an_empty_trace_needs_nothing)
{
    struct mt_event events[] = {event(MT_EVENT_FREE_REQUESTED, 1, 30)};
    const struct mt_fit_result *result = fit(events, 1, "pytorch:", 1);

    assert_true(result->fits);
    assert_true(result->limit_fits);
    assert_int_equal(result->fit_bytes, 0);
    assert_int_equal(result->limits_tried, 0);
    fit(events, 0, "pytorch:", 0);
    assert_int_equal(summary.device_count, 0);
}

TEST(only_simulated_policies_have_a_limit)
{
    static const char *const policies[] = {"recorded", "recorded:x", "nosuch", "pytorch:nosuch:1"};
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 1, 30)};
    struct memory_source source;
    struct mt_error error;

    for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++) {
        const struct mt_fit_options options = {.policy = policies[i], .orders = 1};
        mt_fit_release(&summary);
        memory_source_init(&source, events, 1, 3);
        assert_int_equal(mt_fit_run(&source.source, &options, &summary, &error), MT_ERR_USAGE);
        memory_source_release(&source);
    }
}

static enum mt_status stop_at_second(void *context, const struct mt_event *event,
                                     const struct mt_replay_view *view)
{
    (void)view;
    ++*(int *)context;
    return event->seq == 1 ? MT_END : MT_OK;
}

TEST(an_observer_can_stop_a_replay)
{
    static struct mt_replay_summary replayed;
    const struct mt_replay_options options = {.policy = "pytorch:"};
    struct mt_event events[] = {event(MT_EVENT_ALLOC, 1, 30), event(MT_EVENT_ALLOC, 2, 30),
                                event(MT_EVENT_ALLOC, 3, 30)};
    int seen = 0;
    const struct mt_replay_observer observer = {&seen, stop_at_second, NULL};
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, 3, 3);
    assert_int_equal(mt_replay_run(&source.source, &options, &observer, &replayed, &error), MT_OK);
    memory_source_release(&source);
    assert_int_equal(seen, 2);
    assert_int_equal(replayed.devices[0].counters.reserved.now, 60 * MT_MIB);
}

int main(void)
{
    int failures = run_tests_of_file(NULL, NULL);

    mt_fit_release(&summary);
    return failures;
}
