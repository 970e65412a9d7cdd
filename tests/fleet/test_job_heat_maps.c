/* The heat maps of a job, on their display lists: cells show the largest value, and no data is not
 * zero. */
#include "job_chart_checks.h"

/* --- heat maps --- */

/* Tint at a point: 0 = none of the cells. */
static unsigned tint_at(const struct mt_drawing *drawing, double x, double y)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!drawing_is(op, "level"))
            continue;
        for (uint32_t c = 0; c < op->cell_count; c++) {
            const struct mt_grid_cell *cell = &op->cells[c];

            if (x >= op->x + cell->x && x < op->x + cell->x + cell->width && y >= op->y + cell->y &&
                y < op->y + cell->y + cell->height)
                return op->paint.tint;
        }
    }
    return 0;
}

static unsigned lane_count(const struct mt_op *lane)
{
    unsigned count;

    if (strstr(lane->title, "missing"))
        return 0;
    return sscanf(lane->title, "the largest of %u,", &count) == 1 ? count : 1;
}

static unsigned expected_tint(uint64_t bytes, uint64_t low, uint64_t high)
{
    double share = (double)(bytes - low) / (double)(high - low);

    return 2 + (unsigned)fmin(floor(share * 15), 14);
}

static uint64_t planted_peak(uint32_t rank, uint32_t step)
{
    return (30 + (rank * UINT64_C(7919) + step * UINT64_C(104729)) % 64) * MT_GIB;
}

static void check_row_of_cells(const struct mt_drawing *drawing, const struct mt_op *lane,
                               uint32_t first)
{
    for (uint32_t s = 0; s < SIMULATED_STEPS; s++) {
        double x = lane->x + (s + 0.5) * lane->width / (double)SIMULATED_STEPS;
        uint64_t bytes = 0;

        for (uint32_t r = first; r < first + lane_count(lane); r++)
            bytes = mt_max_u64(bytes, planted_peak(r, s));
        assert_int_equal(tint_at(drawing, x, lane->y + lane->height / 2),
                         expected_tint(bytes, 30 * MT_GIB, 93 * MT_GIB));
    }
}

/* A cell shows the largest of its ranks, at any number of them. The scale is that of all steps. */
TEST(cells_show_the_largest)
{
    for (size_t i = 2; i < MT_ARRAY_LEN(jobs); i++) {
        const struct simulated_job job = job_of(i);
        struct mt_drawing drawing;
        struct made made;
        uint32_t row = 0;

        add_job(&made, &job);
        for (uint32_t r = 0; r < made.set.record_count; r++)
            for (uint32_t s = 0; s < SIMULATED_STEPS; s++)
                made.set.records[r].steps[s].reserved_peak_bytes = planted_peak(r, s);
        made.set.records[0].steps[0].reserved_peak_bytes = planted_peak(0, 0);
        report_on(&made);
        draw(made.report, "steps", &usual, &drawing);
        for (size_t n = 0; nth(&drawing, "lane", n); n++) {
            if (i > 2)
                check_row_of_cells(&drawing, nth(&drawing, "lane", n), row);
            row += lane_count(nth(&drawing, "lane", n));
        }
        assert_int_equal(row, world_of(&job));
        mt_drawing_release(&drawing);
        release(&made);
    }
}

/* Where ranks share a row of pixels, its title does not count a missing rank. */
TEST(titles_count_ranks)
{
    static const char *const charts[] = {"steps", "times"};

    for (size_t i = 3; i < MT_ARRAY_LEN(jobs); i++)
        for (size_t chart = 0; chart < MT_ARRAY_LEN(charts); chart++) {
            const struct simulated_job job = bad_job_of(i);
            struct mt_drawing drawing;
            struct made made;
            uint32_t count = 0;

            add_job(&made, &job);
            report_on(&made);
            draw(made.report, charts[chart], &usual, &drawing);
            for (size_t n = 0; nth(&drawing, "lane", n); n++)
                count += lane_count(nth(&drawing, "lane", n));
            assert_int_equal(count, world_of(&job) - job.missing_count);
            mt_drawing_release(&drawing);
            release(&made);
        }
}

