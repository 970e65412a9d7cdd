/* The chart of steps on constructed reports: heights of bars, band and line match their bytes,
 * words are those of the finding, at every size and number of steps. */
#include "cmocka_all.h"

#include "chart.h"
#include "chart_scale.h"
#include "dice.h"
#include "drawing_checks.h"
#include "picture_sizes.h"
#include "trend.h"
#include "util.h"

static uint64_t random_state = 5;

struct made {
    struct mt_report report;
    struct mt_device_report device;
    struct mt_finding finding;
};

struct shape {
    uint32_t steps;
    uint64_t level, slope, noise, peak; /* bytes; each step's peak is up to `peak` above */
    bool grows, random, cut;
    int64_t first_number;
    uint32_t number_step;
};

static const char *const evidence[] = {
    "26.0 MiB left behind by steps 5 to 17 is still allocated when step 19 begins",
    "+2.00 MiB per step from keep train.py:7: 1 block from 1 stack",
    "at this rate, the 140 GiB of the device fills up after at most 71,653 more steps"};

static void make(struct made *made, const struct shape *shape)
{
    struct mt_arena *arena = &made->report.arena;

    memset(made, 0, sizeof *made);
    made->report.name = "made";
    made->report.devices = &made->device;
    made->report.device_count = 1;
    made->report.step_count = shape->steps;
    made->report.phase_count = shape->steps;
    made->report.phases = mt_arena_array(arena, shape->steps + 1, sizeof *made->report.phases);
    made->device.steps = mt_arena_array(arena, shape->steps + 1, sizeof *made->device.steps);
    made->device.step_count = shape->steps;
    made->device.events = 100;
    made->device.growth.judged = shape->steps >= MT_GROWTH_MIN_STEPS;
    for (uint32_t i = 0; i < shape->steps; i++) {
        struct mt_step_use *step = &made->device.steps[i];
        struct mt_phase *phase = &made->report.phases[i];

        phase->name = phase->path = "step";
        phase->step = step->step =
            shape->first_number + (int64_t)i * (shape->number_step ? shape->number_step : 1);
        phase->is_step = true;
        phase->parent = MT_NO_PHASE;
        phase->begin_event = 10 + 10 * (uint64_t)i;
        phase->end_event = phase->begin_event + 9;
        phase->cut = shape->cut && i + 1 == shape->steps;
        step->phase = (int32_t)i;
        step->exit.allocated =
            shape->level + shape->slope * i + (shape->noise ? high_below(shape->noise) : 0);
        step->peak.allocated = step->exit.allocated + (shape->peak ? high_below(shape->peak) : 0);
        if (shape->random && high_below(3) == 0)
            step->exit.allocated = high_below(step->peak.allocated + 1);
        step->peak.reserved = mt_round_up(step->peak.allocated, 2 * MT_MIB);
    }
    if (!shape->grows)
        return;
    made->finding = (struct mt_finding){
        .id = "growth",
        .severity = "error",
        .bytes_per_step = 2 * MT_MIB,
        .title = "2.00 MiB more after each step since step 3, all of it from keep train.py:7",
        .evidence = (const char **)(uintptr_t)evidence,
        .evidence_count = MT_ARRAY_LEN(evidence),
        .advice = "a list, dict or attribute keeps these tensors: clear it"};
    made->device.findings = &made->finding;
    made->device.finding_count = 1;
}

static void unmake(struct made *made)
{
    mt_arena_release(&made->report.arena);
}

static void draw(struct mt_drawing *drawing, const struct made *made,
                 const struct mt_chart_options *options)
{
    struct mt_buf svg = {0};

    mt_chart_find("trend")->draw(&made->report, &made->device, options, drawing);
    const char *fault = drawing_fault(drawing);
    if (fault)
        fail_msg("%s (%u steps, %dx%d)", fault, made->device.step_count, (int)drawing->width,
                 (int)drawing->height);
    mt_svg_write(drawing, MT_THEME_AUTO, &svg);
    if (svg.length >= 150 * 1024)
        fail_msg("%u steps: %zu bytes of SVG", made->device.step_count, svg.length);
    mt_buf_release(&svg);
}

/* All words of a role, with spaces between. */
static const char *words_of(const struct mt_drawing *drawing, const char *role)
{
    static char words[4000];

    words[0] = '\0';
    for (size_t i = 0; i < drawing->op_count; i++) {
        if (drawing->ops[i].kind != MT_OP_TEXT || !drawing_is(&drawing->ops[i], role))
            continue;
        strncat(words, drawing->ops[i].text, sizeof words - strlen(words) - 2);
        strcat(words, " ");
    }
    return words;
}

