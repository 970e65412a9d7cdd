/* The replay engine on small traces: groups, lost events, limits, ends. */
#include "cmocka_all.h"

#include <string.h>

#include "memory_source.h"
#include "replay.h"
#include "util.h"

#define BASE UINT64_C(0x7f0000000000)

static struct mt_replay_summary summary;

static struct mt_event event(uint8_t kind, uint64_t addr, uint64_t size_bytes)
{
    struct mt_event event = {0};

    event.kind = kind;
    event.addr = addr;
    event.size_bytes = size_bytes;
    event.stack = event.name = MT_NO_ID;
    event.heap = 1;
    return event;
}

static const struct mt_replay_result *replay(struct mt_event *events, size_t count, size_t batch,
                                             const struct mt_replay_options *options)
{
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, count, batch);
    source.source.header.has_free_requested = source.source.header.has_segments = true;
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    if (mt_replay_run(&source.source, options, NULL, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    memory_source_release(&source);
    return &summary.devices[0];
}

/* A device of 50 MiB; 20 MiB are allocated, 20 are cached, 22 more are requested. */
static const struct mt_replay_result *exceed_device(const char *policy, uint64_t limit_bytes)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, BASE, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 20 * MT_MIB),
                                event(MT_EVENT_FREE_REQUESTED, BASE, 20 * MT_MIB),
                                event(MT_EVENT_FREE_COMPLETED, BASE, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE, 22 * MT_MIB)};
    const struct mt_replay_options options = {.policy = policy, .limit_bytes = limit_bytes};
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, MT_ARRAY_LEN(events), 1);
    assert_int_equal(mt_symbols_device(&source.source.symbols, 0, MT_NO_ID, 50 * MT_MIB), MT_OK);
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    return &summary.devices[0];
}

/* PyTorch rejects the request without a flush, unless a limit refuses it. */
TEST(a_request_beyond_the_device_is_rejected)
{
    static const char throws[] = "pytorch:throw_on_cudamalloc_oom:True";

    assert_int_equal(exceed_device(throws, 0)->failed_requests, 1);
    assert_int_equal(summary.devices[0].counters.ooms, 0);
    assert_int_equal(summary.devices[0].counters.retries, 0);
    assert_int_equal(summary.devices[0].counters.device_frees, 0);
    assert_int_equal(exceed_device("pytorch:", 0)->failed_requests, 0);
    assert_int_equal(exceed_device(throws, 45 * MT_MIB)->failed_requests, 0);
    assert_int_equal(summary.devices[0].counters.device_frees, 1);
}

/* Batches may split a group from its trigger; the replay still sees one group. */
TEST(groups_reach_across_batches)
{
    struct mt_replay_options options = {.policy = "pytorch", .verify = true};

    for (size_t batch = 1; batch < 8; batch++) {
        struct mt_event events[] = {
            event(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MT_MIB),
            event(MT_EVENT_PHASE_PUSH, 0, 0),
            event(MT_EVENT_MARK, 0, 0),
            event(MT_EVENT_ALLOC, BASE, 2 * MT_MIB),
            event(MT_EVENT_FREE_REQUESTED, BASE, 2 * MT_MIB),
            event(MT_EVENT_FREE_COMPLETED, BASE, 2 * MT_MIB),
            event(MT_EVENT_EMPTY_CACHE, 0, 0),
            event(MT_EVENT_SEGMENT_FREE, BASE, 20 * MT_MIB),
            event(MT_EVENT_MARK, 0, 0),
            event(MT_EVENT_SEGMENT_ALLOC, BASE + 64 * MT_MIB, 2 * MT_MIB),
            event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 100),
        };
        const struct mt_replay_result *result =
            replay(events, MT_ARRAY_LEN(events), batch, &options);
        if (!result->verify.exact)
            fail_msg("batches of %zu: %s", batch, result->verify.first_difference);
        assert_int_equal(result->counters.retries, 0);
        assert_int_equal(result->counters.reserved.peak, 20 * MT_MIB);
        assert_int_equal(result->counters.reserved.now, 2 * MT_MIB);
    }
}

