/* Offline plans of random buffers: always valid, never below the bound, and on tiny instances equal
 * to brute force. The seed is printed; MEMTRACE_SEED sets it. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dice.h"
#include "dsa_oracle.h"
#include "optimal.h"
#include "placement.h"

enum { TINY_CASES = 150, MIDDLE_CASES = 60, CHECKER_CASES = 3000, OCCUPANCY_CASES = 200 };

static void make_buffers(struct mt_buffers *buffers, uint64_t count, uint64_t times, uint64_t sizes)
{
    memset(buffers, 0, sizeof *buffers);
    for (; count > 0; count--) {
        uint64_t begin = xorshift_below(times);
        struct mt_buffer buffer = {begin, begin + 1 + xorshift_below(times - begin),
                                   1 + xorshift_below(sizes)};
        assert_int_equal(mt_buffers_add(buffers, &buffer, NULL), MT_OK);
    }
}

/* Memory of `load` units that is always full: freed memory is reused at once. Plans for it often
 * need more than the load. */
static void make_full_memory(struct mt_buffers *buffers, size_t count, uint64_t load)
{
    uint64_t now = 0, live = 0;

    memset(buffers, 0, sizeof *buffers);
    while (buffers->count < count) {
        while (live < load && buffers->count < count) {
            struct mt_buffer buffer = {now, UINT64_C(1) << 40, 1 + xorshift_below(load - live)};
            buffer.bytes = buffer.bytes > load / 2 ? load / 2 : buffer.bytes;
            assert_int_equal(mt_buffers_add(buffers, &buffer, NULL), MT_OK);
            live += buffer.bytes;
        }
        now++;
        for (size_t i = 0; i < buffers->count; i++) {
            if (buffers->items[i].end > now && xorshift_below(3) == 0) {
                buffers->items[i].end = now;
                live -= buffers->items[i].bytes;
            }
        }
    }
}

/* Load 4, but no plan below 5 (see unit/test_optimal.c), with sizes `scale` times as large, and a
 * few more buffers. */
static void make_above_load(struct mt_buffers *buffers, uint64_t scale)
{
    static const struct mt_buffer known[] = {{0, 2, 2}, {0, 4, 2}, {2, 6, 1}, {8, 11, 2},
                                             {3, 8, 1}, {4, 8, 1}, {7, 10, 2}};
    uint64_t more = xorshift_below(2);

    make_buffers(buffers, more, 12, 1);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct mt_buffer buffer = known[i];
        buffer.bytes *= scale;
        assert_int_equal(mt_buffers_add(buffers, &buffer, NULL), MT_OK);
    }
}

/* Few enough for brute force. */
static void make_tiny(struct mt_buffers *buffers, int number)
{
    switch (number % 3) {
    case 0:
        make_buffers(buffers, 1 + xorshift_below(7), 2 + xorshift_below(8), 1 + xorshift_below(9));
        return;
    case 1: make_full_memory(buffers, 6 + xorshift_below(3), 3 + xorshift_below(8)); return;
    default: make_above_load(buffers, 1 + xorshift_below(3)); return;
    }
}

static void assert_sound(const struct mt_buffers *buffers, const struct mt_optimal_result *result)
{
    assert_true(oracle_valid(buffers, result->addresses));
    assert_int_equal(result->plan_bytes, oracle_height(buffers, result->addresses));
    assert_int_equal(result->max_load_bytes, oracle_bound(buffers));
    assert_true(result->lower_bound_bytes >= result->max_load_bytes);
    assert_true(result->plan_bytes >= result->lower_bound_bytes);
    assert_int_equal(result->proven_optimal, result->plan_bytes == result->lower_bound_bytes);
}

TEST(tiny_instances_are_solved)
{
    static const struct mt_optimal_options options = {0};
    int i, above_load = 0;

    for (i = 0; i < TINY_CASES; i++) {
        struct mt_optimal_result result;
        struct mt_buffers buffers;
        make_tiny(&buffers, i);
        assert_int_equal(mt_optimal_solve(&buffers, &options, &result, NULL), MT_OK);
        assert_sound(&buffers, &result);
        assert_true(result.proven_optimal);
        assert_int_equal(result.plan_bytes, oracle_optimum(&buffers));
        above_load += result.plan_bytes > result.max_load_bytes;
        mt_optimal_release(&result);
        mt_buffers_release(&buffers);
    }
    assert_true(above_load >= TINY_CASES / 10);
}