/* Heights of the parts of a column, in the order in which they are drawn. */
struct heights {
    double peak, range, level, top;
};

static void check_column(const struct made *made, const struct chart_scale *scale, uint32_t first,
                         uint32_t count, const struct heights *heights)
{
    const struct mt_step_use *steps = made->device.steps + first;
    uint64_t low = UINT64_MAX, high = 0, peak = 0;
    double pixel = scale->bytes_per_pixel;

    for (uint32_t i = 0; i < count; i++) {
        low = mt_min_u64(low, steps[i].exit.allocated);
        high = mt_max_u64(high, steps[i].exit.allocated);
        peak = mt_max_u64(peak, steps[i].peak.allocated);
    }
    assert_true(fabs(heights->level * pixel - (double)low) <= 0.01 * pixel);
    assert_true(fabs(heights->range * pixel - (double)(high - low)) <= 0.01 * pixel);
    assert_true(fabs(heights->peak * pixel - (double)(peak - high)) <= 0.01 * pixel);
    assert_true(fabs(heights->level + heights->range + heights->peak - (double)peak / pixel) <=
                0.02);
}

/* The steps that a title names: "step 3: ...", "steps 3 to 7: ...". */
static void read_steps(const char *title, uint32_t *first, uint32_t *count)
{
    unsigned a, b;

    if (sscanf(title, "steps %u to %u:", &a, &b) == 2) {
        *first = a;
        *count = b - a + 1;
    } else {
        char plain[40];
        size_t n = 0;

        assert_memory_equal(title, "step ", 5);
        for (title += 5; *title != ':'; title++)
            if (*title != ',')
                plain[n++] = *title;
        plain[n] = '\0';
        *first = (uint32_t)strtoul(plain, NULL, 10);
        *count = 1;
    }
}

/* Every step is in one column, which is as high as the step. */
static void check_columns(const struct made *made, const struct mt_drawing *drawing)
{
    struct chart_scale scale = chart_scale_of(drawing, "tick-y");
    uint32_t next = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        struct heights heights = {0};
        uint32_t first, count;

        if (!drawing_is(&drawing->ops[i], "column"))
            continue;
        read_steps(drawing->ops[i].title, &first, &count);
        for (size_t j = i + 1; drawing->ops[j].kind != MT_OP_GROUP_END; j++) {
            const struct mt_op *op = &drawing->ops[j];

            if (drawing_is(op, "peak"))
                heights.peak = op->height;
            if (drawing_is(op, "range"))
                heights.range = op->height;
            if (drawing_is(op, "level"))
                heights.level = op->height;
        }
        assert_int_equal(first, next);
        check_column(made, &scale, first, count, &heights);
        next = first + count;
    }
    assert_int_equal(next, made->device.step_count);
}

static void check_trend_line(const struct made *made, const struct mt_drawing *drawing)
{
    struct chart_scale scale = chart_scale_of(drawing, "tick-y");
    const struct mt_op *line = drawing_find(drawing, "trend");
    struct mt_trend trend;

    mt_trend_make(&made->report, &made->device, &trend);
    if (!trend.has_slope) {
        assert_null(line);
        return;
    }
    if (!line)
        return; /* outside of the plot */
    assert_true(fabs(chart_bytes_at(&scale, line->points[0].y) - (double)trend.level_bytes) <=
                    scale.bytes_per_pixel ||
                trend.level_bytes < 0);
}

TEST(columns_are_as_high_as_their_bytes)
{
    static const uint32_t counts[] = {1, 2, 4, 5, 7, 8, 12, 59, 60, 61, 100, 239, 3000, 10000};
    struct mt_drawing drawing;
    struct made made;

    for (size_t i = 0; i < MT_ARRAY_LEN(counts); i++) {
        struct shape shape = {.steps = counts[i],
                              .level = MT_GIB,
                              .slope = i % 2 ? 100 * MT_KIB : 0,
                              .noise = 30 * MT_MIB,
                              .peak = MT_GIB,
                              .grows = i % 3 == 1};
        make(&made, &shape);
        for (size_t j = 0; j < MT_ARRAY_LEN(sizes); j++) {
            draw(&drawing, &made, &sizes[j]);
            check_columns(&made, &drawing);
            check_trend_line(&made, &drawing);
            mt_drawing_release(&drawing);
        }
        unmake(&made);
    }
}

