/* The table of allocators and its picture, on random tables: bars sum to the reserved bytes and are
 * sorted, diamonds mark the limits, rows with different requests are refused. */
#include "cmocka_all.h"

#include "dice.h"
#include "drawing_checks.h"
#include "picture_sizes.h"
#include "policies_chart.h"
#include "util.h"

static const struct mt_known_size cards[] = {{"one with 12 GB", UINT64_C(12616466432)},
                                             {"one with 16 GB", UINT64_C(15633680465)},
                                             {"another with 16 GB", UINT64_C(16932908236)},
                                             {"one with 80 GB", UINT64_C(84943715041)},
                                             {NULL, 0}};

static uint64_t random_state = 17;

static void add_row(struct mt_policy_table *table, const char *policy, uint64_t requested,
                    uint64_t allocated, uint64_t reserved, uint64_t fit)
{
    struct mt_policy_row *row = &table->rows[table->row_count++];

    memset(row, 0, sizeof *row);
    snprintf(row->policy, sizeof row->policy, "%s", policy);
    row->what = "";
    row->fit.policy_exact = true;
    row->fit.requests = 1000;
    row->fit.requested_peak_bytes = requested;
    row->fit.allocated_peak_bytes = allocated;
    row->fit.reserved_peak_bytes = reserved;
    row->fit.fits = fit > 0;
    row->fit.high_bytes = fit;
}

static void begin(struct mt_policy_table *table)
{
    memset(table, 0, sizeof *table);
    table->name = "made";
    table->sizes = cards;
}

static void fill_random(struct mt_policy_table *table)
{
    uint64_t requested = UINT64_C(1) << high_below(44), allocated, reserved;
    uint32_t count = 1 + (uint32_t)high_below(high_below(4) ? 8 : MT_MAX_POLICY_ROWS), i;
    char name[80];

    begin(table);
    for (i = 0; i < count; i++) {
        static const char *const names[] = {"pytorch:expandable_segments:True,max_split_size_mb:%u",
                                            "bfc:limit=%u", "x%u"};

        snprintf(name, sizeof name, i % 3 == 0 ? names[0] : i % 3 == 1 ? names[1] : names[2], i);
        allocated = requested + high_below(requested / 4 + 1);
        reserved = allocated + high_below(high_below(3) ? requested / 2 + 1 : requested * 8);
        add_row(table, name, requested, allocated, reserved,
                high_below(6) ? requested + high_below(reserved * 2 - requested + 1) : 0);
        table->rows[i].fit.policy_exact = high_below(3) > 0;
        table->rows[i].fit.policy_doubt = "its rules were read off, not read";
        table->rows[i].what = high_below(2) ? "what somebody calls it, with many words" : "";
        table->rows[i].fit.smaller_fit_bytes = high_below(4) ? 0 : requested;
        table->rows[i].fit.recorded_ooms = high_below(5) == 0;
    }
    table->rows[0].is_own = high_below(4) > 0;
    assert_int_equal(mt_policy_table_finish(table, NULL), MT_OK);
}

static uint64_t number_after(const char *title, const char *word)
{
    const char *at = strstr(title, word);
    char plain[40];
    size_t n = 0;

    assert_non_null(at);
    for (at += strlen(word); *at == ',' || (*at >= '0' && *at <= '9'); at++)
        if (*at != ',')
            plain[n++] = *at;
    plain[n] = '\0';
    return strtoull(plain, NULL, 10);
}

/* Pixels a byte, of the two ends of the axis: 0 and the line of the bound. */
static double scale_of(const struct mt_drawing *drawing, const struct mt_policy_table *table,
                       double *zero)
{
    const struct mt_op *bar = drawing_find(drawing, "bar");
    const struct mt_op *bound = drawing_find(drawing, "bound");

    *zero = bar->x;
    return (bound->points[0].x - bar->x) / (double)table->bound_bytes;
}

static void check_rows(const struct mt_drawing *drawing, const struct mt_policy_table *table)
{
    double zero, scale = scale_of(drawing, table, &zero), parts = 0;
    uint64_t last = 0;
    uint32_t row = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (drawing_is(op, "row")) {
            assert_true(number_after(op->title, "reserved ") >= last);
            last = number_after(op->title, "reserved ");
            assert_int_equal(last, table->rows[row].fit.reserved_peak_bytes);
            assert_int_equal(number_after(op->title, "allocated "),
                             table->rows[row].fit.allocated_peak_bytes);
            parts = 0;
            row++;
        }
        if (drawing_is(op, "requested") || drawing_is(op, "rounding") || drawing_is(op, "cached"))
            parts += op->width;
        if (drawing_is(op, "bar")) {
            assert_true(fabs(op->width - parts) < 0.01);
            assert_true(fabs(op->width - scale * (double)last) < 0.5);
        }
        if (drawing_is(op, "diamond"))
            assert_true(fabs(op->points[0].x - zero -
                             scale * (double)number_after(op->title, "limit: ")) < 0.5);
    }
    assert_true(row == table->row_count || drawing_find(drawing, "rest"));
    if (drawing->width == 1200)
        assert_int_equal(row, table->row_count);
}