TEST(differences_are_named)
{
    struct mt_replay_options options = {.policy = "pytorch", .verify = true};
    struct mt_event moved[] = {event(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MT_MIB),
                               event(MT_EVENT_ALLOC, BASE + 512, 2 * MT_MIB)};
    struct mt_event missing[] = {event(MT_EVENT_ALLOC, BASE, 2 * MT_MIB)};
    struct mt_event wrong_size[] = {event(MT_EVENT_SEGMENT_ALLOC, BASE, 22 * MT_MIB),
                                    event(MT_EVENT_ALLOC, BASE, 2 * MT_MIB)};
    const struct mt_replay_result *result = replay(moved, 2, 8, &options);

    assert_false(result->verify.exact);
    assert_int_equal(result->verify.addresses_exact, 0);
    assert_non_null(strstr(result->verify.first_difference, "event 1: alloc of 2.00 MiB"));
    result = replay(missing, 1, 8, &options);
    assert_false(result->verify.exact);
    assert_int_equal(result->verify.unexpected_segment_events, 1);
    assert_non_null(strstr(result->verify.first_difference, "recorded nothing"));
    result = replay(wrong_size, 2, 8, &options);
    assert_int_equal(result->verify.segment_events_exact, 0);
    assert_non_null(strstr(result->verify.first_difference, "segment_alloc of 22.0 MiB"));
}

TEST(lost_events_are_counted_not_fatal)
{
    static const char *const policies[] = {"pytorch", "recorded"};
    struct mt_replay_options options = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++) {
        struct mt_event events[] = {
            event(MT_EVENT_FREE_REQUESTED, BASE, 10), /* never allocated */
            event(MT_EVENT_FREE_COMPLETED, BASE, 10),
            event(MT_EVENT_ALLOC, BASE, 1000),
            event(MT_EVENT_FREE_COMPLETED, BASE, 1000), /* without a request */
            event(MT_EVENT_ALLOC, BASE, 1000),
            event(MT_EVENT_ALLOC, BASE, 3000), /* its free was lost */
            event(MT_EVENT_FREE_REQUESTED, BASE, 3000),
            event(MT_EVENT_FREE_REQUESTED, BASE, 3000), /* twice */
            event(MT_EVENT_FREE_COMPLETED, BASE, 3000),
            event(MT_EVENT_SEGMENT_FREE, BASE, 2 * MT_MIB), /* unknown segment */
            event(MT_EVENT_SEGMENT_UNMAP, UINT64_MAX - 5, UINT64_MAX),
        };
        options.policy = policies[i];
        const struct mt_replay_result *result = replay(events, MT_ARRAY_LEN(events), 64, &options);
        assert_int_equal(result->orphan_frees, 3);
        assert_int_equal(result->counters.allocations, 3);
        assert_int_equal(result->counters.frees, 3);
        assert_int_equal(result->counters.allocated.now, 0);
        assert_int_equal(result->counters.active.now, 0);
        assert_int_equal(result->counters.requested.now, 0);
    }
}

TEST(absurd_sizes_run_out_of_memory)
{
    static const char *const policies[] = {"pytorch", "recorded",
                                           "pytorch:expandable_segments:True"};
    struct mt_replay_options options = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++) {
        struct mt_event events[] = {
            event(MT_EVENT_ALLOC, BASE, UINT64_MAX),
            event(MT_EVENT_ALLOC, UINT64_MAX, UINT64_MAX / 2 + 2),
            event(MT_EVENT_SEGMENT_ALLOC, UINT64_MAX - 1, UINT64_MAX),
            event(MT_EVENT_SEGMENT_MAP, 1, UINT64_MAX),
            event(MT_EVENT_OOM, 0, UINT64_MAX),
            event(MT_EVENT_ALLOC, BASE, 4096),
        };
        options.policy = policies[i];
        const struct mt_replay_result *result = replay(events, MT_ARRAY_LEN(events), 64, &options);
        assert_int_equal(result->failed_requests, 2);
        assert_int_equal(result->counters.allocated.now, 4096);
    }
}

