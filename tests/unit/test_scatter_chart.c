/* The chart of sizes and lifetimes on random models: cells and both histograms sum to all blocks,
 * at every size of the picture. */
#include "cmocka_all.h"

#include "chart.h"
#include "dice.h"
#include "drawing_checks.h"
#include "lifetimes_model.h"
#include "picture_sizes.h"
#include "util.h"

static uint64_t seed = 3;

static uint64_t dice(uint64_t below)
{
    return (dice_linear(&seed) >> 20) % below;
}

struct made {
    struct mt_report report;
    struct mt_device_report device;
    struct mt_lifetimes_builder *builder;
};

static void begin(struct made *made)
{
    memset(made, 0, sizeof *made);
    made->report.name = "made";
    made->report.devices = &made->device;
    made->report.device_count = 1;
    made->report.roles_inferred = true;
    made->device.events = 1;
    mt_lifetimes_builder_new(&made->report.arena, &made->builder);
}

static void add(struct made *made, uint64_t bytes, uint64_t ns, bool ended)
{
    struct mt_lifetime life = {.bytes = bytes,
                               .ns = ns,
                               .ended = ended,
                               .is_older = dice(9) == 0,
                               .role = (enum mt_role)dice(MT_ROLE_COUNT)};

    mt_lifetimes_builder_add(made->builder, &life);
    made->device.lifetimes = mt_lifetimes_builder_finish(made->builder);
}

static void end(struct made *made)
{
    mt_arena_release(&made->report.arena);
}

/* The number before a word of a title, without its commas. */
static uint64_t number_before(const char *title, const char *word)
{
    const char *end_at = strstr(title, word), *at = end_at;
    char plain[40];
    size_t n = 0;

    assert_non_null(end_at);
    while (at > title && (at[-1] == ',' || (at[-1] >= '0' && at[-1] <= '9')))
        at--;
    for (; at < end_at; at++)
        if (*at != ',')
            plain[n++] = *at;
    plain[n] = '\0';
    return strtoull(plain, NULL, 10);
}

static struct mt_lifetime_sum sum_of(const struct mt_drawing *drawing, const char *role)
{
    struct mt_lifetime_sum sum = {0, 0};
    size_t i;

    for (i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!drawing_is(op, role))
            continue;
        assert_non_null(op->title);
        sum.blocks += number_before(op->title, " block");
        sum.bytes += number_before(op->title, strcmp(role, "cell") ? " B in" : " B;");
    }
    return sum;
}

static void check_sum(const struct mt_drawing *drawing, const struct mt_lifetimes *lifetimes,
                      const char *role)
{
    struct mt_lifetime_sum sum = sum_of(drawing, role);

    if (!drawing_find(drawing, role))
        return; /* no space for it */
    assert_int_equal(sum.blocks, lifetimes->all.blocks);
    assert_int_equal(sum.bytes, lifetimes->all.bytes);
}

/* Cells do not overlap. Blocks that were never freed have their own row. */
static void check_cells(const struct mt_drawing *drawing)
{
    const struct mt_op *row = drawing_find(drawing, "end-row");
    size_t i, j;

    for (i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!drawing_is(op, "cell"))
            continue;
        assert_true(op->width >= 1 && op->height >= 1);
        assert_true((strstr(op->title, "never freed") != NULL) == (op->y == row->y));
        assert_true(op->y >= row->y);
        for (j = 0; j < i && drawing->op_count < 1000; j++) {
            struct mt_box a = drawing_op_box(op), b = drawing_op_box(&drawing->ops[j]);

            assert_true(!drawing_is(&drawing->ops[j], "cell") || mt_box_overlap(&a, &b) <= 0);
        }
    }
}

static void draw_all_sizes(const struct made *made)
{
    const struct mt_lifetimes *lifetimes = made->device.lifetimes;
    struct mt_drawing drawing;
    const char *fault;
    size_t i;

    for (i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        struct mt_buf svg = {0};

        mt_chart_find("scatter")->draw(&made->report, &made->device, &sizes[i], &drawing);
        fault = drawing_fault(&drawing);
        if (fault)
            fail_msg("%s (%dx%d)", fault, (int)drawing.width, (int)drawing.height);
        assert_int_equal(sum_of(&drawing, "cell").blocks, lifetimes->all.blocks);
        check_sum(&drawing, lifetimes, "cell");
        check_sum(&drawing, lifetimes, "by-size");
        check_sum(&drawing, lifetimes, "by-life");
        check_cells(&drawing);
        mt_svg_write(&drawing, MT_THEME_AUTO, &svg);
        assert_true(svg.length < 500 * 1024);
        mt_buf_release(&svg);
        mt_drawing_release(&drawing);
    }
}

