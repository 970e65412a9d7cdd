/* Random programs: compares the answer of fit with replays under every limit. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "../unit/memory_source.h"
#include "dice.h"
#include "fit.h"
#include "util.h"

enum { EVENTS = 300, LIVE = 20, PROGRAMS = 40, LIMITS = 700 };

/* After this, one program in eight has limits that contradict each other. */
#define FIRST_SEED UINT64_C(2654512769)

static struct mt_event event(uint8_t kind, uint64_t slot, uint64_t size_bytes)
{
    struct mt_event event = {0};

    event.kind = kind;
    event.addr = UINT64_C(0x7f0000000000) + slot * MT_GIB;
    event.size_bytes = size_bytes;
    event.stack = event.name = MT_NO_ID;
    return event;
}

static size_t make_program(struct mt_event *events)
{
    uint64_t sizes[LIVE] = {0};
    size_t count = 0;

    while (count + 2 < EVENTS) {
        size_t slot = xorshift_below(LIVE);
        if (sizes[slot]) {
            events[count++] = event(MT_EVENT_FREE_REQUESTED, slot, sizes[slot]);
            events[count++] = event(MT_EVENT_FREE_COMPLETED, slot, sizes[slot]);
            sizes[slot] = 0;
        } else {
            sizes[slot] = 1 + xorshift_below((uint64_t)1 << (18 + xorshift_below(8)));
            events[count++] = event(MT_EVENT_ALLOC, slot, sizes[slot]);
        }
    }
    return count;
}

static bool serves(struct mt_event *events, size_t count, const char *policy, uint64_t limit_bytes)
{
    static struct mt_replay_summary summary;
    const struct mt_replay_options options = {.policy = policy, .limit_bytes = limit_bytes};
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, count, 64);
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    return !summary.devices[0].failed_requests;
}

/* 1 if limits contradict each other. */
static unsigned check(const struct mt_fit_result *result, const bool *fits)
{
    uint64_t fit = result->fit_bytes / MT_MIB, limit;
    unsigned contradicts = 0;

    assert_true(result->fits && fit > 0 && fit < LIMITS - 32);
    assert_true(fits[fit]);
    assert_int_equal(result->fails_at_bytes, (fit - 1) * MT_MIB);
    assert_false(fits[fit - 1]);
    assert_true(!result->smaller_fit_bytes || (result->smaller_fit_bytes < result->fit_bytes &&
                                               fits[result->smaller_fit_bytes / MT_MIB]));
    if (result->larger_fail_bytes)
        assert_false(fits[result->larger_fail_bytes / MT_MIB]);
    else
        for (limit = 2; limit <= 32; limit *= 2)
            assert_true(fits[fit + limit]);
    for (limit = 2; limit <= 32 && limit < fit; limit *= 2)
        assert_true(!fits[fit - limit] || result->smaller_fit_bytes);
    for (limit = fit + 1; limit < LIMITS; limit++)
        contradicts |= !fits[limit];
    for (limit = 1; limit < fit; limit++)
        contradicts |= fits[limit];
    return contradicts;
}

static unsigned run_program(uint64_t seed, const char *policy)
{
    static struct mt_fit_summary summary;
    static bool fits[LIMITS];
    struct mt_event events[EVENTS];
    const struct mt_fit_options options = {.policy = policy, .orders = 1};
    struct memory_source source;
    struct mt_error error;
    unsigned contradicts;
    uint64_t limit;
    size_t count;

    random_state = seed;
    count = make_program(events);
    for (limit = 1; limit < LIMITS; limit++)
        fits[limit] = serves(events, count, policy, limit * MT_MIB);
    memory_source_init(&source, events, count, 64);
    assert_int_equal(mt_fit_run(&source.source, &options, &summary, &error), MT_OK);
    contradicts = check(&summary.devices[0], fits);
    memory_source_release(&source);
    mt_fit_release(&summary);
    return contradicts;
}

static void answers_agree_with_every_limit(void **unused)
{
    static const char *const policies[] = {"pytorch:", "pytorch:expandable_segments:True",
                                           "pytorch:garbage_collection_threshold:0.7",
                                           "pytorch:max_split_size_mb:20"};
    unsigned contradicts = 0;
    uint64_t i;

    (void)unused;
    for (i = 0; i < PROGRAMS; i++)
        contradicts += run_program(FIRST_SEED + 77 * i, policies[i % MT_ARRAY_LEN(policies)]);
    printf("limits contradict each other in %u of %u programs\n", contradicts, (unsigned)PROGRAMS);
    assert_true(contradicts > 0); /* else the search above a failure was not tested */
}

/* Some only compare sums with the limit, others compute with it. */
static void answers_of_other_allocators_agree(void **unused)
{
    static const char *const policies[] = {
        "best-fit", "buddy", "cub",       "cupy:limit=300MiB",
        "ort",      "bfc",   "rmm-pool",  "rmm-arena:arena_size=512MiB",
        "paged",    "none",  "cuda-async"};

    (void)unused;
    for (size_t i = 0; i < 2 * MT_ARRAY_LEN(policies); i++)
        (void)run_program(FIRST_SEED + 77 * i, policies[i % MT_ARRAY_LEN(policies)]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_agree_with_every_limit),
                                       cmocka_unit_test(answers_of_other_allocators_agree)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
