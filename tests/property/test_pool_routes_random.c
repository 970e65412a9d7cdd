/* Pools that the run did not have, on random programs, against what has to be so:
 *
 * - A pool never touches another one. So without a limit, what is reserved at
 *   every moment is what a replay of its requests alone reserves, and one of the
 *   others alone: in the pool without any emptying of the cache, which leaves
 *   pools in use alone. Likewise the calls of the driver.
 * - Hence a pool for all requests is the default pool of a program that never
 *   empties the cache, and an empty pool is none.
 *
 * Among equal free blocks the lowest address is taken, and addresses are not the
 * same in the parts as in the whole: programs in which that ever decides are
 * counted and not compared. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/memory_source.h"
#include "dice.h"
#include "replay.h"
#include "util.h"

enum { EVENTS = 260, LIVE = 40, PROGRAMS = 300, STREAMS = 2 };

static struct mt_event whole[EVENTS], part[EVENTS];
static bool chosen[EVENTS]; /* by the event of a block's request */
static size_t birth_of[EVENTS];

struct level {
    uint64_t reserved, device_allocs, device_frees;
};

struct observation {
    struct level levels[EVENTS];
    uint64_t ties;
};

static struct observation seen, inside, outside;
static struct mt_replay_summary summary;

static uint64_t random_size(void)
{
    return 1 + xorshift_below((uint64_t)1 << (15 + xorshift_below(12)));
}

static struct mt_event event(uint8_t kind, uint64_t addr, uint64_t size_bytes, uint32_t stream)
{
    struct mt_event made = {
        .kind = kind, .addr = addr, .size_bytes = size_bytes, .stream = stream, .heap = 1};

    made.stack = made.name = MT_NO_ID;
    return made;
}

static void make_program(unsigned emptied_of_1000)
{
    size_t live[LIVE], count = 0, at = 0;

    while (at + 2 <= EVENTS) {
        if (xorshift_below(1000) < emptied_of_1000) {
            birth_of[at] = at;
            whole[at++] = event(MT_EVENT_EMPTY_CACHE, 0, 0, 0);
            birth_of[at] = at; /* a free of nothing, which shows what is left */
            whole[at++] = event(MT_EVENT_FREE_COMPLETED, 0x10, 1, 0);
        } else if (count < LIVE && (!count || xorshift_below(100) < 54)) {
            live[count++] = birth_of[at] = at;
            whole[at] = event(MT_EVENT_ALLOC, 0x1000 * (at + 1), random_size(),
                              (uint32_t)xorshift_below(STREAMS));
            at++;
        } else {
            size_t which = xorshift_below(count), birth = live[which];
            live[which] = live[--count];
            birth_of[at] = birth_of[at + 1] = birth;
            whole[at] = whole[at + 1] = whole[birth];
            whole[at++].kind = MT_EVENT_FREE_REQUESTED;
            whole[at++].kind = MT_EVENT_FREE_COMPLETED;
        }
    }
    if (at < EVENTS) {
        birth_of[at] = at;
        whole[at] = event(MT_EVENT_MARK, 0, 0, 0);
    }
}

/* The program of the blocks that are (not) chosen, event by event. */
static void make_part(bool of_chosen, bool may_empty)
{
    for (size_t i = 0; i < EVENTS; i++) {
        bool keep =
            whole[i].kind == MT_EVENT_EMPTY_CACHE ? may_empty : chosen[birth_of[i]] == of_chosen;
        part[i] = keep ? whole[i] : event(MT_EVENT_MARK, 0, 0, 0);
    }
}

static enum mt_status watch(void *context, const struct mt_event *event,
                            const struct mt_replay_view *view)
{
    struct observation *observation = context;

    observation->levels[event->seq] = (struct level){
        view->counters->reserved.now, view->counters->device_allocs, view->counters->device_frees};
    return MT_OK;
}