/* A capacity one below the optimum is impossible, and the optimum is found in any search order. */
TEST(exact_search_decides)
{
    for (int i = 0; i < TINY_CASES; i++) {
        uint32_t order[ORACLE_MAX_BUFFERS], k;
        uint64_t addresses[ORACLE_MAX_BUFFERS], best, nodes;
        struct mt_instance instance;
        struct mt_buffers buffers;

        make_tiny(&buffers, i);
        best = oracle_optimum(&buffers);
        mt_instance_build(&buffers, &instance);
        struct mt_exact *exact = mt_exact_new(&instance);
        assert_non_null(exact);
        for (k = 0; k < instance.count; k++)
            order[k] = k;
        for (k = instance.count - 1; k > 0; k--) {
            uint32_t other = (uint32_t)xorshift_below(k + 1), spare = order[k];
            order[k] = order[other];
            order[other] = spare;
        }
        for (int pass = 0; pass < 2; pass++) {
            nodes = 1000000;
            assert_int_equal(
                mt_exact_search(exact, best - 1, order, pass, &nodes, UINT64_MAX, addresses),
                MT_EXACT_IMPOSSIBLE);
            assert_int_equal(
                mt_exact_search(exact, best, order, pass, &nodes, UINT64_MAX, addresses),
                MT_EXACT_FOUND);
            assert_true(oracle_valid(&buffers, addresses));
            assert_int_equal(oracle_height(&buffers, addresses), best);
        }
        mt_exact_free(exact);
        mt_instance_release(&instance);
        mt_buffers_release(&buffers);
    }
}

/* Gives buffers the addresses of others. */
static void check_damaged(const struct mt_buffers *buffers, uint64_t *addresses)
{
    for (int i = 0; i < 5; i++) {
        uint64_t *address = &addresses[xorshift_below(buffers->count)], before = *address, height;
        bool valid;
        *address = addresses[xorshift_below(buffers->count)];
        mt_placement_check(buffers, addresses, &valid, &height);
        assert_int_equal(valid, oracle_valid(buffers, addresses));
        *address = before;
    }
}

TEST(larger_plans_are_valid)
{
    for (int i = 0; i < MIDDLE_CASES; i++) {
        /* every third beyond what the exact search takes; short lives: many parts */
        uint64_t count = i % 3 ? 1 + xorshift_below(120) : 1000 + xorshift_below(400);
        struct mt_optimal_options options = {.time_ns = 1 + xorshift_below(20000000)};
        struct mt_optimal_result result;
        struct mt_buffers buffers;
        make_buffers(&buffers, count, 2 + xorshift_below(2000), (uint64_t)1 << xorshift_below(30));
        assert_int_equal(mt_optimal_solve(&buffers, &options, &result, NULL), MT_OK);
        assert_sound(&buffers, &result);
        check_damaged(&buffers, result.addresses);
        mt_optimal_release(&result);
        mt_buffers_release(&buffers);
    }
}

TEST(without_a_clock_plans_repeat)
{
    static const struct mt_optimal_options options = {0};
    struct mt_optimal_result results[2];
    struct mt_buffers buffers;

    make_buffers(&buffers, 60, 40, 1000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mt_optimal_solve(&buffers, &options, &results[i], NULL), MT_OK);
    assert_sound(&buffers, &results[0]);
    assert_int_equal(results[0].lower_bound_bytes, results[1].lower_bound_bytes);
    assert_memory_equal(results[0].addresses, results[1].addresses,
                        buffers.count * sizeof *results[0].addresses);
    for (int i = 0; i < 2; i++)
        mt_optimal_release(&results[i]);
    mt_buffers_release(&buffers);
}

enum { PARTS = 9, PART_ITEMS = 40, PART_TIMES = 50 };

/* Every third part differs from the others in one number. */
static bool part_differs(size_t number)
{
    return number % 3 == 1;
}

static void repeat_part(const struct mt_buffers *part, bool in_size, struct mt_buffers *all)
{
    memset(all, 0, sizeof *all);
    for (size_t i = 0; i < PARTS * part->count; i++) {
        size_t number = i / part->count, item = i % part->count;
        bool differs = part_differs(number) && item == number;
        struct mt_buffer buffer = part->items[item];
        buffer.begin += number * 2 * PART_TIMES;
        buffer.end += number * 2 * PART_TIMES + (differs && !in_size ? PART_TIMES / 2 : 0);
        buffer.bytes += differs && in_size;
        assert_int_equal(mt_buffers_add(all, &buffer, NULL), MT_OK);
    }
}

/* Without time there are only first plans: equal parts have equal ones. */
TEST(parts_repeat_in_time)
{
    for (int i = 0; i < MIDDLE_CASES; i++) {
        struct mt_optimal_options options = {.time_ns = i % 10 > 0};
        struct mt_optimal_result of_part, of_all;
        struct mt_buffers part, all;
        make_buffers(&part, PART_ITEMS, PART_TIMES, 1 + xorshift_below(6));
        repeat_part(&part, i % 2, &all);
        assert_int_equal(mt_optimal_solve(&part, &options, &of_part, NULL), MT_OK);
        assert_int_equal(mt_optimal_solve(&all, &options, &of_all, NULL), MT_OK);
        assert_sound(&all, &of_all);
        for (size_t number = 0; options.time_ns && number < PARTS; number++)
            if (!part_differs(number))
                assert_memory_equal(of_all.addresses + number * part.count, of_part.addresses,
                                    part.count * sizeof *of_part.addresses);
        mt_optimal_release(&of_part);
        mt_optimal_release(&of_all);
        mt_buffers_release(&part);
        mt_buffers_release(&all);
    }
}

