/* Offline plans: examples computed by hand, and MiniMalloc's benchmarks. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_source.h"
#include "optimal.h"
#include "placement.h"

static struct mt_buffers buffers_of(const struct mt_buffer *items, size_t count)
{
    struct mt_buffers buffers = {0};

    for (size_t i = 0; i < count; i++)
        assert_int_equal(mt_buffers_add(&buffers, &items[i], NULL), MT_OK);
    return buffers;
}

static struct mt_optimal_result solved(const struct mt_buffers *buffers, uint64_t time_ns,
                                       uint64_t capacity)
{
    struct mt_optimal_options options = {.time_ns = time_ns, .capacity_bytes = capacity};
    struct mt_optimal_result result;

    assert_int_equal(mt_optimal_solve(buffers, &options, &result, NULL), MT_OK);
    return result;
}

TEST(nothing_needs_nothing)
{
    struct mt_buffers buffers = {0};
    struct mt_optimal_result result = solved(&buffers, 0, 0);

    assert_int_equal(result.plan_bytes, 0);
    assert_int_equal(result.lower_bound_bytes, 0);
    assert_true(result.proven_optimal);
    mt_optimal_release(&result);
}

/* A is freed at time 10, when B is allocated: lifetimes exclude their end. */
TEST(one_address_after_the_other)
{
    static const struct mt_buffer items[] = {{0, 10, 5}, {10, 20, 5}, {20, 30, 3}};
    struct mt_buffers buffers = buffers_of(items, 3);
    struct mt_optimal_result result = solved(&buffers, 0, 0);

    assert_int_equal(result.plan_bytes, 5);
    assert_int_equal(result.max_load_bytes, 5);
    assert_true(result.proven_optimal);
    mt_optimal_release(&result);
    mt_buffers_release(&buffers);
}

/* With 4 units, A and B occupy a half each. C and D (from 2 and 3) are allocated while B is alive,
 * so both are in A's half, and E (from 4) is in B's. F (2 units, from 7) collides with D in one
 * half and E in the other, so it fits only in the middle. G (2 units, from 8) then finds one unit
 * below F and one above. So the plan needs 5 units. */
TEST(load_is_not_always_reached)
{
    static const struct mt_buffer items[] = {{0, 2, 2}, {0, 4, 2},  {2, 6, 1}, {3, 8, 1},
                                             {4, 8, 1}, {7, 10, 2}, {8, 11, 2}};
    struct mt_buffers buffers = buffers_of(items, 7);
    struct mt_optimal_result result = solved(&buffers, 0, 0);

    assert_int_equal(result.max_load_bytes, 4);
    assert_int_equal(result.lower_bound_bytes, 5);
    assert_int_equal(result.plan_bytes, 5);
    assert_true(result.proven_optimal);
    mt_optimal_release(&result);
    mt_buffers_release(&buffers);
}

TEST(checker_finds_overlaps)
{
    static const struct mt_buffer items[] = {{0, 4, 10}, {2, 6, 10}, {4, 8, 10}};
    static const struct {
        uint64_t addresses[3];
        bool valid;
    } cases[] = {
        {{0, 10, 0}, true},               /* the third follows the first in time */
        {{0, 9, 0}, false},               /* one byte of the first two */
        {{0, 10, 15}, false},             /* the last two */
        {{5, 15, 5}, true},               /* a gap below is allowed */
        {{0, 10, UINT64_MAX - 3}, false}, /* beyond the address space */
    };
    struct mt_buffers buffers = buffers_of(items, 3);
    uint64_t height;
    bool valid;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mt_placement_check(&buffers, cases[i].addresses, &valid, &height);
        assert_int_equal(valid, cases[i].valid);
    }
    mt_buffers_release(&buffers);
}

/* The first three items leave the gaps [0,4), [6,8), [9,11) and what is above 12. */
TEST(occupancy_first_and_best)
{
    static struct mt_item items[] = {
        {.first = 0, .last = 8, .bytes = 2}, {.first = 1, .last = 3, .bytes = 1},
        {.first = 2, .last = 5, .bytes = 1}, {.first = 2, .last = 3, .bytes = 2},
        {.first = 2, .last = 3, .bytes = 5}, {.first = 5, .last = 8, .bytes = 5},
        {.first = 3, .last = 5, .bytes = 5}, {.first = 0, .last = 8, .bytes = 2}};
    struct mt_instance instance = {.items = items, .count = 8, .section_count = 8};
    struct mt_occupancy occupancy = {0};
    uint64_t addresses[8];

    mt_occupancy_prepare(&occupancy, &instance);
    mt_occupancy_clear(&occupancy, addresses);
    mt_occupancy_take(&occupancy, 0, 4);
    mt_occupancy_take(&occupancy, 1, 8);
    mt_occupancy_take(&occupancy, 2, 11);
    assert_int_equal(mt_occupancy_find(&occupancy, 3, false), 0);
    assert_int_equal(mt_occupancy_find(&occupancy, 3, true), 6);
    assert_int_equal(mt_occupancy_find(&occupancy, 4, true), 12);
    assert_int_equal(mt_occupancy_find(&occupancy, 5, false), 6);
    assert_int_equal(mt_occupancy_find(&occupancy, 6, false), 6);
    assert_int_equal(mt_occupancy_find(&occupancy, 7, true), 6);
    assert_int_equal(addresses[2], 11);
    mt_occupancy_release(&occupancy);
}