TEST(bars_sum_to_what_is_reserved)
{
    static struct mt_policy_table table;
    struct mt_drawing drawing;

    for (uint32_t round = 0; round < 60; round++) {
        fill_random(&table);
        for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
            struct mt_buf svg = {0};

            mt_policies_draw(&table, &sizes[i], &drawing);
            const char *fault = drawing_fault(&drawing);
            if (fault)
                fail_msg("%s (%dx%d, %u rows)", fault, (int)drawing.width, (int)drawing.height,
                         table.row_count);
            check_rows(&drawing, &table);
            mt_svg_write(&drawing, MT_THEME_AUTO, &svg);
            assert_true(svg.length < 100 * 1024);
            mt_buf_release(&svg);
            mt_drawing_release(&drawing);
        }
        mt_policy_table_release(&table);
    }
}

static const struct mt_op *op_with_text(const struct mt_drawing *drawing, const char *text)
{
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing->ops[i].text && strcmp(drawing->ops[i].text, text) == 0)
            return &drawing->ops[i];
    fail_msg("no text says \"%s\"", text);
    return NULL;
}

/* Names are not cut, cards side by side have two lines, and the caveat is complete. */
TEST(words_are_whole)
{
    static const struct mt_known_size near[] = {
        {"T4 16 GB", UINT64_C(15655829504)}, {"V100 16 GB", UINT64_C(16945512448)}, {NULL, 0}};
    static struct mt_policy_table table;
    struct mt_drawing drawing;

    for (size_t i = 0; i < 2; i++) {
        begin(&table);
        add_row(&table, "pytorch:expandable_segments:True", MT_GIB, MT_GIB, MT_GIB, MT_GIB);
        add_row(&table, "rmm-pool:initial_pool_size=0B", MT_GIB, MT_GIB, 20 * MT_GIB, MT_GIB);
        table.rows[0].is_own = true;
        table.rows[0].fit.recorded_ooms = 1;
        assert_int_equal(mt_policy_table_finish(&table, NULL), MT_OK);
        table.sizes = near;
        mt_policies_draw(&table, &(struct mt_chart_options){.width = i ? 830 : 0}, &drawing);
        assert_null(drawing_fault(&drawing));
        op_with_text(&drawing, "expandable_segments:True");
        op_with_text(&drawing, "rmm-pool:initial_pool_size=0B");
        op_with_text(&drawing,
                     "The run reached its memory limit: with more memory, it may make other "
                     "requests.");
        const struct mt_op *t4 = op_with_text(&drawing, "T4 16 GB");
        const struct mt_op *v100 = op_with_text(&drawing, "V100 16 GB");
        assert_true(t4->y > v100->y + 12 || v100->y > t4->y + 12);
        mt_drawing_release(&drawing);
        mt_policy_table_release(&table);
    }
}

/* A name that is too long breaks behind a comma, where rows are high enough. */
TEST(long_options_take_two_lines)
{
    static struct mt_policy_table table;
    struct mt_drawing drawing;

    begin(&table);
    add_row(&table, "pytorch:expandable_segments:True,roundup_power2_divisions:16", MT_GIB, MT_GIB,
            MT_GIB, MT_GIB);
    assert_int_equal(mt_policy_table_finish(&table, NULL), MT_OK);
    mt_policies_draw(&table, &(struct mt_chart_options){.width = 830}, &drawing);
    assert_null(drawing_fault(&drawing));
    op_with_text(&drawing, "expandable_segments:True,");
    op_with_text(&drawing, "roundup_power2_divisions:16");
    mt_drawing_release(&drawing);
    mt_policy_table_release(&table);
}

/* Where addresses decide, a line leads from the limit of the best order to the safe limit. */
TEST(limits_of_several_orders_are_a_line)
{
    static struct mt_policy_table table;
    struct mt_drawing drawing;
    const struct mt_op *row;

    begin(&table);
    add_row(&table, "pytorch", MT_GIB, MT_GIB, 2 * MT_GIB, MT_GIB + 300 * MT_MIB);
    table.rows[0].fit.low_bytes = MT_GIB + 200 * MT_MIB;
    table.rows[0].fit.order_count = 8;
    assert_int_equal(mt_policy_table_finish(&table, NULL), MT_OK);
    mt_policies_draw(&table, &(struct mt_chart_options){.width = 1200}, &drawing);
    assert_null(drawing_fault(&drawing));
    assert_non_null(drawing_find(&drawing, "range"));
    row = drawing_find(&drawing, "row");
    assert_non_null(strstr(row->title, "for all 8 address orders"));
    mt_drawing_release(&drawing);
    mt_policy_table_release(&table);
}

TEST(extremes_are_drawn)
{
    static const uint64_t values[] = {0, 1, MT_GIB, UINT64_MAX / 2};
    static struct mt_policy_table table;
    struct mt_drawing drawing;

    for (size_t k = 0; k < MT_ARRAY_LEN(values); k++) {
        begin(&table);
        add_row(&table, "none", values[k], values[k], values[k], values[k]);
        assert_int_equal(mt_policy_table_finish(&table, NULL), MT_OK);
        for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
            mt_policies_draw(&table, &sizes[i], &drawing);
            assert_null(drawing_fault(&drawing));
            mt_drawing_release(&drawing);
        }
        mt_policy_table_release(&table);
    }
}

