/* Random programs whose private pool is repeatedly restored to checkpoints, like CUDA graph trees,
 * on PyTorch's allocator, with the events that PyTorch writes then. The replay has to recognize
 * every restore, be exact, and find each address again under other options. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/memory_source.h"
#include "dice.h"
#include "policy.h"
#include "replay.h"
#include "util.h"

enum {
    POOL = 1,
    LIVE = 60,
    SEGMENTS = 200,
    CHECKPOINTS = 4,
    STEPS = 700,
    EVENTS = 60000,
    PROGRAMS = 30,
    RESTORE_STACK = 9
};

struct held {
    struct mt_policy_block block;
    uint64_t size_bytes;
    uint32_t stream;
    uint16_t pool;
};

struct segment {
    uint64_t base, size_bytes;
    uint32_t stream;
};

struct checkpoint {
    struct held held[LIVE]; /* ascending by address */
    size_t count, segment_count;
};

struct program {
    struct mt_policy *policy;
    struct mt_device_model device;
    struct mt_event events[EVENTS];
    size_t event_count;
    struct held held[LIVE];
    size_t count;
    struct segment segments[SEGMENTS]; /* of the pool */
    size_t segment_count;
    struct checkpoint checkpoints[CHECKPOINTS];
    size_t checkpoint_count;
    uint64_t restores, kept, gaps;
    struct mt_counters counters;
};

static struct dice dice;
static struct program program;
static struct mt_replay_summary summary;

static void add(uint8_t kind, uint64_t addr, uint64_t size_bytes, const struct held *of)
{
    struct mt_event *event = &program.events[program.event_count++];

    assert_true(program.event_count < EVENTS);
    memset(event, 0, sizeof *event);
    event->kind = kind;
    event->addr = addr;
    event->size_bytes = size_bytes;
    event->stream = of->stream;
    event->pool = of->pool;
    event->stack = kind == MT_EVENT_ALLOC ? (uint32_t)dice_below(&dice, 4) : MT_NO_ID;
    event->name = MT_NO_ID;
}

static void add_segment_events(const struct held *of)
{
    for (size_t i = 0; i < program.device.op_count; i++) {
        const struct mt_device_op *op = &program.device.ops[i];

        assert_int_equal(op->kind, MT_EVENT_SEGMENT_ALLOC);
        add(op->kind, op->addr, op->size_bytes, of);
        if (of->pool != POOL)
            continue;
        assert_true(program.segment_count < SEGMENTS);
        program.segments[program.segment_count++] =
            (struct segment){op->addr, op->size_bytes, op->stream};
    }
    mt_device_clear(&program.device);
}

static void take(uint16_t pool)
{
    struct held *held = &program.held[program.count];
    struct mt_policy_request request = {0};

    if (program.count == LIVE)
        return;
    held->size_bytes = 1 + dice_below(&dice, (uint64_t)1 << dice_between(&dice, 9, 25));
    held->pool = pool;
    held->stream = (uint32_t)dice_below(&dice, 2);
    request.size_bytes = held->size_bytes;
    request.stream = held->stream;
    request.pool = pool;
    assert_int_equal(mt_policy_pytorch.alloc(program.policy, &request, &held->block), MT_OK);
    program.count++;
    add_segment_events(held);
    add(MT_EVENT_ALLOC, held->block.addr, held->size_bytes, held);
}

static void end_block(const struct held *held)
{
    add(MT_EVENT_FREE_REQUESTED, held->block.addr, held->size_bytes, held);
    add(MT_EVENT_FREE_COMPLETED, held->block.addr, held->size_bytes, held);
    assert_int_equal(mt_policy_pytorch.free_requested(program.policy, held->block.handle), MT_OK);
    assert_int_equal(mt_policy_pytorch.free_completed(program.policy, held->block.handle), MT_OK);
}

static void give_back(size_t at)
{
    end_block(&program.held[at]);
    program.held[at] = program.held[--program.count];
}

static int by_address(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    return (x->block.addr > y->block.addr) - (x->block.addr < y->block.addr);
}

static void remember(void)
{
    struct checkpoint *checkpoint = &program.checkpoints[dice_below(&dice, CHECKPOINTS)];

    checkpoint->count = 0;
    checkpoint->segment_count = program.segment_count;
    for (size_t i = 0; i < program.count; i++)
        if (program.held[i].pool == POOL)
            checkpoint->held[checkpoint->count++] = program.held[i];
    qsort(checkpoint->held, checkpoint->count, sizeof *checkpoint->held, by_address);
}

/* One block of a segment that is put back, exactly there. */
static struct held tile(const struct segment *segment, uint64_t addr, uint64_t size_bytes)
{
    struct held held = {.size_bytes = size_bytes, .stream = segment->stream, .pool = POOL};
    const struct mt_policy_request request = {size_bytes, segment->stream, POOL, addr, size_bytes};

