/* `planned` on random programs that repeat a step: blocks never overlap, counters match the blocks,
 * equal steps always get their planned addresses even if lifetimes differ, and no plan is below the
 * live bytes. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "../unit/memory_source.h"
#include "dice.h"
#include "replay.h"
#include "util.h"

enum { MOST = 2000, STEPS = 6, SEQUENCE = 60, PROGRAMS = 150, ALIVE = 400 };

static struct mt_event events[MOST];
static size_t count;
static bool deviates;
static struct mt_replay_summary summary;

static void add(uint8_t kind, uint64_t addr, uint64_t bytes)
{
    assert_true(count < MOST);
    events[count] = (struct mt_event){.kind = kind, .addr = addr, .size_bytes = bytes, .heap = 1};
    events[count].stack = events[count].name = MT_NO_ID;
    count++;
}

static void give(uint64_t *live, size_t *alive, size_t which)
{
    add(MT_EVENT_FREE_REQUESTED, live[which], 0);
    add(MT_EVENT_FREE_COMPLETED, live[which], 0);
    live[which] = live[--*alive];
}

/* The step asks for sizes[]; what it frees when is the dice's, all of it at its end. */
static void make_step(const uint64_t *sizes, uint64_t *next_addr, bool usual)
{
    uint64_t live[SEQUENCE * 2];
    size_t alive = 0, i;

    add(MT_EVENT_PHASE_PUSH, 0, 0);
    for (i = 0; i < SEQUENCE; i++) {
        if (!usual && xorshift_below(20) == 0)
            continue;
        live[alive++] = *next_addr += 4096;
        add(MT_EVENT_ALLOC, *next_addr,
            !usual && xorshift_below(20) == 0 ? 1 + xorshift_below(MT_MIB) : sizes[i]);
        while (alive && xorshift_below(100) < 45)
            give(live, &alive, xorshift_below(alive));
    }
    while (alive > (usual ? 0 : xorshift_below(3)) && alive)
        give(live, &alive, xorshift_below(alive));
    add(MT_EVENT_PHASE_POP, 0, 0);
}

static void make_program(void)
{
    uint64_t sizes[SEQUENCE], next_addr = 0;

    count = 0;
    for (size_t i = 0; i < SEQUENCE; i++)
        sizes[i] = 1 + xorshift_below((uint64_t)1 << (10 + xorshift_below(14)));
    for (size_t i = 0; i < STEPS; i++)
        make_step(sizes, &next_addr, !deviates || i % 3 != 0);
}

struct block {
    uint64_t recorded, addr, bytes;
};

struct watch {
    struct block blocks[ALIVE];
    size_t count;
    uint64_t allocated;
};

static void check_alloc(struct watch *watch, const struct mt_event *event,
                        const struct mt_replay_view *view)
{
    assert_true(view->block_bytes >= event->size_bytes);
    for (size_t i = 0; i < watch->count; i++)
        assert_true(view->block_addr + view->block_bytes <= watch->blocks[i].addr ||
                    watch->blocks[i].addr + watch->blocks[i].bytes <= view->block_addr);
    assert_true(watch->count < ALIVE);
    watch->blocks[watch->count++] =
        (struct block){event->addr, view->block_addr, view->block_bytes};
    watch->allocated += view->block_bytes;
}

static enum mt_status look(void *context, const struct mt_event *event,
                           const struct mt_replay_view *view)
{
    struct watch *watch = context;

    if (event->kind == MT_EVENT_ALLOC)
        check_alloc(watch, event, view);
    for (size_t i = 0; event->kind == MT_EVENT_FREE_COMPLETED && i < watch->count; i++) {
        if (watch->blocks[i].recorded != event->addr)
            continue;
        watch->allocated -= watch->blocks[i].bytes;
        watch->blocks[i] = watch->blocks[--watch->count];
        break;
    }
    if (event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_FREE_COMPLETED) {
        assert_int_equal(view->counters->allocated.now, watch->allocated);
        assert_true(view->counters->active.now <= view->counters->reserved.now);
        assert_true(view->counters->reserved.now <= view->counters->reserved.peak);
    }
    return MT_OK;
}

static const struct mt_replay_result *replay(void)
{
    static struct watch watch;
    const struct mt_replay_options options = {.policy = "planned"};
    const struct mt_replay_observer observer = {&watch, look, NULL};
    struct memory_source source;
    struct mt_error error;
    unsigned number = 0;

    memset(&watch, 0, sizeof watch);
    memory_source_init(&source, events, count, 64);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    for (size_t i = 0; i < count; i++) {
        char name[16];
        if (events[i].kind != MT_EVENT_PHASE_PUSH && events[i].kind != MT_EVENT_PHASE_POP)
            continue;
        snprintf(name, sizeof name, "step#%u", number);
        number += events[i].kind == MT_EVENT_PHASE_POP;
        assert_int_equal(
            mt_symbols_string(&source.source.symbols, name, strlen(name), &events[i].name), MT_OK);
    }
    if (mt_replay_run(&source.source, &options, &observer, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    memory_source_release(&source);
    return &summary.devices[0];
}

static void each_program(bool with_deviations, void (*check)(const struct mt_replay_result *))
{
    deviates = with_deviations;
    for (size_t program = 0; program < PROGRAMS; program++) {
        random_state = 0x9E3779B97F4A7C15u + program;
        make_program();
        check(replay());
    }
}

static void check_equal(const struct mt_replay_result *result)
{
    assert_int_equal(result->plan.equal_steps, STEPS);
    assert_int_equal(result->plan.hits, STEPS * SEQUENCE);
    assert_int_equal(result->plan.misses, 0);
    assert_true(result->plan.arena_bytes >= result->plan.bound_bytes);
    assert_true(result->plan.bound_bytes >= result->counters.allocated.peak);
    assert_int_equal(result->counters.reserved.peak, result->plan.arena_bytes);
}

TEST(equal_steps_find_every_place_free)
{
    each_program(false, check_equal);
}

static void check_deviating(const struct mt_replay_result *result)
{
    assert_true(result->plan.equal_steps >= STEPS - STEPS / 3);
    assert_true(result->plan.hits >= (STEPS - STEPS / 3) * SEQUENCE / 2);
    assert_true(result->counters.reserved.peak >= result->plan.arena_bytes);
}

TEST(steps_that_deviate_overlap_nothing)
{
    each_program(true, check_deviating);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