static enum mt_status read_csv(const char *text, struct mt_buffers *buffers, struct mt_error *error)
{
    memset(buffers, 0, sizeof *buffers);
    return mt_buffers_from_csv(text, strlen(text), buffers, error);
}

TEST(csv_columns_in_any_order)
{
    struct mt_buffers buffers;

    assert_int_equal(
        read_csv("size,id,end,start\r\n7,b1,9,3\r\n\n5,x,4,4\n1,,18446744073709551615,0", &buffers,
                 NULL),
        MT_OK);
    assert_int_equal(buffers.count, 2); /* the second has no lifetime */
    assert_int_equal(buffers.items[0].begin, 3);
    assert_int_equal(buffers.items[0].end, 9);
    assert_int_equal(buffers.items[0].bytes, 7);
    assert_true(buffers.items[1].end == UINT64_MAX);
    mt_buffers_release(&buffers);
}

TEST(csv_that_is_none)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "id,lower,upper\n",
                                      "id,lower,lower,upper,size\n",
                                      "lower,upper,size\n1,2\n",
                                      "lower,upper,size\n1,2,3,4\n",
                                      "lower,upper,size\n1,2,-3\n",
                                      "lower,upper,size\n2,1,3\n",
                                      "lower,upper,size\n1,2,18446744073709551616\n",
                                      "lower,upper,size\n1,2,3x\n",
                                      "lower,upper,size\n0,1,18446744073709551615\n",
                                      "lower,upper,size\n0,1,4611686018427387904\n",
                                      "lower,upper,size\n0,1,4611686018427387904\n0,1,1\n"};
    struct mt_buffers buffers;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mt_error error = {.text = ""};
        assert_true(read_csv(bad[i], &buffers, &error) < 0);
        assert_true(error.text[0] != '\0');
        mt_buffers_release(&buffers);
    }
}

static struct mt_event event(enum mt_event_kind kind, uint64_t addr, uint64_t size, unsigned device)
{
    return (struct mt_event){.kind = (uint8_t)kind,
                             .addr = addr,
                             .size_bytes = size,
                             .device = (uint16_t)device,
                             .stack = MT_NO_ID,
                             .name = MT_NO_ID};
}

/* Device 0: 512 bytes until the free request, but 1024 until the free completed. A block that is
 * not freed lives to the end. Device 1 has the same address. */
TEST(buffers_of_a_trace)
{
    struct mt_event events[] = {
        event(MT_EVENT_ALLOC, 0x100, 513, 0),          event(MT_EVENT_ALLOC, 0x100, 1, 1),
        event(MT_EVENT_FREE_REQUESTED, 0x100, 513, 0), event(MT_EVENT_ALLOC, 0x900, 2, 0),
        event(MT_EVENT_FREE_COMPLETED, 0x100, 513, 0), event(MT_EVENT_FREE_COMPLETED, 0x7, 1, 0)};
    static struct mt_buffers devices[MT_BUFFERS_DEVICES];
    struct memory_source source;

    memory_source_init(&source, events, 6, 4);
    source.source.header.has_free_completed = true;
    assert_int_equal(mt_buffers_from_source(&source.source, devices, NULL), MT_OK);
    assert_int_equal(devices[0].count, 2);
    assert_int_equal(devices[0].items[0].bytes, 1024);
    assert_int_equal(devices[0].items[0].begin, 1);
    assert_int_equal(devices[0].items[0].end, 5);
    assert_int_equal(devices[0].items[1].bytes, 512);
    assert_int_equal(devices[0].items[1].end, 7);
    assert_int_equal(devices[1].count, 1);
    assert_int_equal(devices[1].items[0].end, 7);
    mt_buffers_release(&devices[0]);
    mt_buffers_release(&devices[1]);
    mt_symbols_release(&source.source.symbols);
}

static struct mt_buffers read_fixture(const char *name)
{
    static char text[1 << 16];
    struct mt_buffers buffers = {0};
    char path[400];

    snprintf(path, sizeof path, "%s/minimalloc/%s.csv", MEMTRACE_FIXTURES, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_int_equal(mt_buffers_from_csv(text, length, &buffers, NULL), MT_OK);
    return buffers;
}

/* A fixed amount of work solves these, including the small one of 12 units. */
TEST(benchmarks_that_are_easy)
{
    static const struct {
        const char *name;
        uint64_t capacity;
    } cases[] = {
        {"I.1048576", 1048576}, {"J.1048576", 1048576}, {"K.1048576", 1048576}, {"input.12", 12}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mt_buffers buffers = read_fixture(cases[i].name);
        struct mt_optimal_result result = solved(&buffers, 0, cases[i].capacity);
        assert_true(result.plan_bytes <= cases[i].capacity);
        mt_optimal_release(&result);
        mt_buffers_release(&buffers);
    }
}

/* With any time limit there is a valid plan. */
TEST(benchmarks_in_no_time)
{
    char name[] = "A.1048576";

    for (; name[0] <= 'K'; name[0]++) {
        struct mt_buffers buffers = read_fixture(name);
        struct mt_optimal_result result = solved(&buffers, 1, 0);
        uint64_t height;
        bool valid;
        mt_placement_check(&buffers, result.addresses, &valid, &height);
        assert_true(valid);
        assert_int_equal(height, result.plan_bytes);
        assert_in_range(height, result.max_load_bytes, 2 * result.max_load_bytes);
        mt_optimal_release(&result);
        mt_buffers_release(&buffers);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