TEST(limits_are_kept_to_the_byte)
{
    struct mt_replay_options options = {.policy = "pytorch:", .limit_bytes = 22 * MT_MIB};
    struct mt_event events[] = {event(MT_EVENT_ALLOC, BASE, 4 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 512),
                                event(MT_EVENT_ALLOC, BASE + 96 * MT_MIB, 30 * MT_MIB)};
    const struct mt_replay_result *result = replay(events, 3, 64, &options);

    assert_int_equal(result->counters.reserved.peak, 22 * MT_MIB); /* reaching it is allowed */
    assert_int_equal(result->failed_requests, 1);
    assert_int_equal(result->counters.ooms, 1);
    assert_int_equal(result->counters.retries, 1);
    options.limit_bytes--;
    result = replay(events, 3, 64, &options);
    assert_int_equal(result->failed_requests, 2);
}

/* The replay abandons a device that needs more than its limit. Others continue. */
TEST(devices_above_their_limit_are_abandoned)
{
    uint64_t most[MT_MAX_DEVICES] = {20 * MT_MIB, 40 * MT_MIB};
    struct mt_replay_options options = {.policy = "pytorch:", .most_reserved_bytes = most};
    struct mt_event events[] = {event(MT_EVENT_ALLOC, BASE, 4 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE, 4 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 30 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE + 128 * MT_MIB, 512),
                                event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 512)};

    events[1].device = events[4].device = 1;
    (void)replay(events, 5, 64, &options);
    assert_true(summary.devices[0].given_up);
    assert_int_equal(summary.devices[0].counters.reserved.peak, 50 * MT_MIB);
    assert_int_equal(summary.devices[0].counters.allocations, 2); /* not the third */
    assert_false(summary.devices[1].given_up);
    assert_int_equal(summary.devices[1].counters.allocations, 2);
    most[0] = 50 * MT_MIB; /* the allowed maximum */
    (void)replay(events, 5, 64, &options);
    assert_true(summary.devices[0].given_up); /* the small segment is too much */
    assert_int_equal(summary.devices[0].counters.reserved.peak, 52 * MT_MIB);
    most[0] = UINT64_MAX;
    (void)replay(events, 5, 64, &options);
    assert_false(summary.devices[0].given_up);
    options.limit_bytes = 40 * MT_MIB; /* a failed request also settles it */
    (void)replay(events, 5, 64, &options);
    assert_true(summary.devices[0].given_up);
    assert_int_equal(summary.devices[0].failed_requests, 1);
    assert_int_equal(summary.devices[0].counters.allocations, 1);
}

/* An observer sees the run under the limit that its events imply, from its start. It discards what
 * it saw before. */
struct observed {
    size_t events, restarts;
    uint64_t reserved_bytes;
};

static enum mt_status observe(void *context, const struct mt_event *at,
                              const struct mt_replay_view *view)
{
    struct observed *observed = context;

    (void)at;
    observed->events++;
    observed->reserved_bytes = view->counters->reserved.now;
    return MT_OK;
}

static enum mt_status forget(void *context)
{
    struct observed *observed = context;

    observed->events = 0;
    observed->restarts++;
    return MT_OK;
}

static void replay_observed(struct mt_event *events, size_t count, struct observed *observed)
{
    const struct mt_replay_options options = {.policy = "pytorch", .verify = true};
    const struct mt_replay_observer observer = {observed, observe, forget};
    struct memory_source source;
    struct mt_error error;

    memset(observed, 0, sizeof *observed);
    memory_source_init(&source, events, count, 3);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    assert_int_equal(mt_replay_run(&source.source, &options, &observer, &summary, &error), MT_OK);
    memory_source_release(&source);
}