static void observe(struct mt_event *events, const char *policy,
                    const struct mt_foresight *foresight, struct observation *observation)
{
    const struct mt_replay_options options = {.policy = policy, .foresight = foresight};
    const struct mt_replay_observer observer = {observation, watch, NULL};
    struct memory_source source;
    struct mt_error error;
    uint32_t id;

    memset(observation, 0, sizeof *observation);
    memory_source_init(&source, events, EVENTS, 64);
    assert_int_equal(memory_source_heap(&source, "pytorch"), 1);
    assert_int_equal(mt_symbols_stream(&source.source.symbols, 0x77, &id), MT_OK);
    if (mt_replay_run(&source.source, &options, &observer, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    observation->ties = summary.devices[0].address_ties;
    memory_source_release(&source);
}

static void add_levels(struct observation *sum, const struct observation *other)
{
    struct level last[2] = {{0, 0, 0}, {0, 0, 0}};

    for (size_t i = 0; i < EVENTS; i++) {
        if (mt_event_is_memory(&whole[i])) {
            bool is_other = chosen[birth_of[i]];
            last[is_other] = is_other ? other->levels[i] : sum->levels[i];
        }
        sum->levels[i].reserved = last[0].reserved + last[1].reserved;
        sum->levels[i].device_allocs = last[0].device_allocs + last[1].device_allocs;
        sum->levels[i].device_frees = last[0].device_frees + last[1].device_frees;
    }
    sum->ties += other->ties;
}

static void compare(const struct observation *got, const struct observation *wanted)
{
    for (size_t i = 0; i < EVENTS; i++) {
        const struct level *a = &got->levels[i], *b = &wanted->levels[i];
        if (!mt_event_is_memory(&whole[i]))
            continue;
        if (a->reserved != b->reserved || a->device_allocs != b->device_allocs ||
            a->device_frees != b->device_frees)
            fail_msg("event %zu: reserved %llu, wanted %llu", i, (unsigned long long)a->reserved,
                     (unsigned long long)b->reserved);
    }
}

static const char *const policies[] = {"pytorch: --pool size>0",
                                       "pytorch:expandable_segments:True --pool size>0",
                                       "pytorch:max_split_size_mb:20 --pool size>0",
                                       "pytorch:roundup_power2_divisions:4 --pool size>0"};
static char without_pools[MT_ARRAY_LEN(policies)][64];

static void each_program(void (*check)(const char *with, const char *without))
{
    for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++)
        snprintf(without_pools[i], sizeof *without_pools, "%.*s",
                 (int)(strchr(policies[i], ' ') - policies[i]), policies[i]);
    for (size_t program = 0; program < PROGRAMS; program++) {
        random_state = 0x9E3779B97F4A7C15u + program;
        make_program(program % 2 ? 0 : 20);
        for (size_t i = 0; i < MT_ARRAY_LEN(policies); i++)
            check(policies[i], without_pools[i]);
    }
}

static void check_empty(const char *with, const char *without)
{
    const struct mt_foresight nothing = {.routes = {.first_pool = 1, .pool_count = 1}};

    observe(whole, without, NULL, &outside);
    observe(whole, with, &nothing, &seen);
    assert_int_equal(seen.ties, outside.ties);
    compare(&seen, &outside);
}

TEST(a_pool_that_nothing_goes_to_changes_nothing)
{
    each_program(check_empty);
}

static void check_full(const char *with, const char *without)
{
    for (size_t i = 0; i < EVENTS; i++)
        chosen[i] = true;
    make_part(true, false);
    observe(part, without, NULL, &inside);
    observe(whole, with, NULL, &seen);
    assert_int_equal(summary.devices[0].pool_count, 1);
    assert_int_equal(seen.ties, inside.ties); /* the same addresses, too */
    compare(&seen, &inside);
}

TEST(a_pool_for_all_is_the_default_pool_never_emptied)
{
    each_program(check_full);
}

static size_t compared, skipped;

static void check_split(const char *with, const char *without)
{
    uint8_t of_event[EVENTS] = {0};
    const struct mt_foresight foresight = {
        .routes = {.of_event = of_event, .count = EVENTS, .first_pool = 1, .pool_count = 1}};

    for (size_t i = 0; i < EVENTS; i++) {
        chosen[i] = whole[i].kind == MT_EVENT_ALLOC && xorshift_below(3) == 0;
        of_event[i] = chosen[i];
    }
    observe(whole, with, &foresight, &seen);
    make_part(true, false);
    observe(part, without, NULL, &inside);
    make_part(false, true);
    observe(part, without, NULL, &outside);
    add_levels(&outside, &inside);
    if (seen.ties || outside.ties) {
        skipped++;
        return;
    }
    compared++;
    compare(&seen, &outside);
}

TEST(pools_add_up)
{
    compared = skipped = 0;
    each_program(check_split);
    print_message("%zu compared, in %zu addresses decided\n", compared, skipped);
    assert_true(compared > PROGRAMS);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
