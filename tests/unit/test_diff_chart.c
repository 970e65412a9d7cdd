/* The picture of a difference, on random reports: the waterfall sums to the byte, shrinking parts
 * are hatched, unchanged parts are not listed, warnings are visible. */
#include "cmocka_all.h"

#include "chart_scale.h"
#include "dice.h"
#include "diff_chart.h"
#include "drawing_checks.h"
#include "picture_sizes.h"
#include "util.h"

static uint64_t random_state = 13;

enum { MAX_SITES = 40 };

struct made {
    struct mt_arena arena;
    struct mt_report reports[2];
    struct mt_device_report devices[2];
    struct mt_answer answers[2];
    struct mt_diff_row roles[MT_ROLE_COUNT], sites[MAX_SITES];
    struct mt_device_diff device;
    struct mt_diff diff;
    struct mt_question question;
    struct mt_diff_view view;
};

static int by_change(const void *a, const void *b)
{
    const struct mt_diff_row *x = a, *y = b;

    return (mt_diff_size(x) < mt_diff_size(y)) - (mt_diff_size(x) > mt_diff_size(y));
}

static void fill_row(struct mt_diff_row *row, uint64_t scale, uint64_t base)
{
    bool in_a = high_below(4) > 0, in_b = !in_a || high_below(4) > 0;

    row->a_blocks = in_a ? 1 + high_below(9) : 0;
    row->b_blocks = in_b ? 1 + high_below(9) : 0;
    row->a_bytes = in_a ? base + 1 + high_below(scale) : 0;
    row->b_bytes = in_b ? base + 1 + high_below(scale) : 0;
    if (in_a && in_b && high_below(3) == 0)
        row->b_bytes = row->a_bytes;
}

#define LONG_LABEL                                                                                 \
    "a_function_with_a_name_that_nobody_can_remember a_file_with_a_long_name.py:1097 < x.py:20"

static void make(struct made *made, uint64_t scale, uint64_t base, uint32_t roles, uint32_t sites)
{
    static const char *const labels[] = {"forward linear.py:134 < train.py:58",
                                         "backward of cross_entropy train.py:77", "x", LONG_LABEL};

    memset(made, 0, sizeof *made);
    for (uint32_t i = 0; i < roles; i++) {
        made->roles[i] =
            (struct mt_diff_row){.label = "role", .phase = "", .role = (enum mt_role)i};
        fill_row(&made->roles[i], scale, base);
        made->answers[0].instant.bytes.allocated += made->roles[i].a_bytes;
        made->answers[1].instant.bytes.allocated += made->roles[i].b_bytes;
    }
    qsort(made->roles, roles, sizeof *made->roles, by_change);
    for (uint32_t i = 0; i < sites; i++) {
        /* one statement per number: initializers may be evaluated in any order */
        made->sites[i].label = labels[high_below(4)];
        made->sites[i].label_a = high_below(5) ? NULL : "forward old.py:1";
        made->sites[i].phase = high_below(2) ? "forward" : "";
        made->sites[i].role = (enum mt_role)high_below(MT_ROLE_COUNT);
        fill_row(&made->sites[i], scale, 0);
    }
    qsort(made->sites, sites, sizeof *made->sites, by_change);
    for (uint32_t side = 0; side < 2; side++) {
        made->answers[side].instant.bytes.reserved =
            made->answers[side].instant.bytes.allocated + high_below(scale);
        made->answers[side].instant.phase = MT_NO_PHASE;
        made->answers[side].instant.step = (int64_t)high_below(9);
        made->devices[side].answer = &made->answers[side];
        made->reports[side].name = side ? "new_run" : "base_run";
        made->reports[side].roles_inferred = true;
        made->reports[side].devices = &made->devices[side];
        made->reports[side].device_count = 1;
    }
    made->device = (struct mt_device_diff){.a = &made->devices[0],
                                           .b = &made->devices[1],
                                           .roles = {made->roles, roles},
                                           .sites = {made->sites, sites}};
    made->diff = (struct mt_diff){.a = &made->reports[0],
                                  .b = &made->reports[1],
                                  .devices = &made->device,
                                  .device_count = 1};
    made->view = (struct mt_diff_view){&made->diff, &made->device, &made->question};
}

static void draw(struct mt_drawing *drawing, const struct made *made,
                 const struct mt_chart_options *options)
{
    mt_diff_draw(&made->view, options, drawing);
    const char *fault = drawing_fault(drawing);
    if (fault)
        fail_msg("%s (%dx%d)", fault, (int)drawing->width, (int)drawing->height);
}

static uint64_t number_at(const char *text)
{
    char plain[40];
    size_t n = 0;

    for (; *text == ',' || (*text >= '0' && *text <= '9'); text++)
        if (*text != ',')
            plain[n++] = *text;
    plain[n] = '\0';
    return strtoull(plain, NULL, 10);
}

/* "Activations: 12 B in 3 blocks, then 45 B in 5 (+33 B)" */
static uint64_t change_of(const char *title)
{
    const char *at = strrchr(title, '(');

    assert_non_null(at);
    if (at[1] == '+')
        return number_at(at + 2);
    if ((unsigned char)at[1] == 0xE2)
        return 0 - number_at(at + 4);
    return number_at(at + 1);
}

