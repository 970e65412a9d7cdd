/* The layers of the timeline chart: they sum to the allocated bytes, whatever they show. */
#include "timeline_checks.h"

static const char *const stack[] = {
    "layer:temporaries",     "layer:activations", "layer:weight copies", "layer:gradients",
    "layer:other",           "layer:inputs",      "layer:KV cache",      "layer:workspace",
    "layer:optimizer state", "layer:parameters"};

static const enum mt_role stack_roles[] = {
    MT_ROLE_TEMPORARIES,     MT_ROLE_ACTIVATIONS, MT_ROLE_WEIGHT_COPIES, MT_ROLE_GRADIENTS,
    MT_ROLE_OTHER,           MT_ROLE_INPUTS,      MT_ROLE_KV_CACHE,      MT_ROLE_WORKSPACE,
    MT_ROLE_OPTIMIZER_STATE, MT_ROLE_PARAMETERS};

/* At x, from the top: every visible layer is as thick as its bytes. */
static void check_column(const struct mt_drawing *drawing, const struct chart_scale *scale,
                         double x, const struct mt_bin *bin)
{
    double tops[MT_ROLE_COUNT], below = scale->base_y, sum = 0;

    for (int i = MT_ROLE_COUNT - 1; i >= 0; i--) {
        const struct mt_op *op = drawing_find(drawing, stack[i]);

        tops[i] = op ? drawing_y_at(op, x, scale->base_y) : scale->base_y;
        if (tops[i] > below)
            tops[i] = below; /* too thin to be seen */
        sum += (below - tops[i]) * scale->bytes_per_pixel;
        if (fabs((below - tops[i]) * scale->bytes_per_pixel -
                 (double)bin->role_bytes[stack_roles[i]]) > scale->bytes_per_pixel)
            fail_msg("%s at x = %d is %d pixels thick", stack[i], (int)x, (int)(below - tops[i]));
        below = tops[i];
    }
    assert_true(fabs(sum - (double)bin->allocated) <= 0.5 * scale->bytes_per_pixel);
}

TEST(layers_sum_to_allocated_in_every_column)
{
    struct synthetic_options options = {.kind = SYNTHETIC_NO_PHASES, .seed = 3, .bins = 90};
    struct mt_chart_options events = {.event_axis = true};
    struct mt_report report;
    struct mt_drawing drawing;

    for (; options.seed < 12; options.seed++) {
        synthetic_report(&report, &options);
        const struct mt_timeline *timeline = report.devices[0].timeline;
        draw(&drawing, &report, &events);
        struct chart_scale scale = chart_scale_of(&drawing, "tick-y");
        struct mt_box line = drawing_op_box(drawing_find(&drawing, "curve:reserved"));
        /* Bins are several pixels wide, so this samples the middle of each. */
        for (double x = 0.5; x < timeline->bin_count; x++)
            check_column(&drawing, &scale, line.x + x * line.width / timeline->bin_count,
                         &timeline->event_bins[(uint32_t)x]);
        mt_drawing_release(&drawing);
        synthetic_release(&report);
    }
}

