/* Two jobs compared: planted changes, and random pairs against a slow oracle, which knows call
 * paths as texts and looks at every leaf for every line. */
#include "cmocka_all.h"

#include <string.h>

#include "dice.h"
#include "job_answers.h"
#include "job_diff_make.h"
#include "simulate_job.h"

struct made {
    struct mt_rank_set set;
    struct mt_job_report *report;
};

struct pair {
    struct made a, b;
    struct mt_job_diff *diff;
};

/* In place: the report points to the set. */
static void make(struct made *made, const struct simulated_job *job)
{
    const struct mt_job_options usual = {0};
    struct mt_error error;

    *made = (struct made){.report = NULL};
    assert_true(simulated_job_add(job, 0, 1, &made->set));
    mt_rank_set_sort(&made->set);
    assert_int_equal(mt_job_report_make(&made->set, &usual, &made->report, &error), MT_OK);
}

static struct mt_job_diff *diff_of(const struct mt_job_report *a, const struct mt_job_report *b)
{
    struct mt_job_diff *diff;
    struct mt_error error;

    assert_int_equal(mt_job_diff_make(a, b, &diff, &error), MT_OK);
    return diff;
}

static void make_pair(struct pair *pair, const struct simulated_job *a,
                      const struct simulated_job *b)
{
    make(&pair->a, a);
    make(&pair->b, b);
    pair->diff = diff_of(pair->a.report, pair->b.report);
}

static void release_made(struct made *made)
{
    mt_job_report_free(made->report);
    mt_rank_set_release(&made->set);
}

static void release(struct pair *pair)
{
    mt_job_diff_free(pair->diff);
    release_made(&pair->a);
    release_made(&pair->b);
}

/* Sums and counts of a change that somebody else made. */
struct expected {
    unsigned __int128 a_sum, b_sum;
    __int128 sum;
    int64_t min, max;
    uint32_t classes;
};

static void expect_class(struct expected *expected, const struct mt_job_class *class,
                         unsigned __int128 a, unsigned __int128 b)
{
    int64_t change = (int64_t)(b / class->b_count) - (int64_t)(a / class->a_count);

    if (!expected->classes || change < expected->min)
        expected->min = change;
    if (!expected->classes || change > expected->max)
        expected->max = change;
    expected->a_sum += a;
    expected->b_sum += b;
    expected->sum += change;
    expected->classes++;
}

static void assert_change(const struct mt_job_change *change, const struct expected *expected)
{
    assert_true(change->a_sum_bytes == expected->a_sum);
    assert_true(change->b_sum_bytes == expected->b_sum);
    assert_int_equal(change->class_count, expected->classes);
    if (!expected->classes)
        return;
    assert_int_equal(change->min_bytes, expected->min);
    assert_int_equal(change->max_bytes, expected->max);
    assert_int_equal(change->mean_bytes, (int64_t)(expected->sum / (__int128)expected->classes));
}

static const struct mt_rank_record *record_of(const struct mt_job_diff *diff,
                                              const struct mt_job_class *class, bool is_of_b,
                                              uint32_t i)
{
    return is_of_b ? diff->b->rows[class->b_rows[i]].record
                   : diff->a->rows[class->a_rows[i]].record;
}

/* Equal frames all the way up: of two sets. */
static bool is_path(const struct mt_rank_set *x, uint32_t one, const struct mt_rank_set *y,
                    uint32_t other)
{
    while (one != MT_NO_PATH && other != MT_NO_PATH) {
        if (strcmp(mt_rank_set_frame(x, one), mt_rank_set_frame(y, other)) != 0)
            return false;
        one = x->paths[one].parent;
        other = y->paths[other].parent;
    }
    return one == other;
}