TEST(observers_see_one_run)
{
    struct mt_event retry[] = {event(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MT_MIB),
                               event(MT_EVENT_ALLOC, BASE, 4 * MT_MIB),
                               event(MT_EVENT_FREE_REQUESTED, BASE, 4 * MT_MIB),
                               event(MT_EVENT_FREE_COMPLETED, BASE, 4 * MT_MIB),
                               event(MT_EVENT_SEGMENT_FREE, BASE, 20 * MT_MIB),
                               event(MT_EVENT_SEGMENT_ALLOC, BASE + 64 * MT_MIB, 30 * MT_MIB),
                               event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 30 * MT_MIB),
                               event(MT_EVENT_MARK, 0, 0)};
    struct observed observed;

    replay_observed(retry, 4, &observed);
    assert_int_equal(observed.restarts, 0);
    assert_int_equal(observed.events, 4);
    replay_observed(retry, MT_ARRAY_LEN(retry), &observed);
    assert_int_equal(observed.restarts, 1);
    assert_int_equal(observed.events, MT_ARRAY_LEN(retry));
    assert_true(summary.devices[0].verify.exact);
    assert_true(summary.devices[0].limit_inferred);
    assert_int_equal(summary.devices[0].limit_low_bytes, 30 * MT_MIB);
    assert_int_equal(summary.devices[0].limit_high_bytes, 50 * MT_MIB);
    assert_int_equal(summary.devices[0].counters.retries, 1);
}

TEST(ooms_bound_the_limit)
{
    struct mt_replay_options options = {.policy = "pytorch", .verify = true};
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE, 4 * MT_MIB),
                                event(MT_EVENT_OOM, 0, 30 * MT_MIB)};
    const struct mt_replay_result *result = replay(events, 3, 64, &options);

    assert_true(result->verify.exact);
    assert_true(result->limit_inferred);
    assert_int_equal(result->limit_low_bytes, 20 * MT_MIB);
    assert_int_equal(result->limit_high_bytes, 50 * MT_MIB);
    options.policy = "pytorch:"; /* other options: the request is not made again */
    options.verify = false;
    result = replay(events, 3, 64, &options);
    assert_int_equal(result->ooms_not_asked, 1);
    assert_int_equal(result->counters.ooms, 0);
    assert_int_equal(result->limit_bytes, 0);
}

TEST(traces_without_completions_complete_at_the_request)
{
    struct mt_event events[] = {event(MT_EVENT_ALLOC, BASE, 4096),
                                event(MT_EVENT_FREE_REQUESTED, BASE, 4096)};
    struct mt_replay_options options = {.policy = "pytorch:"};
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, 2, 64);
    source.source.header.has_free_completed = false;
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    assert_int_equal(summary.devices[0].counters.active.now, 0);
    assert_int_equal(summary.devices[0].counters.active.peak, 4096);
}

/* The run released a segment, under a limit, while a free waited, and completed nothing: PyTorch's
 * garbage collection does that. The block is still active at the end. */
TEST(a_replay_of_the_run_completes_only_what_the_run_did)
{
    struct mt_replay_options options = {.verify = true, .limit_bytes = 70 * MT_MIB};
    struct mt_event events[] = {
        event(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MT_MIB),
        event(MT_EVENT_ALLOC, BASE, 8 * MT_MIB),
        event(MT_EVENT_ALLOC, BASE + 8 * MT_MIB, 8 * MT_MIB),
        event(MT_EVENT_SEGMENT_ALLOC, BASE + 64 * MT_MIB, 32 * MT_MIB),
        event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 32 * MT_MIB),
        event(MT_EVENT_FREE_REQUESTED, BASE + 64 * MT_MIB, 32 * MT_MIB),
        event(MT_EVENT_FREE_COMPLETED, BASE + 64 * MT_MIB, 32 * MT_MIB),
        event(MT_EVENT_FREE_REQUESTED, BASE, 8 * MT_MIB),
        event(MT_EVENT_SEGMENT_FREE, BASE + 64 * MT_MIB, 32 * MT_MIB),
        event(MT_EVENT_SEGMENT_ALLOC, BASE + 128 * MT_MIB, 40 * MT_MIB),
        event(MT_EVENT_ALLOC, BASE + 128 * MT_MIB, 40 * MT_MIB),
    };
    const struct mt_replay_result *result = replay(events, MT_ARRAY_LEN(events), 64, &options);

    if (!result->verify.exact)
        fail_msg("%s", result->verify.first_difference);
    assert_int_equal(result->counters.active.now, 56 * MT_MIB);
    options.verify = false; /* a question about that limit: a flush waits for the streams */
    result = replay(events, MT_ARRAY_LEN(events), 64, &options);
    assert_int_equal(result->counters.active.now, 48 * MT_MIB);
}