/* One short peak of one rank is the darkest cell of the whole picture. */
TEST(a_short_peak_is_seen_over_time)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(jobs); i++) {
        const struct simulated_job job = job_of(i);
        uint32_t rank = world_of(&job) * 2 / 3, row = 0;
        struct mt_drawing drawing;
        struct made made;

        add_job(&made, &job);
        for (uint32_t r = 0; r < made.set.record_count; r++)
            for (uint32_t c = 0; c < MT_RECORD_COLUMNS; c++)
                made.set.records[r].columns[c].reserved_bytes = 10 * MT_GIB;
        made.set.records[rank].columns[300].reserved_bytes = 40 * MT_GIB;
        report_on(&made);
        draw(made.report, "times", &usual, &drawing);
        for (size_t n = 0; nth(&drawing, "lane", n); n++) {
            const struct mt_op *lane = nth(&drawing, "lane", n);
            double x = lane->x + 300.5 * lane->width / MT_RECORD_COLUMNS;
            bool is_there = rank >= row && rank < row + lane_count(lane);

            assert_int_equal(tint_at(&drawing, x, lane->y + lane->height / 2) == 16, is_there);
            assert_true(tint_at(&drawing, lane->x + 1, lane->y + lane->height / 2) < 16);
            row += lane_count(lane);
        }
        mt_drawing_release(&drawing);
        release(&made);
    }
}

/* Nothing is not 0: a rank that ended early, and one that reserved nothing. */
TEST(no_data_is_not_zero)
{
    struct simulated_job job = job_of(2);
    struct mt_drawing drawing;
    const struct mt_op *lane;
    struct made made;

    job.missing[job.missing_count++] = 6;
    add_job(&made, &job);
    made.set.records[2].step_count = 10;
    for (uint32_t s = 0; s < SIMULATED_STEPS; s++)
        made.set.records[3].steps[s].reserved_peak_bytes = 0;
    made.set.records[4].step_count = 0;
    report_on(&made);
    draw(made.report, "steps", &usual, &drawing);
    lane = nth(&drawing, "lane", 2);
    assert_true(tint_at(&drawing, lane->x + lane->width * 0.45, lane->y + 5) > 2);
    assert_int_equal(tint_at(&drawing, lane->x + lane->width * 0.55, lane->y + 5), 0);
    lane = nth(&drawing, "lane", 3);
    assert_int_equal(tint_at(&drawing, lane->x + 5, lane->y + 5), 2);
    lane = nth(&drawing, "lane", 4);
    assert_int_equal(tint_at(&drawing, lane->x + 5, lane->y + 5), 0);
    lane = nth(&drawing, "lane", 6);
    assert_int_equal(tint_at(&drawing, lane->x + 5, lane->y + 5), 0);
    assert_true(nth(&drawing, "gap", 0)->paint.hatched);
    check_near(nth(&drawing, "gap", 0)->y, lane->y);
    check_near(nth(&drawing, "gap", 0)->height, lane->height);
    assert_null(nth(&drawing, "gap", 1));
    assert_says(&drawing, "legend", "No data");
    assert_says(&drawing, "legend", "Missing ranks");
    assert_says(&drawing, "scale-bytes", "0 B");
    mt_drawing_release(&drawing);
    release(&made);
}

/* A death is marked at its rank and its step. */
TEST(a_death_is_at_its_step)
{
    struct simulated_job job = job_of(3);
    const struct mt_op *lane;
    struct mt_drawing drawing;
    struct made made;

    job.dying_rank = 29;
    add_job(&made, &job);
    made.set.records[29].step_count = 13;
    made.set.records[29].last_step = 12;
    report_on(&made);
    draw(made.report, "steps", &usual, &drawing);
    const struct mt_op *op = nth(&drawing, "death", 0);
    lane = nth(&drawing, "lane", 29);
    assert_int_equal(op->cell_count, 1);
    check_near(op->x + op->cells[0].x, lane->x + floor(12 * lane->width / (double)SIMULATED_STEPS));
    check_near(op->y + op->cells[0].y, lane->y);
    mt_drawing_release(&drawing);
    draw(made.report, "times", &usual, &drawing);
    op = nth(&drawing, "death", 0);
    assert_int_equal(op->cell_count, 1);
    /* 60 s of 360 */
    assert_true(fabs(op->cells[0].x - op->width / 6) <= 4);
    mt_drawing_release(&drawing);
    release(&made);
}

TEST(dry_runs_have_no_times)
{
    const struct simulated_job job = job_of(2);
    struct mt_drawing drawing;
    struct made made;

    add_job(&made, &job);
    for (uint32_t r = 0; r < made.set.record_count; r++)
        made.set.records[r].is_dry_run = true;
    report_on(&made);
    assert_false(chart_named("times")->called_for(made.report));
    assert_true(chart_named("steps")->called_for(made.report));
    draw(made.report, "times", &usual, &drawing);
    assert_says(&drawing, "nothing", "No times were recorded");
    mt_drawing_release(&drawing);
    made.set.records[3].is_dry_run = false;
    assert_true(chart_named("times")->called_for(made.report));
    release(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