static unsigned __int128 line_sum(const struct mt_job_diff *diff, const struct mt_job_class *class,
                                  bool is_of_b, const struct mt_job_diff_line *line)
{
    const struct mt_rank_set *set = is_of_b ? diff->b->set : diff->a->set;
    unsigned __int128 sum = 0;

    for (uint32_t i = 0; i < (is_of_b ? class->b_count : class->a_count); i++) {
        const struct mt_rank_record *record = record_of(diff, class, is_of_b, i);

        for (uint32_t k = 0; k < record->leaf_count; k++)
            if (record->leaves[k].role == line->role &&
                is_path(set, record->leaves[k].site, &diff->paths,
                        is_of_b ? line->b_path : line->a_path))
                sum += record->leaves[k].bytes;
    }
    return sum;
}

static void check_lines(const struct mt_job_diff *diff)
{
    unsigned __int128 a_sum = 0, b_sum = 0;

    for (uint32_t l = 0; l < diff->line_count; l++) {
        struct expected expected = {.classes = 0};

        for (uint32_t i = 0; i < diff->class_count; i++)
            if (diff->classes[i].is_compared)
                expect_class(&expected, &diff->classes[i],
                             line_sum(diff, &diff->classes[i], false, &diff->lines[l]),
                             line_sum(diff, &diff->classes[i], true, &diff->lines[l]));
        assert_change(&diff->lines[l].change, &expected);
        assert_int_equal(diff->lines[l].is_in_a, expected.a_sum > 0);
        assert_int_equal(diff->lines[l].is_in_b, expected.b_sum > 0);
        a_sum += expected.a_sum;
        b_sum += expected.b_sum;
    }
    assert_true(a_sum == diff->metrics[MT_JOB_ALLOCATED].a_sum_bytes);
    assert_true(b_sum == diff->metrics[MT_JOB_ALLOCATED].b_sum_bytes);
}

static uint64_t metric_of(const struct mt_rank_record *record, int metric, bool *is_known)
{
    *is_known = metric == MT_JOB_OUTSIDE  ? record->has_driver
                : metric == MT_JOB_NEEDED ? record->needed_is_known
                : metric == MT_JOB_GROWTH ? record->growth_is_judged
                                          : true;
    return mt_job_metric_of(record, (enum mt_job_metric)metric);
}

static void check_metrics(const struct mt_job_diff *diff)
{
    for (int m = 0; m < MT_JOB_METRIC_COUNT; m++) {
        struct expected expected = {.classes = 0};

        for (uint32_t i = 0; i < diff->class_count; i++) {
            const struct mt_job_class *class = &diff->classes[i];
            unsigned __int128 sums[2] = {0, 0};
            bool all = true, knows;

            for (int side = 0; side < 2 && class->is_compared; side++)
                for (uint32_t r = 0; r < (side ? class->b_count : class->a_count); r++) {
                    sums[side] += metric_of(record_of(diff, class, side, r), m, &knows);
                    all &= knows;
                }
            if (class->is_compared && all)
                expect_class(&expected, class, sums[0], sums[1]);
        }
        assert_change(&diff->metrics[m], &expected);
    }
}

/* Parts sum to wholes on both sides. */
static void check_sums(const struct mt_job_diff *diff)
{
    const struct mt_job_change *allocated = &diff->metrics[MT_JOB_ALLOCATED];
    const struct mt_job_change *outside = &diff->metrics[MT_JOB_OUTSIDE];
    unsigned __int128 a = 0, b = 0;

    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        a += diff->roles[i].a_sum_bytes;
        b += diff->roles[i].b_sum_bytes;
    }
    assert_true(a == allocated->a_sum_bytes && b == allocated->b_sum_bytes);
    a = b = 0;
    for (uint32_t i = 0; i < diff->library_count; i++) {
        a += diff->libraries[i].change.a_sum_bytes;
        b += diff->libraries[i].change.b_sum_bytes;
    }
    assert_true(a == outside->a_sum_bytes && b == outside->b_sum_bytes);
    for (uint32_t x = 0; x < diff->axis_count; x++) {
        uint32_t classes = 0;

        a = b = 0;
        for (uint32_t g = 0; g < diff->axes[x].group_count; g++) {
            a += diff->axes[x].groups[g].allocated.a_sum_bytes;
            b += diff->axes[x].groups[g].allocated.b_sum_bytes;
            classes += diff->axes[x].groups[g].reserved.class_count;
        }
        assert_true(a == allocated->a_sum_bytes && b == allocated->b_sum_bytes);
        assert_int_equal(classes, diff->compared_count);
    }
}