TEST(anything_can_be_drawn)
{
    struct mt_drawing drawing;
    struct made made;

    for (size_t i = 0; i < 60; i++) {
        struct shape shape = {.steps = 1 + (uint32_t)high_below(i % 5 == 0 ? 300 : 20),
                              .level = high_below(2) ? UINT64_C(1) << high_below(46) : 0,
                              .slope = UINT64_C(1) << high_below(34),
                              .noise = UINT64_C(1) << high_below(40),
                              .peak = UINT64_C(1) << high_below(44),
                              .grows = i % 2,
                              .random = true,
                              .cut = high_below(2),
                              .first_number = i % 7 == 0 ? -5 : (int64_t)high_below(100000),
                              .number_step = (uint32_t)high_below(4)};
        make(&made, &shape);
        for (size_t j = 0; j < MT_ARRAY_LEN(sizes); j++) {
            draw(&drawing, &made, &sizes[j]);
            mt_drawing_release(&drawing);
        }
        unmake(&made);
    }
}

TEST(huge_numbers_are_drawn)
{
    struct shape shape = {.steps = 20, .level = UINT64_MAX - 1, .grows = true};
    struct mt_drawing drawing;
    struct made made;

    make(&made, &shape);
    made.device.steps[4].exit.allocated = 0;
    made.device.steps[7].peak.reserved = UINT64_MAX;
    for (size_t j = 0; j < MT_ARRAY_LEN(sizes); j++) {
        draw(&drawing, &made, &sizes[j]);
        mt_drawing_release(&drawing);
    }
    unmake(&made);
}

static void expect_verdict(const struct shape *shape, const char *verdict)
{
    struct mt_drawing drawing;
    struct made made;

    make(&made, shape);
    for (size_t j = 0; j < 2; j++) {
        draw(&drawing, &made, &sizes[j]);
        if (!strstr(words_of(&drawing, "tile-value"), verdict))
            fail_msg("%s, not %s", words_of(&drawing, "tile-value"), verdict);
        if (shape->grows) {
            assert_string_equal(
                words_of(&drawing, "verdict"),
                "2.00 MiB more after each step since step 3, all of it from keep train.py:7 ");
            assert_non_null(strstr(words_of(&drawing, "evidence"), evidence[1]));
            assert_non_null(strstr(words_of(&drawing, "evidence"), evidence[2]));
            assert_non_null(strstr(words_of(&drawing, "evidence"), "clear it"));
        }
        mt_drawing_release(&drawing);
    }
    unmake(&made);
}

/* The finding decides, not the slope, because growth also needs evidence. */
TEST(the_verdict_is_that_of_the_finding)
{
    struct shape shape = {.steps = 20, .level = MT_GIB, .slope = 2 * MT_MIB, .peak = MT_MIB};

    expect_verdict(&shape, "no growth");
    shape.grows = true;
    expect_verdict(&shape, "growth ");
    shape.grows = false;
    shape.steps = 7;
    expect_verdict(&shape, "not judged");
    shape.steps = 4;
    expect_verdict(&shape, "not enough steps");
    shape.steps = 1;
    expect_verdict(&shape, "not enough steps");
}

/* Without an allocator, reserved equals allocated, and without segments it is unknown: there is no
 * line. */
TEST(only_an_allocator_reserves)
{
    struct shape shape = {.steps = 12, .level = MT_GIB, .peak = MT_MIB};
    struct mt_drawing drawing;
    struct made made;

    for (int level = 0; level < 3; level++) {
        make(&made, &shape);
        made.report.is_driver_level = level == 1;
        made.report.has_segments = level != 2;
        draw(&drawing, &made, &sizes[0]);
        assert_int_equal(drawing_find(&drawing, "curve:reserved") == NULL, level > 0);
        assert_int_equal(drawing_find(&drawing, "label:reserved") == NULL, level > 0);
        mt_drawing_release(&drawing);
        unmake(&made);
    }
}

TEST(a_small_slope_is_enlarged)
{
    struct shape shape = {.steps = 12, .level = MT_GIB, .slope = MT_MIB, .peak = MT_MIB};
    struct mt_drawing drawing;
    struct made made;
    const struct mt_op *line;
    size_t i;

    make(&made, &shape);
    draw(&drawing, &made, &sizes[0]);
    struct chart_scale scale = chart_scale_of(&drawing, "tick-level");
    assert_non_null(strstr(words_of(&drawing, "heading"), "this axis starts at "));
    for (i = 0, line = NULL; i < drawing.op_count; i++)
        if (drawing_is(&drawing.ops[i], "trend"))
            line = &drawing.ops[i]; /* the last: that of the panel */
    assert_true(fabs((line->points[0].y - line->points[1].y) * scale.bytes_per_pixel -
                     8 * (double)MT_MIB) < scale.bytes_per_pixel);
    assert_true(scale.bytes_per_pixel * 50 < 8 * (double)MT_MIB);
    mt_drawing_release(&drawing);
    unmake(&made);
}

