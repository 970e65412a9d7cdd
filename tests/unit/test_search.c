/* The search for the points that fit on cards: the same front as the whole grid, with fewer
 * points; what it does if a larger value needs less, and if points fail. */
#include "cmocka_all.h"

#include <string.h>

#include "dice.h"
#include "search.h"

enum { MAX_POINTS = 4096 };

static struct mt_search search;
static uint64_t random_state = 7;
static uint64_t needs[MAX_POINTS]; /* 0: the point fails */
static uint64_t amounts[2][64];
static size_t evaluated;

static size_t axis(size_t count, bool is_searched)
{
    struct mt_search_axis *added = &search.axes[search.axis_count];
    uint64_t *of_axis = amounts[search.axis_count % 2];

    for (size_t i = 0; i < count; i++)
        of_axis[i] = i + 1;
    *added = (struct mt_search_axis){count, is_searched ? of_axis : NULL};
    return search.axis_count++;
}

static void begin(void)
{
    memset(&search, 0, sizeof search);
    evaluated = 0;
}

static void cards(size_t count, uint64_t first, uint64_t step)
{
    search.card_count = count;
    for (size_t i = 0; i < count; i++)
        search.card_bytes[i] = first + i * step;
}

static void evaluate(struct mt_search *target, size_t index)
{
    struct mt_search_point *point = &target->points[index];

    assert_int_equal(point->state, MT_SEARCH_UNKNOWN);
    *point = (struct mt_search_point){.state = MT_SEARCH_NEED, .need_bytes = needs[index]};
    if (!needs[index])
        point->state = MT_SEARCH_FAILED;
    else if (needs[index] > target->card_bytes[target->card_count - 1])
        point->state = MT_SEARCH_TOO_LARGE;
    for (size_t card = 0; point->state == MT_SEARCH_NEED && card < target->card_count; card++)
        if (needs[index] <= target->card_bytes[card])
            point->cards |= UINT32_C(1) << card;
    evaluated++;
}

static void run(size_t most)
{
    static size_t round[MAX_POINTS];
    size_t count;

    while (evaluated < most && (count = mt_search_next(&search, most - evaluated, round)) > 0)
        for (size_t i = 0; i < count; i++)
            evaluate(&search, round[i]);
}

/* The largest value of a combination that fits, from all needs. */
static size_t best_of(size_t combination, size_t card)
{
    size_t best = MT_SEARCH_NONE;

    for (size_t i = 0; i < search.size_count; i++) {
        uint64_t need = needs[mt_search_point_of(&search, combination, i)];

        if (need && need <= search.card_bytes[card])
            best = i;
    }
    return best;
}

static bool is_beaten_by(size_t a, size_t b, size_t card)
{
    const struct mt_search_combination *x = &search.combinations[a], *y = &search.combinations[b];
    size_t of_a = best_of(a, card), of_b = best_of(b, card);

    if (a == b || of_b == MT_SEARCH_NONE || of_b < of_a || y->devices > x->devices)
        return false;
    for (size_t i = 0; i < search.axis_count; i++)
        if (search.axes[i].amounts ? y->at[i] < x->at[i] : y->at[i] > x->at[i])
            return false;
    return true;
}

/* Compares with the front that all needs give. */
static void check_front(size_t card)
{
    static size_t found[MAX_POINTS];
    size_t count = mt_search_front(&search, card, found), at = 0;

    for (size_t i = 0; i < search.combination_count; i++) {
        bool is_beaten = best_of(i, card) == MT_SEARCH_NONE;

        for (size_t j = 0; j < search.combination_count; j++)
            is_beaten |= is_beaten_by(i, j, card);
        if (is_beaten)
            continue;
        assert_true(at < count);
        assert_int_equal(found[at++], i);
        assert_int_equal(search.combinations[i].best[card], best_of(i, card));
        assert_true(search.combinations[i].is_exact[card]);
    }
    assert_int_equal(at, count);
}

static void fill_monotone(void)
{
    static uint64_t of_combination[MAX_POINTS];
    size_t at[MT_MAX_SEARCH_AXES];

    for (size_t i = 0; i < MAX_POINTS; i++)
        of_combination[i] = high_below(4000);
    for (size_t i = 0; i < search.point_count; i++) {
        uint64_t list = 0, base = 1000;

        mt_search_split(&search, i, at);
        for (size_t k = 0; k < search.axis_count; k++)
            if (!search.axes[k].amounts)
                list = list * 7 + at[k] + 1;
        base += of_combination[list % MAX_POINTS];
        for (size_t k = 0; k < search.axis_count; k++)
            if (search.axes[k].amounts)
                base += at[k] * (100 + list % 3 * 50) + at[k] * at[k] * (list % 5);
        needs[i] = base;
    }
}