/* Each row is in one class. */
static void check_classes(const struct mt_job_diff *diff)
{
    uint32_t a = 0, b = 0, compared = 0;

    for (uint32_t i = 0; i < diff->class_count; i++) {
        const struct mt_job_class *class = &diff->classes[i];

        a += class->a_count;
        b += class->b_count;
        compared += class->is_compared;
        if (diff->match == MT_MATCH_RANKS && class->is_compared)
            assert_int_equal(record_of(diff, class, false, 0)->identity.rank,
                             record_of(diff, class, true, 0)->identity.rank);
    }
    assert_int_equal(a, diff->a->row_count);
    assert_int_equal(b, diff->b->row_count);
    assert_int_equal(compared, diff->compared_count);
}

static void check(const struct mt_job_diff *diff)
{
    check_classes(diff);
    check_metrics(diff);
    check_lines(diff);
    check_sums(diff);
}

static void assert_negated(const struct mt_job_change *one, const struct mt_job_change *other)
{
    assert_true(one->a_sum_bytes == other->b_sum_bytes);
    assert_true(one->b_sum_bytes == other->a_sum_bytes);
    assert_int_equal(one->class_count, other->class_count);
    assert_int_equal(one->min_bytes, -other->max_bytes);
    assert_int_equal(one->max_bytes, -other->min_bytes);
    assert_int_equal(one->mean_bytes, -other->mean_bytes);
}

/* Also what comes first is the same. */
static void check_negated(const struct mt_job_diff *one, const struct mt_job_diff *other)
{
    assert_int_equal(one->match, other->match);
    assert_int_equal(one->class_count, other->class_count);
    assert_int_equal(one->line_count, other->line_count);
    assert_int_equal(one->library_count, other->library_count);
    assert_int_equal(one->axis_count, other->axis_count);
    for (int i = 0; i < MT_JOB_METRIC_COUNT; i++)
        assert_negated(&one->metrics[i], &other->metrics[i]);
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        assert_negated(&one->roles[i], &other->roles[i]);
    for (uint32_t i = 0; i < one->line_count; i++) {
        assert_negated(&one->lines[i].change, &other->lines[i].change);
        assert_true(
            is_path(&one->paths, one->lines[i].a_path, &other->paths, other->lines[i].b_path));
    }
    for (uint32_t i = 0; i < one->library_count; i++) {
        assert_negated(&one->libraries[i].change, &other->libraries[i].change);
        assert_string_equal(one->libraries[i].name, other->libraries[i].name);
    }
    for (uint32_t i = 0; i < one->compared_count; i++)
        assert_int_equal(one->order[i], other->order[i]);
    for (uint32_t i = 0; i < one->class_count; i++) {
        assert_int_equal(one->classes[i].a_count, other->classes[i].b_count);
        assert_int_equal(one->classes[i].line, other->classes[i].line);
        assert_int_equal(one->classes[i].line_bytes, -other->classes[i].line_bytes);
    }
    for (uint32_t a = 0; a < one->axis_count; a++) {
        assert_int_equal(one->axes[a].group_count, other->axes[a].group_count);
        for (uint32_t g = 0; g < one->axes[a].group_count; g++) {
            assert_negated(&one->axes[a].groups[g].reserved, &other->axes[a].groups[g].reserved);
            assert_int_equal(one->axes[a].groups[g].line, other->axes[a].groups[g].line);
        }
    }
}

