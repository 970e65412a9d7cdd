/* The chart of the common call tree: cells are as wide as their bytes, in the color of their
 * imbalance, and nothing overlaps at any size and number of ranks. */
#define _GNU_SOURCE
#include "chart_checks.h"

#include "chart_job.h"
#include "record_maker.h"

static const struct mt_job_chart_options usual = {0};

TEST(marks_are_bounded_at_every_number_of_ranks)
{
    static const uint32_t ranks[] = {1, 8, 64, 1024, 16384};

    for (size_t i = 0; i < MT_ARRAY_LEN(ranks); i++) {
        struct mt_rank_set set = {0};

        chart_job(&set, ranks[i]);
        struct mt_job_report *report = report_of(&set);
        for (int k = 0; k < CHART_SIZES; k++) {
            struct mt_drawing drawing;

            draw_chart(report, "tree", &chart_sizes[k], &drawing);
            assert_true(drawing.op_count < 700);
            mt_drawing_release(&drawing);
        }
        mt_job_report_free(report);
        mt_rank_set_release(&set);
    }
}

/* The first cell whose title begins with that. */
static const struct mt_op *cell_of(const struct mt_drawing *drawing, const char *title)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (op->role && !strncmp(op->role, "cell:", 5) && op->title &&
            !strncmp(op->title, title, strlen(title)))
            return op;
    }
    fail_msg("no cell %s", title);
    return NULL;
}

TEST(cells_are_as_wide_as_their_bytes)
{
    struct mt_rank_set set = {0};
    struct mt_drawing drawing;
    const struct mt_op *adam, *embed;
    double mean = 0, row = 0;

    chart_job(&set, 1024);
    struct mt_job_report *report = report_of(&set);
    draw_chart(report, "tree", &usual, &drawing);
    for (uint32_t r = 0; r < 1024; r++)
        mean += (double)report->rows[r].record->allocated_peak.bytes / 1024;
    const struct mt_op *root = cell_of(&drawing, "allocated peaks");
    adam = cell_of(&drawing, "step adam.py:310");
    embed = cell_of(&drawing, "embed embed.py:7");
    /* Cells end a pixel early. */
    assert_true(fabs(root->width + 1 - 1152) < 0.01);
    assert_true(fabs(adam->width + 1 - 1152 * (double)(18 * MT_GIB) / mean) < 0.01);
    assert_true(fabs(embed->width + 1 - 1152 * 1.5 * (double)MT_GIB / mean) < 0.01);
    for (size_t i = 0; i < drawing.op_count; i++) {
        const struct mt_op *op = &drawing.ops[i];

        if (op->role && !strncmp(op->role, "cell:", 5) && op->y > root->y && op->y < root->y + 30)
            row += op->width;
    }
    assert_true(row > 1140 && row <= 1152); /* sums close except for the gaps */
    mt_drawing_release(&drawing);
    mt_job_report_free(report);
    mt_rank_set_release(&set);
}

TEST(colors_and_titles_say_how_ranks_differ)
{
    struct mt_rank_set set = {0};
    struct mt_drawing drawing;
    const struct mt_op *embed;

    chart_job(&set, 1024);
    struct mt_job_report *report = report_of(&set);
    draw_chart(report, "tree", &usual, &drawing);
    embed = cell_of(&drawing, "embed embed.py:7");
    assert_int_equal(embed->paint.fill, MT_COLOR_CHANGE_0 + 8 + 7); /* 300% */
    assert_int_equal(cell_of(&drawing, "step adam.py:310")->paint.fill, MT_COLOR_CHANGE_0 + 8);
    assert_non_null(strstr(embed->title, "mean 1.50 GiB (1,610,612,736 B) per rank"));
    assert_non_null(strstr(embed->title, "minimum 0 B on rank 256;"));
    assert_non_null(strstr(embed->title, "maximum 6.00 GiB (6,442,450,944 B) on rank 0, 300%"));
    assert_non_null(strstr(embed->title, "sum 1.50 TiB (1,649,267,441,664 B), on 256 of 1,024"));
    /* Too narrow for a cell, but the largest difference of all. */
    assert_true(drawing_says(&drawing, "holder-name", "remember train.py:99"));
    assert_true(drawing_says(&drawing, "holder-who", "rank 341"));
    assert_true(drawing_says(&drawing, "holder-above", "1,024"));
    assert_true(drawing_says(&drawing, "holder-name", "no call path kept"));
    assert_non_null(cell_of(&drawing, "no call path kept"));
    assert_true(drawing_says(&drawing, "facts", "1,024 ranks"));
    mt_drawing_release(&drawing);
    mt_job_report_free(report);
    mt_rank_set_release(&set);
}

