/* The results of a sweep: which runs fit on a card, the cost of one more of the value, and how many
 * runs fit at the same time. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "sweep.h"
#include "sweep_runs.h"
#include "util.h"

static struct mt_sweep_run runs[16];
static struct mt_sweep sweep;

static struct mt_sweep_run *add(const char *value, uint64_t allocated_bytes, uint64_t need_bytes)
{
    struct mt_sweep_run *run = &sweep.runs[sweep.run_count++];

    *run = (struct mt_sweep_run){.values = {value}, .label = value};
    run->result.outcome = MT_SWEEP_FINISHED;
    run->result.is_measured = true;
    run->result.allocated_peak_bytes = allocated_bytes;
    run->result.has_need = true;
    run->result.card.bytes = run->result.card.allocator_bytes = need_bytes;
    return run;
}

static void begin(void)
{
    memset(&sweep, 0, sizeof sweep);
    sweep.names[0] = "batch";
    sweep.name_count = 1;
    sweep.runs = runs;
}

static uint64_t allocated_of(const struct mt_sweep_result *result)
{
    return result->allocated_peak_bytes;
}

TEST(a_line_is_exact)
{
    begin();
    add("4", 1000 + 4 * 312, MT_GIB); /* not in order */
    add("1", 1000 + 1 * 312, MT_GIB);
    add("16", 1000 + 16 * 312, MT_GIB);
    add("01", 7, MT_GIB);                                          /* a duplicate value */
    add("32", 5, MT_GIB)->result.outcome = MT_SWEEP_OUT_OF_MEMORY; /* its peak is not used */
    struct mt_sweep_slope slope = mt_sweep_slope_of(&sweep, allocated_of);
    assert_int_equal(slope.points, 3);
    assert_int_equal(slope.from, 1);
    assert_int_equal(slope.to, 16);
    assert_true(slope.is_exact);
    assert_int_equal(slope.least_bytes, 312);
    assert_int_equal(slope.most_bytes, 312);
}

/* One byte off the line, or a slope that is not a whole number, gives a range. */
TEST(anything_else_is_a_range)
{
    begin();
    add("1", 1000, MT_GIB);
    add("2", 1300, MT_GIB);
    add("4", 1901, MT_GIB);
    struct mt_sweep_slope slope = mt_sweep_slope_of(&sweep, allocated_of);
    assert_false(slope.is_exact);
    assert_int_equal(slope.least_bytes, 300);
    assert_int_equal(slope.most_bytes, 301);

    begin();
    add("1", 1000, MT_GIB);
    add("4", 1001, MT_GIB);
    add("7", 1000, MT_GIB); /* falls by a third */
    slope = mt_sweep_slope_of(&sweep, allocated_of);
    assert_false(slope.is_exact);
    assert_int_equal(slope.least_bytes, -1);
    assert_int_equal(slope.most_bytes, 1);

    begin();
    add("1", 1000, MT_GIB);
    assert_int_equal(mt_sweep_slope_of(&sweep, allocated_of).points, 1);
    add("fp16", 2000, MT_GIB);
    assert_int_equal(mt_sweep_slope_of(&sweep, allocated_of).points, 0);
}

static const struct mt_card *card_of(const char *name)
{
    const char *near;
    const struct mt_card *card = mt_card_find(name, &near);

    assert_non_null(card);
    return card;
}

/* Compares the values, not their positions or texts: 16 is more than 9. */
TEST(the_largest_value_that_fits)
{
    const struct mt_card *card = card_of("RTX 4090");

    begin();
    add("16", 10 * MT_GIB, 10 * MT_GIB);
    add("9", 12 * MT_GIB, 12 * MT_GIB);
    add("32", 24 * MT_GIB, 24 * MT_GIB);
    add("64", 30 * MT_GIB, 30 * MT_GIB);
    add("128", MT_GIB, MT_GIB)->result.has_need = false;
    struct mt_sweep_fit fit = mt_sweep_fit_of(&sweep, card);
    assert_string_equal(fit.fits->label, "16");
    assert_int_equal(fit.fit_count, 2);
    assert_int_equal(fit.known_count, 4);

    assert_true(mt_sweep_fit_of(&sweep, card).may_be_more); /* 128 may fit: its need is unknown */
    sweep.runs[4].result.outcome = MT_SWEEP_OUT_OF_MEMORY;
    sweep.memory_bytes = card->memory_bytes;
    assert_false(mt_sweep_fit_of(&sweep, card).may_be_more);
    assert_false(mt_sweep_fit_of(&sweep, card_of("T4")).may_be_more);
    assert_true(mt_sweep_fit_of(&sweep, card_of("H200")).may_be_more);
    sweep.runs[4].values[0] = "1"; /* less than what fits, so irrelevant */
    assert_false(mt_sweep_fit_of(&sweep, card_of("H200")).may_be_more);

    sweep.name_count = 2; /* values without order: the one that needs most */
    assert_string_equal(mt_sweep_fit_of(&sweep, card).fits->label, "9");
}