/* Some of the facts, in a job of this size. */
static struct simulated_job roll(struct dice *dice, uint32_t stages, uint32_t replicas,
                                 uint32_t shards)
{
    struct simulated_job job = simulated_job_new(stages, replicas, shards);
    int32_t world = (int32_t)(stages * replicas * shards);
    int32_t *const ranks[] = {&job.leaking_rank, &job.logging_rank, &job.talking_rank,
                              &job.dying_rank};

    for (size_t i = 0; i < MT_ARRAY_LEN(ranks); i++)
        if (!dice_below(dice, 3))
            *ranks[i] = (int32_t)dice_below(dice, (uint64_t)world);
    if (!dice_below(dice, 2))
        job.heavy_stage = (int32_t)dice_below(dice, stages);
    if (!dice_below(dice, 3))
        job.moved_lines = (int32_t)dice_below(dice, 30);
    job.has_mesh = dice_below(dice, 3) != 0;
    job.has_groups = dice_below(dice, 3) == 0;
    job.has_hashes = dice_below(dice, 4) != 0;
    while (world > 4 && job.missing_count < 3 && !dice_below(dice, 2))
        job.missing[job.missing_count++] = (int32_t)dice_below(dice, (uint64_t)world);
    return job;
}

TEST(random_pairs_close_and_turn)
{
    struct dice dice = {17};
    uint32_t matches[4] = {0};

    for (int round = 0; round < 150; round++) {
        uint32_t stages = 1 + (uint32_t)dice_below(&dice, 4);
        uint32_t shards = 1 + (uint32_t)dice_below(&dice, 2);
        bool equal = dice_below(&dice, 2);
        uint32_t one = 1 + (uint32_t)dice_below(&dice, 4),
                 other = 1 + (uint32_t)dice_below(&dice, 4);
        struct simulated_job a = roll(&dice, stages, one, shards);
        struct simulated_job b =
            roll(&dice, dice_below(&dice, 5) ? stages : stages + 1, equal ? one : other, shards);
        struct pair pair;

        make_pair(&pair, &a, &b);
        struct mt_job_diff *turned = diff_of(pair.b.report, pair.a.report);
        check(pair.diff);
        check_negated(pair.diff, turned);
        matches[pair.diff->match]++;
        mt_job_diff_free(turned);
        release(&pair);
    }
    for (int i = 0; i < 4; i++)
        assert_true(matches[i] > 0);
}

TEST(a_job_does_not_differ_from_itself)
{
    struct dice dice = {5};

    for (int round = 0; round < 40; round++) {
        struct simulated_job job = roll(&dice, 2, 3, 2);
        struct pair pair;

        make_pair(&pair, &job, &job);

        assert_int_equal(pair.diff->match, MT_MATCH_RANKS);
        assert_int_equal(pair.diff->compared_count, pair.diff->class_count);
        assert_false(mt_job_diff_has_changes(pair.diff));
        check(pair.diff);
        release(&pair);
    }
}

TEST(a_heavier_stage_is_found)
{
    struct simulated_job a = simulated_job_new(4, 2, 2), b = a;
    struct pair pair;

    b.heavy_stage = 2;
    b.moved_lines = 10;
    make_pair(&pair, &a, &b);
    const struct mt_job_diff *diff = pair.diff;
    assert_int_equal(diff->match, MT_MATCH_RANKS);
    assert_int_equal(diff->compared_count, 16);
    assert_int_equal(diff->lines[0].change.max_bytes, SIMULATED_MORE);
    assert_int_equal(diff->lines[0].change.mean_bytes, SIMULATED_MORE / 4);
    assert_int_equal(diff->lines[0].change.min_bytes, 0);
    assert_string_equal(mt_rank_set_frame(&diff->paths, diff->lines[0].b_path),
                        "forward model.py:88");
    assert_true(diff->lines[0].a_path != diff->lines[0].b_path); /* its caller moved */
    for (uint32_t i = 1; i < diff->line_count; i++)
        assert_int_equal(diff->lines[i].change.max_bytes, 0);
    for (uint32_t g = 0; g < 4; g++) {
        assert_int_equal(diff->axes[0].groups[g].allocated.mean_bytes, g == 2 ? SIMULATED_MORE : 0);
        assert_int_equal(diff->axes[0].groups[g].line, g == 2 ? 0 : MT_NO_LINE);
    }
    assert_int_equal(diff->axes[0].groups[2].line_bytes, SIMULATED_MORE);
    release(&pair);
}