TEST(names_stay_text)
{
    static char names[6][10001];

    for (unsigned variant = 0; variant < 6; variant++) {
        struct mt_rank_set set = {0};
        struct mt_record_leaf leaves[8];

        for (int32_t rank = 0; rank < 3; rank++) {
            struct mt_rank_record record = chart_record(rank ? -1 : 0, leaves);
            uint32_t path = MT_NO_PATH;

            record.trace_name = hostile_name(names[5], variant + 1);
            for (unsigned i = 0; i < 5; i++) {
                const char *name = hostile_name(names[i], variant + i);

                path = mt_rank_set_path(&set, path, name, strlen(name));
                if (i > 1)
                    record.leaves[record.leaf_count++] = (struct mt_record_leaf){
                        path, MT_ROLE_OTHER, (uint64_t)(rank + 1) << (30 + i), 1, path};
            }
            for (uint32_t i = 0; i < record.leaf_count; i++) {
                record.allocated_peak.bytes += leaves[i].bytes;
                record.role_bytes[MT_ROLE_OTHER] += leaves[i].bytes;
            }
            record.identity.process_id += (uint64_t)rank;
            mt_rank_set_add(&set, &record);
        }
        draw_all_sizes(&set, "tree");
    }
}

TEST(random_trees_fit)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct mt_rank_set set = {0};
        struct record_maker maker = {seed, &set};
        uint32_t rows = 1 + (uint32_t)maker_dice(&maker, 20);

        for (uint32_t r = 0; r < rows; r++) {
            struct mt_record_leaf leaves[40];
            struct mt_rank_record record = chart_record((int32_t)r, leaves);
            uint64_t count = maker_dice(&maker, 40);

            for (uint64_t i = 0; i < count; i++) {
                struct mt_record_leaf leaf = {
                    maker_path(&maker), (enum mt_role)maker_dice(&maker, MT_ROLE_COUNT),
                    maker_dice(&maker, UINT64_C(1) << maker_dice(&maker, 38)), 1, MT_NO_PATH};
                bool is_new = true;

                for (uint32_t k = 0; k < record.leaf_count; k++)
                    is_new &= leaves[k].path != leaf.path || leaves[k].role != leaf.role;
                if (!is_new)
                    continue;
                leaves[record.leaf_count++] = leaf;
                record.role_bytes[leaf.role] += leaf.bytes;
                record.allocated_peak.bytes += leaf.bytes;
            }
            mt_rank_set_add(&set, &record);
        }
        draw_all_sizes(&set, "tree");
    }
}

/* Chains of calls that are deeper than a picture, and more cells than it can show. */
TEST(deep_and_wide_trees_are_cut)
{
    struct mt_rank_set set = {0};
    struct mt_record_leaf leaves[MT_RECORD_LEAVES];
    struct mt_rank_record record = chart_record(0, leaves);

    for (uint32_t i = 0; i < MT_RECORD_LEAVES; i++) {
        uint32_t path = MT_NO_PATH;
        char frame[40];

        for (uint32_t depth = 0; depth < 1 + i % 90; depth++) {
            snprintf(frame, sizeof frame, "call%u deep.py:%u", i % 11, depth);
            path = mt_rank_set_path(&set, path, frame, strlen(frame));
        }
        snprintf(frame, sizeof frame, "leaf%u deep.py:1", i);
        path = mt_rank_set_path(&set, path, frame, strlen(frame));
        leaves[record.leaf_count++] =
            (struct mt_record_leaf){path, MT_ROLE_OTHER, MT_GIB + i, 1, path};
        record.role_bytes[MT_ROLE_OTHER] += MT_GIB + i;
        record.allocated_peak.bytes += MT_GIB + i;
    }
    mt_rank_set_add(&set, &record);
    draw_all_sizes(&set, "tree");
}

TEST(nothing_is_said_to_be_nothing)
{
    struct mt_rank_set set = {0};
    struct mt_rank_record record = chart_record(0, NULL);
    struct mt_drawing drawing;

    mt_rank_set_add(&set, &record);
    struct mt_job_report *report = report_of(&set);
    assert_false(chart_named("tree")->called_for(report));
    draw_chart(report, "tree", &usual, &drawing);
    assert_true(drawing_says(&drawing, "nothing", "No rank held memory"));
    mt_drawing_release(&drawing);
    mt_job_report_free(report);
    mt_rank_set_release(&set);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
