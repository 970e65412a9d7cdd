/* Random programs with private pools, on PyTorch's allocator. The names of the pools are removed
 * from the trace where a snapshot would not have them, and the replay has to infer them. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/memory_source.h"
#include "dice.h"
#include "policy.h"
#include "replay.h"

enum { STREAMS = 2, POOLS = 3, LIVE = 120, STEPS = 900, EVENTS = 8 * STEPS, PROGRAMS = 40 };

struct held {
    struct mt_policy_block block;
    uint64_t size_bytes;
    uint16_t pool;
};

struct program {
    struct mt_policy *policy;
    struct mt_device_model device;
    struct mt_event events[EVENTS];
    size_t event_count;
    struct held held[LIVE];
    size_t count;
    uint16_t pool; /* in use */
    uint16_t pool_count;
    bool deleted[POOLS];
    struct mt_counters counters;
};

static struct program program;
static struct mt_replay_summary summary;

static struct mt_event *add(uint8_t kind, uint64_t addr, uint64_t size_bytes, uint32_t stream)
{
    struct mt_event *event = &program.events[program.event_count++];

    assert_true(program.event_count < EVENTS);
    memset(event, 0, sizeof *event);
    event->kind = kind;
    event->addr = addr;
    event->size_bytes = size_bytes;
    event->stream = stream;
    event->stack = event->name = MT_NO_ID;
    return event;
}

/* What the policy did to the device becomes events. */
static void add_segment_events(void)
{
    for (size_t i = 0; i < program.device.op_count; i++) {
        const struct mt_device_op *op = &program.device.ops[i];
        add(op->kind, op->addr, op->size_bytes, op->stream);
    }
    mt_device_clear(&program.device);
}

static void take(void)
{
    struct mt_policy_request request = {0};
    struct held *held = &program.held[program.count];

    if (program.count == LIVE)
        return;
    request.size_bytes = 1 + xorshift_below((uint64_t)1 << (9 + xorshift_below(16)));
    request.stream = (uint32_t)xorshift_below(STREAMS);
    request.pool = program.pool;
    assert_int_equal(mt_policy_pytorch.alloc(program.policy, &request, &held->block), MT_OK);
    held->size_bytes = request.size_bytes;
    held->pool = request.pool;
    program.count++;
    add_segment_events();
    add(MT_EVENT_ALLOC, held->block.addr, request.size_bytes, request.stream);
}

static void give_back(size_t at)
{
    struct held *held = &program.held[at];

    add(MT_EVENT_FREE_COMPLETED, held->block.addr, held->size_bytes, 0);
    assert_int_equal(mt_policy_pytorch.free_requested(program.policy, held->block.handle), MT_OK);
    assert_int_equal(mt_policy_pytorch.free_completed(program.policy, held->block.handle), MT_OK);
    *held = program.held[--program.count];
}

/* Gives back the memory of these pools, in this order. */
static void flush(const uint16_t *pools, size_t count)
{
    struct mt_event like = {.kind = MT_EVENT_SEGMENT_FREE};
    size_t i, empty = program.event_count;

    for (i = 0; i < count; i++)
        mt_device_offer_base(&program.device, &like, pools[i]);
    assert_int_equal(mt_policy_pytorch.empty_cache(program.policy), MT_OK);
    add(MT_EVENT_EMPTY_CACHE, 0, 0, 0);
    add_segment_events();
    if (program.event_count == empty + 1)
        program.event_count--; /* a trace does not show it */
}

/* As a MemPool does (alone), or a graph, at the next empty_cache(). */
static void delete_pool(uint16_t pool)
{
    uint16_t pools[2] = {0, pool};

    for (size_t i = program.count; i-- > 0;) {
        if (program.held[i].pool == pool)
            give_back(i);
    }
    if (xorshift_below(2))
        flush(pools, 2);
    else
        flush(&pool, 1);
    program.deleted[pool] = true;
    program.pool = 0;
}

static void step(void)
{
    static const uint16_t default_pool = 0;
    uint64_t choice = xorshift_below(1000);

    if (choice < 40) {
        uint16_t pool = (uint16_t)xorshift_below(program.pool_count);
        program.pool = program.deleted[pool] ? 0 : pool;
    } else if (choice < 50) {
        flush(&default_pool, 1);
    } else if (choice < 560) {
        take();
    } else if (program.count) {
        give_back(xorshift_below(program.count));
    }
}

static void play(const char *options, uint16_t pool_count)
{
    struct mt_symbols symbols;
    char spelling[160];

    memset(&program, 0, sizeof program);
    program.pool_count = pool_count;
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    mt_device_init(&program.device, 0, 0, false);
    assert_int_equal(
        mt_policy_create(&mt_policy_pytorch,
                         &(struct mt_policy_setup){options, NULL, &symbols, &program.device,
                                                   spelling, sizeof spelling},
                         &program.policy, NULL),
        MT_OK);
    for (int i = 0; i < STEPS; i++) {
        step();
        if (i == STEPS / 3)
            delete_pool(1);
        if (i == STEPS * 2 / 3 && pool_count > 2)
            delete_pool(2);
    }
    program.counters = *mt_policy_pytorch.counters(program.policy);
    mt_policy_pytorch.destroy(program.policy);
    mt_device_release(&program.device);
    mt_symbols_release(&symbols);
}

/* Does the replay find pools that explain the whole trace? Then its counters
 * are the allocator's. */
static bool is_found(uint64_t seed, const char *options, uint16_t pool_count)
{
    struct mt_replay_options wanted = {.policy = "pytorch", .verify = true};
    const struct mt_replay_result *result = &summary.devices[0];
    struct memory_source source;
    struct mt_error error;

    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    play(options, pool_count);
    memory_source_init(&source, program.events, program.event_count, 64);
    source.source.header.allocator_options = options;
    assert_int_equal(mt_replay_run(&source.source, &wanted, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    if (!result->verify.exact)
        return false;
    assert_int_equal(result->counters.reserved.peak, program.counters.reserved.peak);
    assert_int_equal(result->counters.allocated.peak, program.counters.allocated.peak);
    assert_int_equal(result->counters.inactive_split.peak, program.counters.inactive_split.peak);
    assert_int_equal(result->counters.reserved.now, program.counters.reserved.now);
    assert_int_equal(result->counters.device_frees, program.counters.device_frees);
    return true;
}

/* Not every program can be explained: nothing distinguishes the segments that one flush released.
 * The expected numbers are the ones reached so far; a lower one is a regression. */
static void check_all(const char *options, uint16_t pool_count, unsigned at_least)
{
    unsigned found = 0;

    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        found += is_found(seed, options, pool_count);
    if (found < at_least)
        fail_msg("%s, %u pools: %u of %d", options, pool_count, found, PROGRAMS);
}

TEST(pools_of_segments_are_found)
{
    check_all("", 2, 40);
    check_all("", 3, 30);
}

TEST(pools_of_reservations_are_found)
{
    check_all("expandable_segments:True", 2, 40);
    check_all("expandable_segments:True", 3, 28);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