    assert_int_equal(mt_policy_pytorch.place(program.policy, &request, &held.block), MT_OK);
    assert_int_equal(held.block.addr, addr);
    add(MT_EVENT_ALLOC, addr, size_bytes, &held);
    program.events[program.event_count - 1].stack = RESTORE_STACK;
    return held;
}

static void restore_segment(const struct checkpoint *checkpoint, const struct segment *segment)
{
    uint64_t at = segment->base, end = segment->base + segment->size_bytes;
    struct held gaps[LIVE + 1];
    size_t gap_count = 0, i;

    for (i = 0; i < checkpoint->count; i++) {
        const struct held *held = &checkpoint->held[i];

        if (held->block.addr < segment->base || held->block.addr >= end)
            continue;
        if (held->block.addr > at)
            gaps[gap_count++] = tile(segment, at, held->block.addr - at);
        program.held[program.count++] = tile(segment, held->block.addr, held->block.size_bytes);
        at = held->block.addr + held->block.size_bytes;
    }
    if (at < end)
        gaps[gap_count++] = tile(segment, at, end - at);
    for (i = 0; i < gap_count; i++)
        end_block(&gaps[i]);
    program.gaps += gap_count;
}

static void restore(const struct checkpoint *checkpoint)
{
    for (size_t i = program.count; i-- > 0;)
        if (program.held[i].pool == POOL)
            give_back(i);
    if ((!checkpoint->count && checkpoint->segment_count < 2) ||
        program.count + checkpoint->count >= LIVE)
        return;
    size_t first = dice_below(&dice, checkpoint->segment_count);
    for (size_t i = 0; i < checkpoint->segment_count; i++)
        restore_segment(checkpoint, &program.segments[(first + i) % checkpoint->segment_count]);
    take(0); /* a block that stays and dies at once could be a gap */
    program.restores++;
    program.kept += checkpoint->count;
}

static void step(void)
{
    uint64_t choice = dice_below(&dice, 100);

    if (choice < 30)
        take(POOL);
    else if (choice < 55)
        take(0);
    else if (choice < 90 && program.count)
        give_back(dice_below(&dice, program.count));
    else if (choice < 95)
        remember();
    else
        restore(&program.checkpoints[dice_below(&dice, CHECKPOINTS)]);
}

static void make_program(uint64_t seed)
{
    struct mt_symbols symbols = {0};
    char spelling[256];
    const struct mt_policy_setup setup = {"",       NULL,           &symbols, &program.device,
                                          spelling, sizeof spelling};
    struct mt_error error;

    memset(&program, 0, sizeof program);
    dice.state = seed;
    mt_device_init(&program.device, 0, 0, false);
    assert_int_equal(mt_policy_create(&mt_policy_pytorch, &setup, &program.policy, &error), MT_OK);
    for (int i = 0; i < STEPS; i++)
        step();
    program.counters = *mt_policy_pytorch.counters(program.policy);
    mt_policy_pytorch.destroy(program.policy);
    mt_device_release(&program.device);
}

static const struct mt_replay_result *replay(const char *policy)
{
    struct mt_replay_options options = {.policy = policy, .verify = !strchr(policy, ':')};
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, program.events, program.event_count, 64);
    if (mt_replay_run(&source.source, &options, NULL, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    memory_source_release(&source);
    return &summary.devices[0];
}

TEST(every_restore_is_exact)
{
    uint64_t seed, restores = 0;

    for (seed = 1; seed <= PROGRAMS; seed++) {
        make_program(seed);
        const struct mt_replay_result *result = replay("pytorch");
        if (!result->verify.exact)
            fail_msg("seed %llu: %s", (unsigned long long)seed, result->verify.first_difference);
        assert_int_equal(result->restores.restores, program.restores);
        assert_int_equal(result->restores.blocks, program.kept);
        assert_int_equal(result->restores.gaps, program.gaps);
        assert_memory_equal(&result->counters, &program.counters, sizeof program.counters);
        restores += program.restores;
    }
    assert_true(restores > 10 * PROGRAMS);
}

TEST(other_options_find_every_place)
{
    static const char *const policies[] = {"pytorch:expandable_segments:True",
                                           "pytorch:roundup_power2_divisions:4",
                                           "pytorch:max_split_size_mb:24"};
    uint64_t seed, left_out = 0;

    for (seed = 1; seed <= PROGRAMS / 2; seed++) {
        make_program(seed);
        for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++) {
            const struct mt_replay_result *result = replay(policies[i]);

            assert_int_equal(result->restores.restores, program.restores);
            if (result->restores.unplaced)
                fail_msg("seed %llu, %s", (unsigned long long)seed, policies[i]);
            assert_int_equal(result->failed_requests, 0);
            left_out += result->restores.gaps_left_out;
        }
    }
    assert_true(left_out > 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
