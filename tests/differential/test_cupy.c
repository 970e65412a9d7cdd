/* Compares the policy `cupy` with CuPy's own MemoryPool on a GPU: 6000 requests and frees, with the
 * pool's used and total bytes after each. Among equal free chunks, CuPy's choice depends on the
 * addresses of Python objects. So there are two tests: with the recorded choices, every row is
 * equal; with the policy's own choices, the difference is small. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "heap.h"
#include "util.h"

enum { ROWS = 6000 };

struct row {
    bool is_free;
    uint64_t addr, requested, rounded, used, total;
    size_t taken_in; /* frees: row of the allocation */
};

static struct row rows[ROWS];
static struct mt_policy_block blocks[ROWS]; /* by row of the allocation */

static char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data = malloc(1 << 20);

    assert_non_null(file);
    assert_non_null(data);
    *size = fread(data, 1, 1 << 20, file);
    fclose(file);
    return data;
}

static void parse_row(char *line, size_t at)
{
    struct row *row = &rows[at];
    char *next = line + 2;

    row->is_free = line[0] == 'f';
    row->addr = strtoull(next, &next, 10);
    row->requested = strtoull(next + 1, &next, 10);
    row->rounded = strtoull(next + 1, &next, 10);
    row->used = strtoull(next + 1, &next, 10);
    row->total = strtoull(next + 1, &next, 10);
    for (row->taken_in = at; row->is_free;) {
        assert_true(row->taken_in > 0);
        if (rows[--row->taken_in].addr == row->addr && !rows[row->taken_in].is_free)
            break;
    }
}

static int load(void **unused)
{
    size_t size, text_size, count = 0;
    char *packed = read_all(MEMTRACE_FIXTURES "/captures/cupy_pool.csv.zst", &size);
    char *text = malloc(1 << 20), *line;

    (void)unused;
    assert_non_null(text);
    text_size = ZSTD_decompress(text, (1 << 20) - 1, packed, size);
    assert_false(ZSTD_isError(text_size));
    text[text_size] = '\0';
    for (line = strtok(text, "\n"); line && count < ROWS; line = strtok(NULL, "\n"))
        parse_row(line, count++);
    assert_int_equal(count, ROWS);
    free(text);
    free(packed);
    return 0;
}

/* The free block at `addr`, which must be among the smallest that fit. */
static uint32_t take_recorded(struct mt_heap *heap, uint64_t size, uint64_t addr, uint64_t *ties)
{
    const struct mt_free_set *set = &heap->free_lists[0].free;
    struct mt_free_cursor at = mt_free_set_find(set, size, 0), twin;
    uint64_t best = at.entry ? at.entry->size_bytes : 0;

    if (!at.entry)
        return MT_NO_BLOCK;
    twin = mt_free_set_next(set, at);
    *ties += twin.entry && twin.entry->size_bytes == best;
    while (at.entry && at.entry->size_bytes == best && at.entry->addr != addr)
        at = mt_free_set_next(set, at);
    assert_true(at.entry && at.entry->size_bytes == best);
    uint32_t id = at.entry->block;
    mt_heap_take(heap, id);
    return id;
}

static void follow(struct mt_heap *heap, size_t i, uint64_t *ties)
{
    const struct row *row = &rows[i];
    struct mt_event base = {0};

    assert_int_equal(mt_round_up(row->requested, 512), row->rounded);
    uint32_t id = take_recorded(heap, row->rounded, row->addr, ties);
    if (id == MT_NO_BLOCK) {
        base.kind = MT_EVENT_SEGMENT_ALLOC;
        base.addr = row->addr;
        base.size_bytes = row->rounded;
        mt_device_clear(heap->device);
        mt_device_offer_base(heap->device, &base, 0);
        assert_int_equal(mt_heap_grow(heap, row->rounded, 0, 0, &id), MT_OK);
    }
    mt_heap_hand_out(heap, id, row->rounded, row->requested, &blocks[i]);
    assert_int_equal(blocks[i].addr, row->addr);
}

TEST(every_row_is_equal_but_for_ties)
{
    struct mt_device_model device;
    struct mt_heap heap;
    uint64_t ties = 0;
    uint32_t lane;

    mt_device_init(&device, 0, 0, true);
    mt_heap_init(&heap, &device);
    mt_heap_free_list(&heap, 0, &lane);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].is_free) {
            struct mt_policy *policy = (struct mt_policy *)(void *)&heap;
            uint32_t id = blocks[rows[i].taken_in].handle;
            assert_int_equal(mt_heap_op_free_requested(policy, id), MT_OK);
            assert_int_equal(mt_heap_op_free_completed(policy, id), MT_OK);
        } else {
            follow(&heap, i, &ties);
        }
        assert_int_equal(heap.counters.active.now, rows[i].used);
        assert_int_equal(heap.counters.reserved.now, rows[i].total);
    }
    assert_int_equal(ties, 564);
    mt_heap_release(&heap);
    mt_device_release(&device);
}

static void step(const struct mt_policy_ops *cupy, struct mt_policy *policy, size_t i)
{
    const struct row *row = &rows[i];
    struct mt_policy_request request = {row->requested, 0, 0, 0, 0};

    if (!row->is_free) {
        assert_int_equal(cupy->alloc(policy, &request, &blocks[i]), MT_OK);
        return;
    }
    assert_int_equal(cupy->free_requested(policy, blocks[row->taken_in].handle), MT_OK);
    assert_int_equal(cupy->free_completed(policy, blocks[row->taken_in].handle), MT_OK);
}

TEST(ties_cost_little)
{
    const struct mt_policy_ops *cupy = mt_policy_find("cupy", 4);
    struct mt_device_model device;
    struct mt_policy *policy;
    char spelling[160];
    uint64_t different = 0, first = 0, largest = 0, peak = 0;

    mt_device_init(&device, 0, 0, false);
    assert_int_equal(mt_policy_create(cupy,
                                      &(struct mt_policy_setup){NULL, NULL, NULL, &device, spelling,
                                                                sizeof spelling},
                                      &policy, NULL),
                     MT_OK);
    const struct mt_counters *counters = cupy->counters(policy);
    for (size_t i = 0; i < ROWS; i++) {
        mt_device_clear(&device);
        step(cupy, policy, i);
        uint64_t total = counters->reserved.now;
        uint64_t error = total > rows[i].total ? total - rows[i].total : rows[i].total - total;
        assert_int_equal(counters->active.now, rows[i].used);
        different += error > 0;
        first = first || !error ? first : i + 1;
        largest = mt_max_u64(largest, error);
        peak = mt_max_u64(peak, rows[i].total);
    }
    print_message("total bytes: %llu of %d rows differ, the first is row %llu, by at most %llu B; "
                  "peak %llu B, CuPy's %llu B\n",
                  (unsigned long long)different, ROWS, (unsigned long long)first,
                  (unsigned long long)largest, (unsigned long long)counters->reserved.peak,
                  (unsigned long long)peak);
    assert_int_equal(different, 4397);
    assert_int_equal(first, 1604);
    assert_int_equal(largest, 19200512);
    assert_int_equal(counters->reserved.peak, 294367232);
    assert_int_equal(peak, 304648192);
    cupy->destroy(policy);
    mt_device_release(&device);
}

int main(void)
{
    return run_tests_of_file(load, NULL);
}