TEST(completed_frees_need_a_block_that_waits)
{
    struct mt_replay_options options = {.policy = "recorded", .verify = true};
    struct mt_event events[] = {
        event(MT_EVENT_SEGMENT_ALLOC, BASE, 2 * MT_MIB),
        event(MT_EVENT_ALLOC, BASE, 512),
        event(MT_EVENT_FREE_REQUESTED, BASE, 512),
        event(MT_EVENT_FREE_COMPLETED, BASE, 512),
        event(MT_EVENT_ALLOC, BASE, 512),
        event(MT_EVENT_FREE_COMPLETED, BASE, 512),
        event(MT_EVENT_FREE_COMPLETED, BASE, 512),
        event(MT_EVENT_ALLOC, BASE, 512),
        event(MT_EVENT_ALLOC, BASE, 512),
    };

    const struct mt_replay_verify *verify = &replay(events, 4, 64, &options)->verify;
    assert_true(verify->exact);
    assert_int_equal(verify->covered, MT_COVERS_REQUESTED | MT_COVERS_ALLOCATED | MT_COVERS_ACTIVE |
                                          MT_COVERS_RESERVED);
    verify = &replay(events, 6, 64, &options)->verify;
    assert_true(!verify->exact && !verify->covered);
    assert_int_equal(verify->frees, 2);
    assert_int_equal(verify->frees_exact, 1);
    assert_string_equal(verify->first_difference,
                        "event 5: free_completed of 0x7f0000000000 recorded, but in the replay its "
                        "free was not requested");
    verify = &replay(events, MT_ARRAY_LEN(events), 64, &options)->verify;
    assert_int_equal(verify->frees, 4); /* and the one that the last alloc shows to be missing */
    assert_int_equal(verify->frees_exact, 1);
}

/* The counters that a claim covers, for a trace with these facts in its header. */
static unsigned covered_with(bool has_segments, bool starts_in_middle, bool sizes_rounded)
{
    const struct mt_replay_options options = {.policy = "recorded", .verify = true};
    struct mt_event events[] = {event(MT_EVENT_ALLOC, BASE, 512)};
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, 1, 64);
    source.source.header.has_segments = has_segments;
    source.source.header.starts_in_middle = starts_in_middle;
    source.source.header.sizes_rounded = sizes_rounded;
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    assert_true(summary.devices[0].verify.exact);
    return summary.devices[0].verify.covered;
}

TEST(claims_cover_only_what_was_recorded)
{
    assert_int_equal(covered_with(true, false, false), MT_COVERS_ALL);
    assert_int_equal(covered_with(true, false, true), MT_COVERS_ALL & ~MT_COVERS_REQUESTED);
    assert_int_equal(covered_with(false, false, false), MT_COVERS_REQUESTED);
    assert_int_equal(covered_with(false, false, true), 0);
    assert_int_equal(covered_with(false, true, false), 0);
}