TEST(reserved_line_and_hatch_are_the_reserved_bytes)
{
    struct synthetic_options options = {.steps = 6, .bins = 120};
    struct mt_report report;
    struct mt_drawing drawing;
    const struct mt_op *area;

    synthetic_report(&report, &options);
    draw(&drawing, &report, &sizes[1]);
    struct chart_scale scale = chart_scale_of(&drawing, "tick-y");
    const struct mt_op *line = drawing_find(&drawing, "curve:reserved");
    area = drawing_find(&drawing, "area:unused");
    for (uint32_t i = 0; i < 120; i++) {
        struct mt_box box = drawing_op_box(line);
        double x = box.x + (i + 0.5) * box.width / 120, y = drawing_y_at(line, x, 0);
        double want = (double)report.devices[0].timeline->event_bins[i].reserved_max;

        assert_true(fabs(chart_bytes_at(&scale, y) - want) <= 0.5 * scale.bytes_per_pixel);
        assert_true(drawing_y_at(area, x, 0) == y);
    }
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

/* Adjacent strokes would hide the plot. The line shows the maxima, exactly, and the area shows the
 * falls. A single fall is drawn as a fall of the line. */
TEST(many_falls_of_reserved_are_no_black_block)
{
    enum { FIRST = 100, END = 401, ALONE = 450 };
    struct synthetic_options options = {.steps = 6, .bins = 512};
    struct mt_report report;
    struct mt_drawing drawing;
    const struct mt_op *area;

    synthetic_report(&report, &options);
    struct mt_bin *bins = (struct mt_bin *)report.devices[0].timeline->event_bins;
    for (uint32_t i = FIRST; i <= ALONE; i++)
        bins[i].reserved_max = report.devices[0].reserved_peak.bytes;
    for (uint32_t i = FIRST + 1; i < END; i += 2)
        bins[i].reserved_max = 0;
    bins[ALONE].reserved_max = 0;
    draw(&drawing, &report, &sizes[1]);
    struct chart_scale scale = chart_scale_of(&drawing, "tick-y");
    const struct mt_op *line = drawing_find(&drawing, "curve:reserved");
    area = drawing_find(&drawing, "area:unused");
    for (uint32_t i = FIRST; i <= ALONE; i++) {
        struct mt_box box = drawing_op_box(line);
        double x = box.x + (i + 0.5) * box.width / 512;
        double there = (double)bins[i].reserved_max;
        double want = i < END ? (double)report.devices[0].reserved_peak.bytes : there;

        assert_true(fabs(chart_bytes_at(&scale, drawing_y_at(line, x, 0)) - want) <=
                    0.5 * scale.bytes_per_pixel);
        assert_true(fabs(chart_bytes_at(&scale, drawing_y_at(area, x, 0)) - there) <=
                    0.5 * scale.bytes_per_pixel);
    }
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

/* Layers that are visible only elsewhere have a color in the legend, but no row of zeros. */
TEST(layers_not_at_the_peak_have_no_zeros)
{
    struct synthetic_options options = {.steps = 8};
    struct mt_report report;
    struct mt_drawing drawing;
    bool is_reported = false;

    synthetic_report(&report, &options);
    report.devices[0].peak_role_bytes[MT_ROLE_GRADIENTS] = 0;
    draw(&drawing, &report, &sizes[0]);
    for (size_t i = 0; i < drawing.op_count; i++) {
        const struct mt_op *op = &drawing.ops[i];

        assert_false(drawing_is(op, "legend-value") && strcmp(op->text, "0 B") == 0);
        is_reported |= drawing_is(op, "legend-note") && strcmp(op->text, "not at the peak") == 0;
    }
    assert_true(is_reported);
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

/* Distributes the allocated bytes of each bin among `count` layers. */
static void deal(struct mt_report *report, struct mt_layers *layers, uint32_t count,
                 enum mt_layer_by by)
{
    static const char *const names[] = {
        "forward", "backward", "no phase", "step model_with_a_very_long_name.py:1234",
        "a",       "b",        "c",        "all others"};
    struct mt_timeline *timeline = report->devices[0].timeline;
    uint64_t dice = count;

    *layers = (struct mt_layers){.by = by, .count = count, .other_groups = count == 8 ? 5 : 0};
    layers->time_bytes =
        mt_arena_array(&report->arena, timeline->bin_count * count + 1, sizeof(uint64_t));
    layers->event_bytes =
        mt_arena_array(&report->arena, timeline->bin_count * count + 1, sizeof(uint64_t));
    for (uint32_t i = 0; i < 2 * timeline->bin_count; i++) {
        bool by_event = i >= timeline->bin_count;
        uint32_t at = by_event ? i - timeline->bin_count : i;
        uint64_t left = (by_event ? timeline->event_bins : timeline->time_bins)[at].allocated;

        for (uint32_t j = 0; j < count; j++) {
            uint64_t part = j + 1 == count ? left : left / 8 * (synthetic_random(&dice) % 5);

            (by_event ? layers->event_bytes : layers->time_bytes)[at * count + j] = part;
            left -= part;
        }
    }
    for (uint32_t j = 0; j < count; j++)
        layers->layers[j] =
            (struct mt_layer){names[count == 8 ? j : j % 4], (enum mt_role)(j % MT_ROLE_COUNT),
                              report->devices[0].allocated_peak.bytes / count};
    timeline->layers = layers;
}

/* In the middle of a bin, from the top, every layer is as thick as its bytes. */
static void check_dealt(const struct mt_drawing *drawing, const struct chart_scale *scale, double x,
                        const struct mt_layers *layers, const uint64_t *bytes)
{
    double below = scale->base_y;

    for (uint32_t j = 0; j < layers->count; j++) {
        char tag[32];

        snprintf(tag, sizeof tag, "layer:%u", j);
        const struct mt_op *op = drawing_find(drawing, tag);
        double top = op ? fmin(drawing_y_at(op, x, scale->base_y), below) : below;
        assert_true(fabs((below - top) * scale->bytes_per_pixel - (double)bytes[j]) <=
                    scale->bytes_per_pixel);
        below = top;
    }
}

TEST(other_layers_sum_to_allocated)
{
    static const struct mt_chart_options events = {.event_axis = true};
    struct synthetic_options options = {.kind = SYNTHETIC_NO_PHASES, .seed = 3, .bins = 90};

    for (; options.seed < 12; options.seed++) {
        struct mt_report report;
        struct mt_drawing drawing;
        struct mt_layers layers;

        synthetic_report(&report, &options);
        deal(&report, &layers, 8, MT_LAYERS_BY_SITE);
        draw(&drawing, &report, &events);
        struct chart_scale scale = chart_scale_of(&drawing, "tick-y");
        struct mt_box line = drawing_op_box(drawing_find(&drawing, "curve:reserved"));
        for (double x = 0.5; x < 90; x++)
            check_dealt(&drawing, &scale, line.x + x * line.width / 90, &layers,
                        &layers.event_bytes[(uint32_t)x * layers.count]);
        mt_drawing_release(&drawing);
        synthetic_release(&report);
    }
}

/* With any number of layers at every size, nothing overlaps or leaves the frame, and the peak keeps
 * its height. */
TEST(other_layers_at_every_size)
{
    for (uint32_t round = 0; round < 9; round++) {
        struct synthetic_options options = {.kind =
                                                round % 2 ? SYNTHETIC_TRAINING : SYNTHETIC_RANDOM,
                                            .steps = round,
                                            .seed = round + 1};
        struct mt_report report;
        struct mt_layers layers;

        synthetic_report(&report, &options);
        deal(&report, &layers, 1 + round % 8, (enum mt_layer_by)(1 + round % 3));
        for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
            struct mt_drawing drawing;

            draw(&drawing, &report, &sizes[i]);
            free(svg_of(&drawing));
            mt_drawing_release(&drawing);
        }
        synthetic_release(&report);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