static void cells_and_sums_have_all_blocks(void **unused)
{
    struct made made;
    uint32_t round, i;

    (void)unused;
    for (round = 0; round < 24; round++) {
        uint32_t count = 1 + (uint32_t)dice(round % 4 ? 300 : 6000);
        uint64_t most_bits = 1 + dice(40), most_ns = 1 + dice(63);

        begin(&made);
        for (i = 0; i < count; i++)
            add(&made, dice(UINT64_C(1) << dice(most_bits)), dice(UINT64_C(1) << dice(most_ns)),
                dice(12) > 0);
        made.device.lifetimes->small_pool_bytes = dice(2) ? MT_MIB : 0;
        made.device.lifetimes->own_segment_bytes = dice(2) ? 10 * MT_MIB : 0;
        draw_all_sizes(&made);
        end(&made);
    }
}

static void extremes_are_drawn(void **unused)
{
    static const struct {
        uint64_t bytes, ns;
        bool ended;
    } lives[] = {{0, 0, true},           {0, 0, false},          {UINT64_MAX / 4, UINT64_MAX, true},
                 {1, UINT64_MAX, false}, {512, 1000, true},      {UINT64_MAX / 4, 0, false},
                 {MT_MIB, 999999, true}, {513, 1000000000, true}};
    struct made made;
    size_t i;

    (void)unused;
    for (i = 0; i < MT_ARRAY_LEN(lives); i++) {
        begin(&made);
        add(&made, lives[i].bytes, lives[i].ns, lives[i].ended);
        made.device.lifetimes->small_pool_bytes = MT_MIB;
        made.device.lifetimes->own_segment_bytes = 10 * MT_MIB;
        draw_all_sizes(&made);
        end(&made);
    }
    begin(&made);
    for (i = 0; i < MT_ARRAY_LEN(lives); i++)
        add(&made, lives[i].bytes / 8, lives[i].ns, lives[i].ended);
    draw_all_sizes(&made);
    end(&made);
}

/* PyTorch's limits are at the upper edge of the cells with sizes up to the limit. */
static void limits_are_where_they_belong(void **unused)
{
    const struct mt_op *small = NULL, *limit = NULL;
    struct mt_drawing drawing;
    struct made made;
    size_t i;

    (void)unused;
    begin(&made);
    add(&made, 4 * MT_KIB, 1000000, true);
    add(&made, MT_MIB, 1000000, true);
    add(&made, MT_MIB + 1, 1000000, true);
    add(&made, 64 * MT_MIB, 1000000, true);
    mt_chart_find("scatter")->draw(&made.report, &made.device, &sizes[0], &drawing);
    assert_null(drawing_find(&drawing, "limit"));
    mt_drawing_release(&drawing);
    made.device.lifetimes->small_pool_bytes = MT_MIB;
    mt_chart_find("scatter")->draw(&made.report, &made.device, &sizes[0], &drawing);
    limit = drawing_find(&drawing, "limit");
    for (i = 0; i < drawing.op_count; i++)
        if (drawing_is(&drawing.ops[i], "cell") && strstr(drawing.ops[i].title, "to 1.00 MiB"))
            small = &drawing.ops[i];
    assert_non_null(small);
    assert_true(fabs(small->x + small->width + 1 - limit->points[0].x) < 0.01);
    assert_true(fabs(small->x + small->width + 1 - small[1].x) < 0.01); /* 1 MiB + 1 B */
    mt_drawing_release(&drawing);
    end(&made);
}

static void an_empty_chart_has_a_note(void **unused)
{
    struct mt_drawing drawing;
    struct made made;
    size_t i;

    (void)unused;
    begin(&made);
    for (i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        mt_chart_find("scatter")->draw(&made.report, NULL, &sizes[i], &drawing);
        assert_null(drawing_fault(&drawing));
        assert_non_null(drawing_find(&drawing, "nothing"));
        mt_drawing_release(&drawing);
    }
    end(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_and_sums_have_all_blocks),
        cmocka_unit_test(extremes_are_drawn),
        cmocka_unit_test(limits_are_where_they_belong),
        cmocka_unit_test(an_empty_chart_has_a_note),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
