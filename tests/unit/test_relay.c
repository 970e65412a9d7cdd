/* Rows that a second thread takes, and models of charts that it is fed with. */
#include "cmocka_all.h"

#include "address_model.h"
#include "blocks_model.h"
#include "capture.h"
#include "relay.h"
#include "test_threads.h"

struct seen {
    uint64_t rows;
    bool is_in_order;
};

static void take(void *context, const void *rows, uint32_t count)
{
    const uint64_t *numbers = rows;
    struct seen *seen = context;

    for (uint32_t i = 0; i < count; i++)
        seen->is_in_order &= numbers[i] == seen->rows++;
}

static void pass(struct mt_relay *relay, uint64_t count)
{
    struct seen *seen = relay->context;

    *seen = (struct seen){0, true};
    mt_relay_begin(relay);
    for (uint64_t i = 0; i < count; i++)
        *(uint64_t *)mt_relay_next(relay) = i;
    mt_relay_finish(relay);
    assert_false(mt_relay_has_begun(relay));
    assert_int_equal(seen->rows, count);
    assert_true(seen->is_in_order);
}

TEST(every_row_arrives_once_and_in_order)
{
    static const uint64_t counts[] = {0,
                                      1,
                                      MT_RELAY_ROWS,
                                      MT_RELAY_ROWS + 1,
                                      MT_RELAY_BLOCKS * MT_RELAY_ROWS,
                                      20 * MT_RELAY_ROWS + 7};
    struct seen seen;
    struct mt_relay relay = {.row_bytes = sizeof(uint64_t), .context = &seen, .take = take};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        pass(&relay, counts[i]);
        test_has_no_threads = true;
        pass(&relay, counts[i]);
        test_has_no_threads = false;
    }
}

TEST(one_block_of_rows_needs_no_thread)
{
    struct seen seen;
    struct mt_relay relay = {.row_bytes = sizeof(uint64_t), .context = &seen, .take = take};

    test_threads_made = 0;
    pass(&relay, MT_RELAY_ROWS);
    assert_int_equal(test_threads_made, 0);
    pass(&relay, MT_RELAY_ROWS + 1);
    assert_int_equal(test_threads_made, 1);
}

TEST(a_relay_that_has_not_begun_finishes)
{
    struct mt_relay relay = {0};

    mt_relay_finish(&relay);
    assert_false(mt_relay_has_begun(&relay));
}

static void check_levels(const struct mt_block_set *set)
{
    assert_true(set->bin_count > 0);
    for (uint32_t i = 0; i < set->bin_count; i++) {
        uint64_t max = 0, last = 0;

        for (unsigned role = 0; role < MT_ROLE_COUNT; role++) {
            max += set->levels[i].max[role];
            last += set->levels[i].last[role];
        }
        assert_int_equal(max, set->bins[i].max);
        assert_int_equal(last, set->bins[i].last);
    }
}

static void check_same(const struct mt_device_report *a, const struct mt_device_report *b)
{
    const struct mt_block_set *x = &a->blocks->event, *y = &b->blocks->event;
    const struct mt_address_axis *left = &a->address->event, *right = &b->address->event;

    assert_int_equal(x->bin_count, y->bin_count);
    assert_memory_equal(x->bins, y->bins, x->bin_count * sizeof *x->bins);
    assert_memory_equal(x->levels, y->levels, x->bin_count * sizeof *x->levels);
    assert_int_equal(x->block_count, y->block_count);
    for (uint32_t i = 0; i < x->block_count; i++) {
        assert_int_equal(x->blocks[i].life.addr, y->blocks[i].life.addr);
        assert_int_equal(x->blocks[i].end.event, y->blocks[i].end.event);
    }
    assert_int_equal(left->column_count, right->column_count);
    assert_memory_equal(left->columns, right->columns, left->column_count * sizeof *left->columns);
    assert_int_equal(left->first_run[a->address->row_count],
                     right->first_run[b->address->row_count]);
    assert_int_equal(a->address->allocated_end, a->end.allocated);
    assert_int_equal(b->address->allocated_end, a->end.allocated);
}

TEST(models_do_not_depend_on_the_second_thread)
{
    const struct mt_analyze_options options = {.models = MT_MODEL_BLOCKS | MT_MODEL_ADDRESS};
    const char *path = capture_path("captures", "seq2seq", ".pickle.zst");
    struct capture with = capture_analyze(path, &options), without;

    test_has_no_threads = true;
    without = capture_analyze(path, &options);
    test_has_no_threads = false;
    check_levels(&with.report->devices[0].blocks->time);
    check_levels(&with.report->devices[0].blocks->event);
    check_same(&with.report->devices[0], &without.report->devices[0]);
    capture_close(&with);
    capture_close(&without);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