TEST(a_search_finds_what_the_grid_has)
{
    size_t points = 0, all = 0;

    for (int round = 0; round < 300; round++) {
        begin();
        axis(1 + high_below(40), true);
        if (high_below(2))
            axis(1 + high_below(4), false);
        if (high_below(3) == 0)
            axis(1 + high_below(5), high_below(2));
        cards(1 + high_below(5), 1000 + high_below(3000), 1 + high_below(2000));
        mt_search_init(&search);
        for (size_t i = 0; i < search.combination_count; i++)
            search.combinations[i].devices = 1 + high_below(3);
        fill_monotone();
        run(SIZE_MAX);
        for (size_t card = 0; card < search.card_count; card++)
            check_front(card);
        points += evaluated;
        all += search.point_count;
        mt_search_release(&search);
    }
    assert_true(points * 3 < all);
}

TEST(a_line_needs_few_points)
{
    begin();
    axis(64, true);
    cards(2, 3000, 1000);
    mt_search_init(&search);
    for (size_t i = 0; i < 64; i++)
        needs[i] = 1000 + 100 * i;
    run(SIZE_MAX);
    assert_int_equal(search.combinations[0].best[0], 20);
    assert_int_equal(search.combinations[0].best[1], 30);
    assert_in_range(evaluated, 6, 8);
    mt_search_release(&search);
}

/* The second value of the list is worth a run only above what the first one has. */
TEST(beaten_combinations_need_one_point)
{
    begin();
    axis(64, true);
    axis(2, false);
    cards(1, 4000, 0);
    mt_search_init(&search);
    for (size_t i = 0; i < 64; i++) {
        needs[2 * i] = 1000 + 100 * i;
        needs[2 * i + 1] = 1000 + 120 * i;
    }
    run(SIZE_MAX);
    check_front(0);
    assert_int_equal(search.points[2 * 31 + 1].state, MT_SEARCH_TOO_LARGE);
    evaluated = 0;
    for (size_t i = 0; i < 64; i++)
        evaluated += search.points[2 * i + 1].state != MT_SEARCH_UNKNOWN;
    assert_int_equal(evaluated, 1);
    mt_search_release(&search);
}

TEST(a_contradiction_is_said_and_the_grid_runs)
{
    begin();
    axis(32, true);
    cards(2, 2000, 2000);
    mt_search_init(&search);
    for (size_t i = 0; i < 32; i++)
        needs[i] = i % 3 ? 3000 - 10 * i : 1500 + i;
    needs[0] = 2900;
    run(SIZE_MAX);
    assert_true(search.combinations[0].is_contradicted);
    assert_int_equal(evaluated, 32);
    check_front(0);
    check_front(1);
    mt_search_release(&search);
}

/* A failed point says nothing about others; a combination that only fails ends. */
TEST(failed_points_mark_only_themselves)
{
    begin();
    axis(32, true);
    cards(1, 2000, 0);
    mt_search_init(&search);
    for (size_t i = 0; i < 32; i++)
        needs[i] = i == 9 || i == 10 || i == 31 ? 0 : 1000 + 100 * i;
    run(SIZE_MAX);
    assert_int_equal(search.combinations[0].best[0], 8);
    assert_false(search.combinations[0].is_exact[0]); /* they may fit where they do not fail */
    assert_int_equal(search.points[11].state, MT_SEARCH_TOO_LARGE);
    mt_search_release(&search);

    begin();
    axis(32, true);
    cards(1, 2000, 0);
    mt_search_init(&search);
    memset(needs, 0, sizeof needs);
    run(SIZE_MAX);
    assert_int_equal(evaluated, 3);
    assert_true(search.combinations[0].gave_up);
    assert_int_equal(search.combinations[0].best[0], MT_SEARCH_NONE);
    mt_search_release(&search);
}

TEST(a_limit_leaves_the_answer_open)
{
    begin();
    axis(64, true);
    cards(1, 3000, 0);
    mt_search_init(&search);
    for (size_t i = 0; i < 64; i++)
        needs[i] = 1000 + i * i;
    run(3);
    assert_int_equal(evaluated, 3);
    assert_false(search.combinations[0].is_exact[0]);
    mt_search_release(&search);
}

TEST(shards_share_the_combinations)
{
    size_t of_shards = 0;

    for (size_t shard = 0; shard < 3; shard++) {
        begin();
        axis(8, true);
        axis(4, false);
        cards(1, 1500, 0);
        search.shard = shard;
        search.shard_count = 3;
        mt_search_init(&search);
        for (size_t i = 0; i < 32; i++)
            needs[i] = 1000 + 100 * (i / 4) - i % 4;
        run(SIZE_MAX);
        for (size_t i = 0; i < 4; i++) {
            of_shards += search.combinations[i].is_in_shard;
            assert_int_equal(search.combinations[i].is_done, search.combinations[i].is_in_shard);
        }
        mt_search_release(&search);
    }
    assert_int_equal(of_shards, 4);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