TEST(a_rank_that_is_missing_shifts_nothing)
{
    struct simulated_job a = simulated_job_new(2, 4, 1), b = a;
    struct pair pair;

    b.missing[b.missing_count++] = 5;
    make_pair(&pair, &a, &b);
    assert_int_equal(pair.diff->match, MT_MATCH_RANKS);
    assert_int_equal(pair.diff->class_count, 8);
    assert_int_equal(pair.diff->compared_count, 7);
    assert_false(mt_job_diff_has_changes(pair.diff));
    assert_false(pair.diff->classes[5].is_compared);
    release(&pair);
}

/* A process that has nothing, in the allocator and outside of it. */
static void empty(struct mt_rank_record *record)
{
    memset(record->role_bytes, 0, sizeof record->role_bytes);
    record->allocated_peak.bytes = record->outside_bytes = 0;
    record->leaf_count = record->owner_count = 0;
}

TEST(a_rank_without_memory_repeats_no_other)
{
    struct simulated_job a = simulated_job_new(1, 4, 1), b = a;
    const struct mt_job_options usual = {0};
    struct mt_error error;
    struct pair pair;

    b.heavy_stage = 0;
    make_pair(&pair, &a, &b);
    mt_job_diff_free(pair.diff);
    mt_job_report_free(pair.a.report);
    mt_job_report_free(pair.b.report);
    empty(&pair.a.set.records[2]);
    empty(&pair.b.set.records[2]);
    assert_int_equal(mt_job_report_make(&pair.a.set, &usual, &pair.a.report, &error), MT_OK);
    assert_int_equal(mt_job_report_make(&pair.b.set, &usual, &pair.b.report, &error), MT_OK);
    pair.diff = diff_of(pair.a.report, pair.b.report);
    check(pair.diff);
    assert_int_equal(pair.diff->lines[0].change.mean_bytes, SIMULATED_MORE * 3 / 4);
    assert_int_equal(pair.diff->classes[2].line, MT_NO_LINE);
    release(&pair);
}

TEST(another_number_of_replicas_matches_by_stage)
{
    struct simulated_job a = simulated_job_new(4, 2, 1), b = simulated_job_new(4, 6, 1);
    struct pair pair;

    b.heavy_stage = 1;
    make_pair(&pair, &a, &b);
    assert_int_equal(pair.diff->match, MT_MATCH_GROUPS);
    assert_int_equal(pair.diff->compared_count, 4);
    assert_int_equal(pair.diff->axis_count, 1);
    assert_string_equal(pair.diff->axes[0].name, "pp");
    assert_int_equal(pair.diff->lines[0].change.max_class, 1);
    assert_in_range(pair.diff->lines[0].change.max_bytes, SIMULATED_MORE, SIMULATED_MORE);
    release(&pair);
}

TEST(without_a_mesh_parameters_match)
{
    struct simulated_job a = simulated_job_new(3, 2, 1), b = simulated_job_new(4, 2, 1);
    struct pair pair;

    a.has_mesh = b.has_mesh = false;
    make_pair(&pair, &a, &b);
    assert_int_equal(pair.diff->match, MT_MATCH_PARAMETERS);
    assert_int_equal(pair.diff->compared_count, 3);
    release(&pair);
    a.has_hashes = b.has_hashes = false;
    make_pair(&pair, &a, &b);
    assert_int_equal(pair.diff->match, MT_MATCH_NONE);
    assert_int_equal(pair.diff->compared_count, 1);
    release(&pair);
}

TEST(a_record_larger_than_any_device_is_refused)
{
    struct simulated_job job = simulated_job_new(1, 2, 1);
    struct made a, b;
    struct mt_job_diff *diff;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    make(&a, &job);
    make(&b, &job);
    b.set.records[1].needed_bytes = MT_JOB_DIFF_MAX_BYTES + 1;
    assert_int_equal(mt_job_diff_make(a.report, b.report, &diff, &error), MT_ERR_FORMAT);
    assert_null(diff);
    b.set.records[1].needed_bytes = MT_JOB_DIFF_MAX_BYTES;
    diff = diff_of(a.report, b.report);
    check(diff);
    mt_job_diff_free(diff);
    release_made(&a);
    release_made(&b);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