static void check_falls(const struct mt_drawing *drawing, const struct made *made)
{
    struct chart_scale scale = chart_scale_of(drawing, "tick-y");
    uint64_t level = made->answers[0].instant.bytes.allocated;
    bool is_broken = drawing_find(drawing, "break") != NULL;
    uint32_t ends = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (drawing_is(op, "end")) {
            assert_int_equal(number_at(strchr(op->title, ':') + 2), level);
            if (!is_broken && op->height > 2)
                assert_true(fabs(op->height * scale.bytes_per_pixel - (double)level) <=
                            scale.bytes_per_pixel);
            ends++;
        }
        if (drawing_is(op, "change")) {
            uint64_t change = change_of(op->title);
            uint64_t size = change >> 63 ? 0 - change : change;

            level += change;
            assert_true(op->paint.hatched == (change >> 63 && op->height > 1.5));
            if (op->height > 1.5)
                assert_true(fabs(op->height * scale.bytes_per_pixel - (double)size) <=
                            scale.bytes_per_pixel);
        }
    }
    assert_int_equal(ends, 2);
    assert_int_equal(level, made->answers[1].instant.bytes.allocated);
}

/* The largest changes in order, without unchanged entries. */
static void check_sites(const struct mt_drawing *drawing, const struct made *made)
{
    uint32_t row = 0, changed = 0;

    while (changed < made->device.sites.count && mt_diff_size(&made->sites[changed]))
        changed++;
    for (size_t i = 0; i < drawing->op_count; i++) {
        if (!drawing_is(&drawing->ops[i], "site"))
            continue;
        assert_true(row < changed);
        assert_int_equal(change_of(drawing->ops[i].title),
                         (uint64_t)mt_diff_change(&made->sites[row]));
        row++;
    }
    if (drawing->width == 1200 && changed < 12)
        assert_int_equal(row, changed);
}

static void check_bars(const struct mt_drawing *drawing, const struct made *made)
{
    uint32_t row = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!drawing_is(op, "site-bar"))
            continue;
        assert_true(op->paint.hatched == (mt_diff_change(&made->sites[row]) < 0));
        row++;
    }
}

TEST(waterfall_and_table_close)
{
    struct mt_drawing drawing;
    struct made made;

    for (uint32_t round = 0; round < 60; round++) {
        uint64_t scale = UINT64_C(1) << (1 + high_below(44)), base = high_below(3) ? 0 : scale * 60;
        uint32_t roles = 1 + (uint32_t)high_below(MT_ROLE_COUNT),
                 sites = (uint32_t)high_below(MAX_SITES);

        make(&made, scale, base, roles, sites);
        for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
            draw(&drawing, &made, &sizes[i]);
            check_falls(&drawing, &made);
            check_sites(&drawing, &made);
            check_bars(&drawing, &made);
            mt_drawing_release(&drawing);
        }
    }
}

/* A small change of a large amount is visible: the axis is cut and labeled. */
TEST(a_small_change_is_visible)
{
    struct mt_drawing drawing;
    struct made made;
    const struct mt_op *change;

    make(&made, 1, 0, 1, 0);
    made.roles[0] = (struct mt_diff_row){.label = "activations",
                                         .phase = "",
                                         .role = MT_ROLE_ACTIVATIONS,
                                         .a_bytes = 64 * MT_GIB,
                                         .b_bytes = 64 * MT_GIB + MT_MIB,
                                         .a_blocks = 1,
                                         .b_blocks = 1};
    made.answers[0].instant.bytes.allocated = 64 * MT_GIB;
    made.answers[1].instant.bytes.allocated = 64 * MT_GIB + MT_MIB;
    draw(&drawing, &made, &sizes[0]);
    change = drawing_find(&drawing, "change");
    assert_true(change->height > 100);
    assert_non_null(drawing_find(&drawing, "break"));
    check_falls(&drawing, &made);
    mt_drawing_release(&drawing);
}

TEST(weaknesses_of_the_comparison_are_noted)
{
    static const struct mt_run_difference runs[] = {
        {"the number of steps", "8", "3"},
        {"the kind of device", "NVIDIA H200", "NVIDIA A100"},
        {"options of the allocator", "none", "expandable_segments:True"},
        {"the framework's version", "a", "b"},
        {"where the trace begins", "at its beginning", "in the middle of the run"}};
    struct mt_drawing drawing;
    struct made made;

    make(&made, MT_GIB, 0, 4, 8);
    draw(&drawing, &made, &sizes[0]);
    assert_null(drawing_find(&drawing, "warning"));
    mt_drawing_release(&drawing);
    memcpy(made.diff.runs, runs, sizeof runs);
    made.diff.run_count = MT_ARRAY_LEN(runs);
    for (size_t i = 0; i < 2; i++) {
        draw(&drawing, &made, &sizes[i]);
        assert_non_null(drawing_find(&drawing, "warning"));
        assert_non_null(
            strstr(drawing_find(&drawing, "warning")->text, "number of steps: 8, then 3"));
        mt_drawing_release(&drawing);
    }
}

TEST(extremes_are_drawn)
{
    struct mt_drawing drawing;
    struct made made;

    for (size_t k = 0; k < 3; k++) {
        make(&made, 1 + k * 5, 0, k == 0 ? 0 : 2, k == 1 ? 0 : 3);
        if (k == 2) {
            made.roles[0].a_bytes = made.answers[0].instant.bytes.allocated = UINT64_MAX / 2;
            made.roles[0].b_bytes = made.roles[1].b_bytes = made.roles[1].a_bytes = 0;
            made.answers[1].instant.bytes.allocated = 0;
        }
        for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
            draw(&drawing, &made, &sizes[i]);
            mt_drawing_release(&drawing);
        }
    }
    made.view.device = NULL;
    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        draw(&drawing, &made, &sizes[i]);
        assert_non_null(drawing_find(&drawing, "nothing"));
        mt_drawing_release(&drawing);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