TEST(checker_agrees_with_all_pairs)
{
    int i, valid_count = 0;

    for (i = 0; i < CHECKER_CASES; i++) {
        uint64_t addresses[8], height, count = 2 + xorshift_below(6);
        struct mt_buffers buffers;
        bool valid;
        make_buffers(&buffers, count, 2 + xorshift_below(6), 1 + xorshift_below(4));
        for (size_t k = 0; k < buffers.count; k++)
            addresses[k] = xorshift_below(16);
        mt_placement_check(&buffers, addresses, &valid, &height);
        assert_int_equal(valid, oracle_valid(&buffers, addresses));
        assert_int_equal(height, oracle_height(&buffers, addresses));
        valid_count += valid;
        mt_buffers_release(&buffers);
    }
    assert_in_range(valid_count, CHECKER_CASES / 20, CHECKER_CASES - CHECKER_CASES / 20);
}

/* Items that are alive in up to all sections, mostly in few. */
static void make_items(struct mt_item *items, uint32_t count, uint32_t sections)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = (uint32_t)xorshift_below(sections), most = sections - first;
        most = xorshift_below(3) && most > 4 ? 4 : most;
        items[i] = (struct mt_item){.bytes = 1 + xorshift_below(9),
                                    .first = first,
                                    .last = first + 1 + (uint32_t)xorshift_below(most)};
    }
}

/* Lowest and best gap against a bitmap of addresses and sections. */
TEST(occupancy_agrees_with_a_bitmap)
{
    enum { SECTIONS = 300, ITEMS = 800, FEW = 90, ADDRESSES = 4000 };
    static bool taken[SECTIONS][ADDRESSES];
    struct mt_occupancy occupancy = {0}; /* one for all cases */
    struct mt_item items[ITEMS];
    uint64_t addresses[ITEMS];

    for (int i = 0; i < OCCUPANCY_CASES; i++) {
        bool many = i % 20 == 0; /* a tree of several levels */
        struct mt_instance instance = {.items = items,
                                       .count = many ? ITEMS : 1 + (uint32_t)xorshift_below(FEW),
                                       .section_count =
                                           many ? SECTIONS : 1 + (uint32_t)xorshift_below(FEW)};

        make_items(items, instance.count, instance.section_count);
        memset(taken, 0, sizeof taken);
        mt_occupancy_prepare(&occupancy, &instance);
        mt_occupancy_clear(&occupancy, addresses);
        for (uint32_t item = 0; item < instance.count; item++) {
            uint64_t a, begin = 0, lowest = UINT64_MAX, best = UINT64_MAX;
            uint64_t best_gap = UINT64_MAX, run = 0, bytes = items[item].bytes;
            bool fit = xorshift_below(2);
            for (a = 0; a <= ADDRESSES; a++) {
                bool free_here = a < ADDRESSES;
                for (uint32_t s = items[item].first; free_here && s < items[item].last; s++)
                    free_here = !taken[s][a];
                if (free_here) {
                    begin = run ? begin : a;
                    run++;
                    continue;
                }
                if (run >= bytes && lowest == UINT64_MAX)
                    lowest = begin;
                if (run >= bytes && run < best_gap) {
                    best = begin;
                    best_gap = run;
                }
                run = 0;
            }
            begin = mt_occupancy_find(&occupancy, item, fit);
            assert_int_equal(begin, fit ? best : lowest);
            mt_occupancy_take(&occupancy, item, begin);
            for (uint32_t s = items[item].first; s < items[item].last; s++)
                memset(taken[s] + begin, true, bytes);
        }
    }
    mt_occupancy_release(&occupancy);
}

/* Numbers of entries by key, equal keys in the order of before. */
TEST(numbers_are_sorted)
{
    enum { MOST = 3000 }; /* beyond FEW_NUMBERS */
    static struct {
        uint32_t other;
        uint64_t key;
    } entries[MOST];
    static uint32_t numbers[MOST];

    for (int round = 0; round < OCCUPANCY_CASES / 4; round++) {
        uint32_t count = (uint32_t)xorshift_below(MOST);
        uint64_t shift = xorshift_below(60), different = 1 + xorshift_below(MOST);
        for (uint32_t i = 0; i < count; i++) {
            entries[i].key = xorshift_below(different) * 257 << shift;
            numbers[i] = i;
        }
        mt_numbers_sort((struct mt_keys){&entries[0].key, sizeof *entries}, numbers, count);
        for (uint32_t i = 1; i < count; i++) {
            uint64_t before = entries[numbers[i - 1]].key, key = entries[numbers[i]].key;
            assert_true(before < key || (before == key && numbers[i - 1] < numbers[i]));
        }
    }
}

int main(void)
{
    const char *given = getenv("MEMTRACE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);

    print_message("MEMTRACE_SEED=%llu\n", (unsigned long long)seed);
    random_state = seed * 2 + 1;
    return run_tests_of_file(NULL, NULL);
}