TEST(numbers_are_whole)
{
    uint64_t number;

    assert_true(mt_sweep_number("999999999999999999", &number));
    assert_int_equal(number, UINT64_C(999999999999999999));
    assert_false(mt_sweep_number("1000000000000000000", &number));
    assert_false(mt_sweep_number("", &number));
    assert_false(mt_sweep_number("1.5", &number));
    assert_false(mt_sweep_number("-1", &number));
}

TEST(runs_have_room)
{
    assert_int_equal(mt_sweep_room(0, 0, 0, 64 * MT_GIB, 16), 1); /* nothing was measured */
    assert_int_equal(mt_sweep_room(0, 1, 2 * MT_GIB, 20 * MT_GIB, 16), 9);
    assert_int_equal(mt_sweep_room(0, 1, 2 * MT_GIB, 200 * MT_GIB, 16), 16);
    assert_int_equal(mt_sweep_room(0, 1, 20 * MT_GIB, 2 * MT_GIB, 16), 1);
    assert_int_equal(mt_sweep_room(0, 1, 0, UINT64_MAX, 4), 4);
    assert_int_equal(mt_sweep_room(3, 0, 20 * MT_GIB, 2 * MT_GIB, 1), 3);
    assert_int_equal(mt_sweep_room(UINT64_MAX, 0, 0, 0, 1), MT_MAX_PARALLEL_RUNS);
}

/* A point needs what its largest rank needs, and does not run if one of its ranks does not. */
TEST(points_are_as_their_worst_rank)
{
    struct mt_sweep points;

    begin();
    sweep.names[sweep.name_count++] = "rank";
    sweep.world = 2;
    for (size_t i = 0; i < 6; i++) {
        struct mt_sweep_run *run = add("4", 1000, MT_GIB * (i + 1));

        run->point = i / 2;
        run->rank.world = 2;
        run->label = "with a rank";
        run->point_label = "batch=4";
    }
    sweep.runs[2].result.has_need = false;
    sweep.runs[4].result.outcome = MT_SWEEP_OUT_OF_MEMORY;
    sweep.runs[4].result.has_need = false;
    sweep.runs[5].result.outcome = MT_SWEEP_FAILED;
    sweep.runs[5].result.has_need = false;
    mt_sweep_take_points(&sweep, &points);
    assert_int_equal(points.run_count, 3);
    assert_int_equal(points.name_count, 1);
    assert_int_equal(points.world, 0);
    assert_string_equal(points.runs[0].label, "batch=4");
    assert_int_equal(points.runs[0].result.card.bytes, 2 * MT_GIB);
    assert_false(points.runs[1].result.has_need);
    assert_int_equal(points.runs[2].result.outcome, MT_SWEEP_OUT_OF_MEMORY);
    free(points.runs);
}

/* CUDA itself takes more of an H100 than of an H200 with NCCL; of a card that was not measured, the
 * amount is an estimate. */
TEST(cards_differ_in_what_cuda_takes)
{
    const struct mt_card *h200 = card_of("H200");
    struct mt_sweep_result result = {
        .has_need = true, .cuda_major = 13, .cuda_kind = MT_COST_CUDA_WITH_NCCL};

    result.card = (struct mt_card_use){.bytes = 5048261112,
                                       .allocator_bytes = 4000000000,
                                       .cuda_bytes = 1048261112,
                                       .cuda_from = MT_CUDA_TABLE};
    assert_int_equal(mt_sweep_need_on(&result, h200, h200).bytes, 5048261112);
    struct mt_card_use use = mt_sweep_need_on(&result, h200, card_of("H100"));
    assert_int_equal(use.bytes, 5304428544);
    assert_int_equal(use.cuda_from, MT_CUDA_TABLE);
    use = mt_sweep_need_on(&result, h200, card_of("RTX 4090"));
    assert_int_equal(use.bytes, 5048261112);
    assert_int_equal(use.cuda_from, MT_CUDA_ASSUMED);
}

/* Numbers that are identifiers, not amounts. */
TEST(ranks_have_no_slope)
{
    begin();
    sweep.world = 8;
    assert_null(mt_sweep_worst(&sweep));
    add("0", 1000, MT_GIB)->result.reserved_peak_bytes = 5;
    add("1", 2000, MT_GIB)->result.reserved_peak_bytes = 7;
    add("7", 3000, MT_GIB)->result.reserved_peak_bytes = 7;
    add("3", 3000, MT_GIB)->result.is_measured = false;
    sweep.runs[3].result.reserved_peak_bytes = 9;
    assert_false(mt_sweep_is_numeric(&sweep));
    assert_int_equal(mt_sweep_slope_of(&sweep, allocated_of).points, 0);
    assert_ptr_equal(mt_sweep_worst(&sweep), &sweep.runs[1]);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