/* What a snapshot counts at its end, with `active_bytes` in the first of two segments. */
static const struct mt_replay_verify *replay_to_an_end(uint64_t active_bytes)
{
    struct mt_event events[] = {
        event(MT_EVENT_SEGMENT_ALLOC, BASE, 2 * MT_MIB),
        event(MT_EVENT_ALLOC, BASE, 1000),
        event(MT_EVENT_ALLOC, BASE + 1024, 512),
        event(MT_EVENT_FREE_REQUESTED, BASE, 1000),
        event(MT_EVENT_SEGMENT_ALLOC, BASE + 32 * MT_MIB, 20 * MT_MIB),
        event(MT_EVENT_ALLOC, BASE + 32 * MT_MIB, 3 * MT_MIB),
    };
    const struct mt_segment_end ends[] = {
        {BASE + 32 * MT_MIB, 20 * MT_MIB, 3 * MT_MIB, 3 * MT_MIB, MT_NOT_COUNTED, 0, 1},
        {BASE, 2 * MT_MIB, 512, active_bytes, 1512, 0, 1},
        {BASE, 2 * MT_MIB, 7, 7, 7, 1, 1}, /* another device */
        {BASE, 2 * MT_MIB, 7, 7, 7, 0, 0}, /* another heap */
    };
    const struct mt_replay_options options = {.policy = "pytorch", .verify = true};
    struct memory_source source;
    struct mt_error error;
    uint32_t id;

    memory_source_init(&source, events, MT_ARRAY_LEN(events), 64);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++)
        assert_int_equal(mt_symbols_end(&source.source.symbols, &ends[i], &id), MT_OK);
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    return &summary.devices[0].verify;
}

TEST(levels_at_the_end_are_compared)
{
    const struct mt_replay_verify *verify = replay_to_an_end(1536);

    if (!verify->exact)
        fail_msg("%s", verify->first_difference);
    assert_int_equal(verify->end_levels, 3 + 2 + 3); /* not all segments count requested bytes */
    verify = replay_to_an_end(512);
    assert_true(verify->actions_exact && !verify->exact && !verify->covered);
    assert_int_equal(verify->end_levels - verify->end_levels_exact, 2);
    assert_string_equal(verify->first_difference,
                        "at the end, active: recorded 3,146,240 B, replay 1,024 B more");
}

TEST(state_at_the_start_is_restored)
{
    static const char *const policies[] = {"pytorch", "recorded"};
    struct mt_replay_options options = {.verify = true};

    for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++) {
        struct mt_event events[] = {
            event(MT_EVENT_SEGMENT_ALLOC, BASE, 2 * MT_MIB),
            event(MT_EVENT_SEGMENT_ALLOC, BASE + 32 * MT_MIB, 20 * MT_MIB),
            event(MT_EVENT_ALLOC, BASE + 512, 100),
            event(MT_EVENT_ALLOC, BASE + 32 * MT_MIB, 3 * MT_MIB),
            event(MT_EVENT_FREE_REQUESTED, BASE + 32 * MT_MIB, 3 * MT_MIB),
            event(MT_EVENT_ALLOC, BASE, 512),
            event(MT_EVENT_FREE_COMPLETED, BASE + 32 * MT_MIB, 3 * MT_MIB),
            event(MT_EVENT_ALLOC, BASE + 32 * MT_MIB, 5 * MT_MIB),
        };
        for (size_t k = 0; k < 5; k++)
            events[k].flags = MT_EVENT_INITIAL;
        events[2].aux_bytes = 512;
        events[3].aux_bytes = 3 * MT_MIB;
        options.policy = policies[i];
        const struct mt_replay_result *result = replay(events, MT_ARRAY_LEN(events), 64, &options);
        if (!result->verify.exact)
            fail_msg("%s: %s", policies[i], result->verify.first_difference);
        assert_true(result->starts_in_middle);
        assert_int_equal(result->counters.reserved.peak, 22 * MT_MIB);
        assert_int_equal(result->counters.allocations, 2);
        assert_int_equal(result->counters.allocated.now, 5 * MT_MIB + 1024);
        assert_int_equal(result->counters.active.peak, 5 * MT_MIB + 1024);
    }
}