TEST(others_requests_are_refused)
{
    static struct mt_policy_table table;
    struct mt_error error = {0};

    begin(&table);
    add_row(&table, "a", 100, 110, 120, 120);
    add_row(&table, "b", 101, 110, 120, 120);
    assert_int_equal(mt_policy_table_finish(&table, &error), MT_ERR_USAGE);
    assert_non_null(strstr(error.text, "do not receive the same requests"));
    table.rows[1].fit.requested_peak_bytes = 100;
    table.rows[1].fit.requests++;
    assert_int_equal(mt_policy_table_finish(&table, &error), MT_ERR_USAGE);
    table.rows[1].fit.requests--;
    assert_int_equal(mt_policy_table_finish(&table, &error), MT_OK);
    mt_policy_table_release(&table);
    begin(&table);
    assert_int_equal(mt_policy_table_finish(&table, &error), MT_ERR_USAGE);
}

TEST(a_policy_that_refuses_is_known)
{
    static struct mt_policy_table table;

    begin(&table);
    add_row(&table, "a", 100, 110, 120, 120);
    add_row(&table, "b", 40, 50, 120, 120);
    assert_false(mt_policy_row_refuses(&table, &table.rows[1]));
    table.rows[1].fit.requests--;
    assert_true(mt_policy_row_refuses(&table, &table.rows[1]));
    table.rows[1].fit.gaps_left_out = 1;
    assert_false(mt_policy_row_refuses(&table, &table.rows[1]));
    table.rows[1].fit.gaps_left_out = 0;
    table.starts_in_middle = true;
    assert_false(mt_policy_row_refuses(&table, &table.rows[1]));
    mt_policy_table_release(&table);
}

/* PyTorch's default splits a restored pool as the run did. Other options omit its gaps. */
TEST(omitted_gaps_are_requests_of_the_trace)
{
    static struct mt_policy_table table;
    struct mt_error error = {0};

    begin(&table);
    add_row(&table, "a", 100, 110, 120, 120);
    add_row(&table, "b", 96, 110, 130, 120);
    table.rows[1].fit.requests -= 18;
    table.rows[1].fit.gaps_left_out = 18;
    assert_int_equal(mt_policy_table_finish(&table, &error), MT_OK);
    assert_int_equal(table.bound_bytes, 96);
    assert_int_equal(mt_policy_row_requests(&table.rows[1]), 1000);
    table.rows[1].fit.gaps_left_out = 17;
    assert_int_equal(mt_policy_table_finish(&table, &error), MT_ERR_USAGE);
    assert_non_null(strstr(error.text, "1000 and 999 of them"));
    mt_policy_table_release(&table);
}

TEST(twins_are_one_row)
{
    static struct mt_policy_table table;

    begin(&table);
    add_row(&table, "b", 100, 110, 150, 140);
    table.rows[0].is_own = true;
    add_row(&table, "a", 100, 110, 120, 120);
    add_row(&table, "b", 100, 110, 150, 140);
    assert_int_equal(mt_policy_table_finish(&table, NULL), MT_OK);
    assert_int_equal(table.row_count, 2);
    assert_string_equal(table.rows[0].policy, "a");
    assert_true(table.rows[1].is_own);
    assert_int_equal(table.bound_bytes, 100);
    mt_policy_table_release(&table);
}

TEST(sentences_name_the_best_and_the_seemingly_bad)
{
    static struct mt_policy_table table;

    begin(&table);
    add_row(&table, "own", 6 * MT_GIB, 6 * MT_GIB, 20 * MT_GIB, 8 * MT_GIB);
    table.rows[0].is_own = true;
    add_row(&table, "better", 6 * MT_GIB, 6 * MT_GIB, 7 * MT_GIB, 6 * MT_GIB);
    assert_int_equal(mt_policy_table_finish(&table, NULL), MT_OK);
    assert_string_equal(
        table.finding[0],
        "better reserves 13.0 GiB less than the run did (65.0%) and runs within 6.00 GiB.");
    assert_string_equal(table.finding[1],
                        "own reserves 2.5 \xC3\x97 what it needs: it runs within 8.00 GiB, so a "
                        "device can have less than its reserved peak.");
    mt_policy_table_release(&table);
    begin(&table);
    add_row(&table, "own", 100 * MT_MIB, 100 * MT_MIB, 101 * MT_MIB, 101 * MT_MIB);
    table.rows[0].is_own = true;
    add_row(&table, "other", 100 * MT_MIB, 100 * MT_MIB, 102 * MT_MIB, 102 * MT_MIB);
    table.rows[1].fit.policy_exact = false;
    assert_int_equal(mt_policy_table_finish(&table, NULL), MT_OK);
    assert_string_equal(table.finding[0], "None of these reserves less than the run did, 101 MiB.");
    assert_string_equal(table.finding[1],
                        "The best is 1.0% above the lower bound of 100 MiB, below "
                        "which no allocator can go.");
    mt_policy_table_release(&table);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