/* A peak between two steps is that of the run, and is drawn to scale. */
TEST(a_peak_between_steps_is_drawn)
{
    struct shape shape = {.steps = 12, .level = MT_GIB, .peak = MT_MIB};
    struct mt_drawing drawing;
    struct made made;
    const struct mt_op *ring;

    make(&made, &shape);
    made.device.allocated_peak = (struct mt_peak){.bytes = MT_GIB + MT_GIB / 2, .event = 40};
    for (uint32_t i = 0; i < shape.steps; i++)
        made.device.steps[i].begin_event = 10 + 10 * i;
    draw(&drawing, &made, &sizes[0]);
    struct chart_scale scale = chart_scale_of(&drawing, "tick-y");
    ring = drawing_find(&drawing, "ring:run");
    assert_non_null(ring);
    assert_true(fabs((scale.base_y - ring->y) * scale.bytes_per_pixel - 1.5 * (double)MT_GIB) <
                2 * scale.bytes_per_pixel);
    assert_string_equal(words_of(&drawing, "label:run"),
                        "peak of the run 1.50 GiB, between the steps ");
    assert_non_null(strstr(words_of(&drawing, "tile-value"), "1.50 GiB"));
    mt_drawing_release(&drawing);
    made.device.allocated_peak.bytes = MT_GIB;
    draw(&drawing, &made, &sizes[0]);
    assert_null(drawing_find(&drawing, "ring:run"));
    mt_drawing_release(&drawing);
    unmake(&made);
}

/* A first step that compiles does not squeeze the others: they fill the plot, and its number is
 * printed. */
TEST(a_step_that_warms_up_is_broken)
{
    struct shape shape = {.steps = 12, .level = MT_GIB, .peak = MT_MIB};
    struct mt_drawing drawing;
    struct made made;

    make(&made, &shape);
    made.device.steps[0].peak.allocated = made.device.steps[0].peak.reserved = 9 * MT_GIB;
    draw(&drawing, &made, &sizes[0]);
    struct chart_scale scale = chart_scale_of(&drawing, "tick-y");
    assert_true(scale.bytes_per_pixel * 150 < 1.3 * (double)MT_GIB);
    assert_string_equal(words_of(&drawing, "label:broken"), "9.00 GiB ");
    assert_non_null(strstr(words_of(&drawing, "footnote"), "higher bars are broken"));
    mt_drawing_release(&drawing);
    made.device.steps[6].peak.allocated = 9 * MT_GIB; /* no warm-up */
    draw(&drawing, &made, &sizes[0]);
    assert_null(drawing_find(&drawing, "label:broken"));
    mt_drawing_release(&drawing);
    unmake(&made);
}

/* Steps of a small part of a run only resemble each other. */
TEST(steps_cover_the_run)
{
    struct shape shape = {.steps = 12, .level = MT_GIB, .peak = MT_MIB};
    const struct mt_chart *chart = mt_chart_find("trend");
    struct made made;

    make(&made, &shape);
    for (uint32_t i = 0; i < shape.steps; i++) {
        struct mt_step_use *step = &made.device.steps[i];

        step->begin_event = step->begin_t_ns = 10 + 10 * i;
        step->end_event = step->end_t_ns = step->begin_event + 9;
    }
    made.device.last_event = made.device.last_t_ns = 1000;
    assert_null(mt_chart_lacks(chart, &made.report, &made.device));
    made.device.last_event = made.device.last_t_ns = 2000;
    assert_non_null(mt_chart_lacks(chart, &made.report, &made.device));
    made.device.last_event = 1000;
    assert_null(mt_chart_lacks(chart, &made.report, &made.device));
    unmake(&made);
}

TEST(no_steps_say_so)
{
    struct shape shape = {.steps = 0};
    struct mt_drawing drawing;
    struct made made;

    make(&made, &shape);
    for (size_t j = 0; j < MT_ARRAY_LEN(sizes); j++) {
        draw(&drawing, &made, &sizes[j]);
        assert_non_null(strstr(words_of(&drawing, "nothing"), "No steps"));
        mt_drawing_release(&drawing);
        mt_chart_find("trend")->draw(&made.report, NULL, &sizes[j], &drawing);
        assert_null(drawing_fault(&drawing));
        mt_drawing_release(&drawing);
    }
    unmake(&made);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