/* As in a hostile trace: the rest of the trace is replayed. */
TEST(an_initial_segment_of_no_bytes_holds_nothing)
{
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_ALLOC, BASE, 0),
                                event(MT_EVENT_ALLOC, BASE + 32 * MT_MIB, 4096)};
    struct mt_replay_options options = {.policy = "pytorch"};

    events[0].flags = MT_EVENT_INITIAL;
    const struct mt_replay_result *result = replay(events, 2, 64, &options);
    assert_int_equal(result->counters.allocations, 1);
    assert_int_equal(result->counters.segments.now, 1);
}

/* The first block would be merged with a free neighbor that is in no free list of the policy. */
TEST(late_initial_events_are_not_restored)
{
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_MAP, BASE, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, BASE, 20 * MT_MIB),
                                event(MT_EVENT_MARK, 0, 0),
                                event(MT_EVENT_ALLOC, BASE + 64 * MT_MIB, 512),
                                event(MT_EVENT_SEGMENT_MAP, BASE + 20 * MT_MIB, 20 * MT_MIB),
                                event(MT_EVENT_FREE_REQUESTED, BASE, 20 * MT_MIB),
                                event(MT_EVENT_FREE_COMPLETED, BASE, 20 * MT_MIB)};
    struct mt_replay_options options = {.policy = "pytorch:expandable_segments:True"};

    events[0].flags = events[1].flags = events[4].flags = MT_EVENT_INITIAL;
    events[1].aux_bytes = 20 * MT_MIB;
    const struct mt_replay_result *result = replay(events, MT_ARRAY_LEN(events), 64, &options);
    assert_int_equal(result->counters.allocated.now, 512);
    assert_int_equal(result->counters.reserved.now, 22 * MT_MIB);
}

/* The look-ahead skipped the second flush, and served the request for both. */
TEST(flushes_are_never_initial)
{
    struct mt_replay_options options = {.policy = "pytorch"};
    struct mt_event events[] = {event(MT_EVENT_EMPTY_CACHE, 0, 0),
                                event(MT_EVENT_EMPTY_CACHE, 0, 0),
                                event(MT_EVENT_ALLOC, BASE, 2 * MT_MIB)};

    events[0].flags = events[1].flags = MT_EVENT_INITIAL;
    const struct mt_replay_result *result = replay(events, MT_ARRAY_LEN(events), 8, &options);
    assert_int_equal(result->counters.allocated.peak, 2 * MT_MIB);
    assert_int_equal(result->counters.reserved.peak, 20 * MT_MIB);
}

TEST(bad_policies_are_refused)
{
    static const char *const bad[] = {"",
                                      "no_such",
                                      "pytorch:max_split_size_mb:1",
                                      "recorded:x",
                                      "max_split_size_mb:1",
                                      "pytorch:backend:cudaMallocAsync",
                                      "tlsf:x=1",
                                      "buddy:x=1",
                                      "paged:x=1",
                                      "segregated:x=1"};
    struct mt_event events[] = {event(MT_EVENT_ALLOC, BASE, 4096)};

    for (size_t i = 0; i < MT_ARRAY_LEN(bad); i++) {
        struct mt_replay_options options = {.policy = bad[i]};
        struct memory_source source;
        struct mt_error error = {0};
        memory_source_init(&source, events, 1, 64);
        enum mt_status status = mt_replay_run(&source.source, &options, NULL, &summary, &error);
        memory_source_release(&source);
        if (status != MT_ERR_USAGE && status != MT_ERR_UNSUPPORTED)
            fail_msg("'%s' gave %d", bad[i], status);
        assert_true(error.text[0] != '\0');
    }
}

TEST(an_empty_trace_has_no_devices)
{
    struct mt_replay_options options = {.policy = "pytorch", .verify = true};
    struct mt_event mark = event(MT_EVENT_MARK, 0, 0);

    replay(&mark, 1, 64, &options);
    assert_int_equal(summary.device_count, 0);
    replay(&mark, 0, 64, &options);
    assert_int_equal(summary.device_count, 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
