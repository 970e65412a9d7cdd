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

struct program {
    struct mt_event events[EVENTS];
    size_t count;
    const char *policy;
};

/* The policy "pytorch" has the options of the run, so the events are those of its allocator. */
static bool has_own_options(const struct program *program)
{
    return !strcmp(program->policy, "pytorch");
}

static void open_source(struct memory_source *source, struct program *program)
{
    memory_source_init(source, program->events, program->count, 64);
    if (has_own_options(program))
        memory_source_heap(source, "pytorch");
}

static bool serves(struct program *program, struct mt_base_order order, uint64_t limit_bytes)
{
    static struct mt_replay_summary summary;
    const struct mt_replay_options options = {
        .policy = program->policy, .limit_bytes = limit_bytes, .order = order};
    struct memory_source source;
    struct mt_error error;

    open_source(&source, program);
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

/* The answers in the other orders of addresses. */
static void check_orders(struct program *program, const struct mt_fit_result *result)
{
    for (uint32_t i = 1; i < result->order_count; i++) {
        const struct mt_fit_order *order = &result->orders[i];

        assert_true(order->fit_bytes >= result->low_bytes && order->fit_bytes > MT_MIB);
        assert_true(serves(program, order->order, order->fit_bytes));
        assert_false(serves(program, order->order, order->fit_bytes - MT_MIB));
    }
}

/* `summary` is to be released. */
static void fit(struct program *program, uint32_t orders, struct mt_fit_summary *summary)
{
    const struct mt_fit_options options = {.policy = program->policy, .orders = orders};
    struct memory_source source;
    struct mt_error error;

    open_source(&source, program);
    assert_int_equal(mt_fit_run(&source.source, &options, summary, &error), MT_OK);
    memory_source_release(&source);
}

static unsigned run_program(uint64_t seed, const char *policy)
{
    static struct mt_fit_summary summary;
    static bool fits[LIMITS];
    struct program program = {.policy = policy};

    random_state = seed;
    program.count = make_program(program.events);
    for (size_t i = 0; has_own_options(&program) && i < program.count; i++)
        program.events[i].heap = 1;
    for (uint64_t limit = 1; limit < LIMITS; limit++)
        fits[limit] = serves(&program, mt_base_order_at(0), limit * MT_MIB);
    fit(&program, 1, &summary);
    unsigned contradicts = check(&summary.devices[0], fits);
    mt_fit_release(&summary);
    fit(&program, MT_BASE_ORDERS, &summary);
    check_orders(&program, &summary.devices[0]);
    mt_fit_release(&summary);
    return contradicts;
}

TEST(answers_agree_with_every_limit)
{
    static const char *const policies[] = {
        "pytorch:", "pytorch", "pytorch:expandable_segments:True",
        "pytorch:garbage_collection_threshold:0.7", "pytorch:max_split_size_mb:20"};
    unsigned contradicts = 0;

    for (uint64_t i = 0; i < PROGRAMS; i++)
        contradicts += run_program(FIRST_SEED + 77 * i, policies[i % MT_ARRAY_LEN(policies)]);
    printf("limits contradict each other in %u of %u programs\n", contradicts, (unsigned)PROGRAMS);
    assert_true(contradicts > 0); /* else the search above a failure was not tested */
}

/* Some only compare sums with the limit, others compute with it. */
TEST(answers_of_other_allocators_agree)
{
    static const char *const policies[] = {
        "best-fit", "buddy", "cub",       "cupy:limit=300MiB",
        "ort",      "bfc",   "rmm-pool",  "rmm-arena:arena_size=512MiB",
        "paged",    "none",  "cuda-async"};

    for (size_t i = 0; i < 2 * MT_ARRAY_LEN(policies); i++)
        (void)run_program(FIRST_SEED + 77 * i, policies[i % MT_ARRAY_LEN(policies)]);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
