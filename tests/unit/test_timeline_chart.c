/* The timeline chart on constructed reports: it shows the numbers of the report, at every size and
 * for unusual traces. */
#include "timeline_checks.h"

static double highest_layer(const struct mt_drawing *drawing)
{
    double y = HUGE_VAL;

    for (size_t i = 0; i < drawing->op_count; i++) {
        struct mt_box box = drawing_op_box(&drawing->ops[i]);

        if (drawing->ops[i].role && !strncmp(drawing->ops[i].role, "layer:", 6))
            y = fmin(y, box.y);
    }
    return y;
}

static void check_peak(const struct mt_drawing *drawing, const struct mt_device_report *device)
{
    struct chart_scale scale = chart_scale_of(drawing, "tick-y");
    const struct mt_op *label = drawing_find(drawing, "label:peak-allocated");
    const struct mt_op *ring = drawing_find(drawing, "ring");
    double peak = (double)device->allocated_peak.bytes;
    double highest =
        fmin(highest_layer(drawing), scale.base_y); /* no layer: thinner than a pixel */
    char bytes[MT_UNITS_TEXT], text[80];

    if (!(fabs(chart_bytes_at(&scale, highest) - peak) <= 0.5 * scale.bytes_per_pixel))
        fail_msg("highest point is %f pixels off", chart_bytes_at(&scale, highest) - peak);
    snprintf(text, sizeof text, "peak allocated %s",
             mt_format_bytes(bytes, device->allocated_peak.bytes));
    if (label)
        assert_string_equal(label->text, text);
    else if (drawing->height > 450) /* lower ones omit labels before these cover data */
        fail_msg("no label of the peak");
    assert_non_null(ring);
}

/* At 600 x 400, a label is beside the data, or omitted; the ring remains. */
TEST(small_pictures_do_not_cover_data)
{
    static const char *const roles[] = {"label:peak-allocated", "label:peak-reserved",
                                        "label-line"};
    const struct mt_chart_options small = {.width = 600, .height = 400};
    struct mt_drawing drawing;
    struct mt_report report;

    for (unsigned steps = 0; steps < 12; steps++) {
        struct synthetic_options options = {.steps = steps};

        synthetic_report(&report, &options);
        draw(&drawing, &report, &small);
        assert_non_null(drawing_find(&drawing, "ring"));
        for (size_t i = 0; i < drawing.op_count; i++) {
            const struct mt_op *op = &drawing.ops[i];
            bool is_label = false;

            for (size_t j = 0; j < MT_ARRAY_LEN(roles); j++)
                is_label |= op->kind == MT_OP_TEXT && drawing_is(op, roles[j]);
            struct mt_box box = is_label ? mt_text_box(op) : (struct mt_box){0, 0, 0, 0};
            for (size_t j = 0; is_label && j < drawing.op_count; j++) {
                const struct mt_op *layer = &drawing.ops[j];

                if (!layer->role || strncmp(layer->role, "layer:", 6) != 0)
                    continue;
                for (double x = box.x; x < box.x + box.width; x += 1)
                    if (drawing_y_at(layer, x, HUGE_VAL) < box.y + box.height - 1)
                        fail_msg("%u steps: '%s' covers %s at %f", steps, op->text, layer->role, x);
            }
        }
        mt_drawing_release(&drawing);
        synthetic_release(&report);
    }
}

TEST(peak_is_drawn_where_it_is)
{
    struct synthetic_options options = {.steps = 8};
    struct mt_report report;
    struct mt_drawing drawing;

    synthetic_report(&report, &options);
    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        draw(&drawing, &report, &sizes[i]);
        check_peak(&drawing, &report.devices[0]);
        mt_drawing_release(&drawing);
    }
    synthetic_release(&report);
}

/* In the SVG, the highest coordinate of all layers is at the height of one of the rings. */
TEST(svg_reaches_the_ring)
{
    struct synthetic_options options = {.steps = 5};
    struct mt_report report;
    struct mt_drawing drawing;
    double highest = HUGE_VAL, y, nearest = HUGE_VAL;
    char *end;

    synthetic_report(&report, &options);
    draw(&drawing, &report, &sizes[0]);
    char *svg = svg_of(&drawing);
    for (char *at = svg; (at = strstr(at, "<path d=\"M")); at = end) {
        char *path = at + strlen("<path d=\"M");

        end = strchr(at, '\n');
        *end = '\0';
        if (strstr(at, " at the peak</title>")) {
            strtod(path, &path);
            y = strtod(path, &path);
            for (highest = fmin(highest, y); *path && *path != 'z';) {
                char axis = *path++;
                double length = strtod(path, &path);

                y += axis == 'v' ? length : 0;
                highest = fmin(highest, y);
            }
        }
        *end++ = '\n';
    }
    for (char *at = svg; (at = strstr(at, " cy=\"")); at++)
        nearest = fmin(nearest, fabs(strtod(at + 5, NULL) - highest));
    assert_true(nearest <= 0.5);
    free(svg);
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

static void draw_all_sizes(const struct synthetic_options *options)
{
    struct mt_report report;
    struct mt_drawing drawing;

    synthetic_report(&report, options);
    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        draw(&drawing, &report, &sizes[i]);
        if (report.devices[0].allocated_peak.bytes)
            check_peak(&drawing, &report.devices[0]);
        free(svg_of(&drawing));
        mt_drawing_release(&drawing);
    }
    synthetic_release(&report);
}

TEST(every_trace_gives_a_sensible_picture)
{
    static const struct synthetic_options kinds[] = {
        {.steps = 0},
        {.steps = 1},
        {.steps = 40},
        {.steps = 3000},
        {.steps = 3, .ooms = 1, .fatal = true, .limit_bytes = 4400 * MT_MIB},
        {.steps = 3, .ooms = 4, .limit_bytes = 5 * MT_GIB},
        {.steps = 3, .ooms = 300},
        {.steps = 4, .in_middle = true},
        {.steps = 4, .devices = 2},
        {.kind = SYNTHETIC_NO_PHASES, .seed = 1},
        {.kind = SYNTHETIC_OOM_FIRST, .ooms = 1, .fatal = true},
        {.kind = SYNTHETIC_OOM_FIRST}};

    for (size_t i = 0; i < MT_ARRAY_LEN(kinds); i++)
        draw_all_sizes(&kinds[i]);
}

TEST(random_reports_never_overlap)
{
    struct synthetic_options options = {.kind = SYNTHETIC_RANDOM};

    for (options.seed = 1; options.seed <= 40; options.seed++) {
        options.ooms = options.seed % 3 ? 0 : (uint32_t)options.seed % 20;
        options.limit_bytes = options.seed % 4 ? 0 : MT_GIB << (options.seed % 8);
        draw_all_sizes(&options);
    }
}

TEST(an_empty_trace_says_so)
{
    struct mt_report report;
    struct mt_drawing drawing;

    memset(&report, 0, sizeof report);
    report.name = "empty";
    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        draw(&drawing, &report, &sizes[i]);
        char *svg = svg_of(&drawing);
        assert_non_null(strstr(svg, "No allocator events"));
        free(svg);
        mt_drawing_release(&drawing);
    }
}

/* Very long names enlarge neither labels nor the SVG. */
TEST(long_names_are_cut)
{
    struct synthetic_options options = {.steps = 200};
    struct mt_report report;
    struct mt_drawing drawing;

    synthetic_report(&report, &options);
    char *name = mt_arena_alloc(&report.arena, 300001);
    memset(name, 'x', 300000);
    memcpy(name + 58, "\xE2\x82\xAC", 3); /* a character across the cut */
    report.name = report.framework = report.options = report.devices[0].name = name;
    for (uint32_t i = 0; i < report.phase_count; i++)
        report.phases[i].name = report.phases[i].path = name;
    for (uint32_t i = 0; i < report.devices[0].peak_site_count; i++)
        report.devices[0].peak_sites[i].site = report.devices[0].peak_sites[i].phase = name;
    for (uint32_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        draw(&drawing, &report, &sizes[i]);
        check_peak(&drawing, &report.devices[0]);
        free(svg_of(&drawing));
        mt_drawing_release(&drawing);
    }
    synthetic_release(&report);
}

/* Numbers near the 64-bit limit. */
TEST(huge_numbers_are_drawn)
{
    struct synthetic_options options = {.steps = 2, .ooms = 1};
    struct mt_report report;
    struct mt_drawing drawing;

    synthetic_report(&report, &options);
    struct mt_device_report *device = &report.devices[0];
    report.first_t_ns = 0;
    report.last_t_ns = device->last_t_ns = UINT64_MAX;
    device->timeline->spans[device->timeline->span_count - 1].end_t_ns = UINT64_MAX;
    device->timeline->busy_ns = UINT64_MAX;
    device->reserved_peak.bytes = device->allocated_peak.bytes = UINT64_MAX;
    device->reserved_peak.then.allocated = 0;
    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        draw(&drawing, &report, &sizes[i]);
        mt_drawing_release(&drawing);
    }
    synthetic_release(&report);
}

static void assert_says(const struct mt_report *report, const struct mt_chart_options *options,
                        const char *words)
{
    struct mt_drawing drawing;

    draw(&drawing, report, options);
    char *svg = svg_of(&drawing);
    if (!strstr(svg, words))
        fail_msg("the picture does not say \"%s\"", words);
    free(svg);
    mt_drawing_release(&drawing);
}

TEST(pictures_have_required_notes)
{
    struct synthetic_options options = {
        .steps = 8, .ooms = 4, .limit_bytes = 5 * MT_GIB, .in_middle = true, .devices = 2};
    struct mt_report report;
    char text[MT_UNITS_TEXT + 8];

    synthetic_report(&report, &options);
    assert_says(&report, &sizes[0], ", device 1</text>");
    assert_says(&report, &sizes[0], "starts in the middle");
    assert_says(&report, &sizes[0], "memory limit 5.00 GiB");
    assert_says(&report, &sizes[0], "4 \xC3\x97 OOM, caught");
    assert_says(&report, &sizes[0], " s folded</text>");
    assert_says(&report, &sizes[1], "event number");
    assert_says(&report, &sizes[0], "roles are inferred");
    assert_says(&report, &sizes[2], "fwd = forward");
    report.last_t_ns = report.first_t_ns + 1036000000000u;
    assert_says(&report, &sizes[0], " \xC2\xB7 17.2 min");
    report.last_t_ns = report.first_t_ns + 12000000000000u;
    assert_says(&report, &sizes[0], " \xC2\xB7 3.3 h");
    mt_format_count(text, report.devices[1].reserved_peak.bytes);
    assert_says(&report, &sizes[0], strcat(text, " B</text>"));
    synthetic_release(&report);
}

TEST(retries_are_marked)
{
    struct synthetic_options options = {.steps = 8};
    struct mt_retry_mark marks[3];
    struct mt_report report;
    struct mt_drawing drawing;

    synthetic_report(&report, &options);
    struct mt_device_report *device = &report.devices[0];
    marks[0] = (struct mt_retry_mark){device->allocated_peak.t_ns, device->allocated_peak.event, 1};
    marks[1] = (struct mt_retry_mark){marks[0].t_ns + 1, marks[0].event + 1, 4};
    marks[2] = (struct mt_retry_mark){report.last_t_ns, device->timeline->last_event, 1};
    device->retry_marks = marks;
    device->retry_mark_count = 3;
    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        uint32_t count = 0;

        draw(&drawing, &report, &sizes[i]);
        for (size_t j = 0; j < drawing.op_count; j++)
            count += drawing_is(&drawing.ops[j], "retry");
        assert_in_range(count, 1, 2); /* neighbors are merged */
        const struct mt_op *first = drawing_find(&drawing, "retry");
        assert_non_null(strstr(first->title, "5 retries after emptying the cache"));
        assert_true(fabs(first->points[2].x - drawing_find(&drawing, "ring")->x) < 60);
        mt_drawing_release(&drawing);
    }
    assert_says(&report, &sizes[0], ">retry</text>");
    synthetic_release(&report);
}

/* Each row of the list has its percentage: of the reserved bytes, for unused ones. */
TEST(every_row_of_the_list_has_its_percent)
{
    struct synthetic_options options = {.steps = 8};
    struct mt_report report;
    struct mt_drawing drawing;
    size_t rows = 0;

    synthetic_report(&report, &options);
    report.devices[0].allocated_peak.then.reserved = 1000 * MT_MIB;
    report.devices[0].allocated_peak.then.allocated = 850 * MT_MIB;
    draw(&drawing, &report, &sizes[0]);
    for (size_t i = 0; i < drawing.op_count; i++) {
        if (!drawing_is(&drawing.ops[i], "legend-note"))
            continue;
        assert_string_not_equal(drawing.ops[i].text, "");
        rows++;
        if (strcmp(drawing.ops[i - 2].text, "Reserved, unused") == 0)
            assert_string_equal(drawing.ops[i].text, "15%");
    }
    assert_true(rows > 2);
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

/* Instants are rounded as in the text and on the page: 1.2346 s is 1.235 s. */
TEST(instants_are_rounded)
{
    struct synthetic_options options = {.steps = 8};
    struct mt_report report;
    struct mt_drawing drawing;

    synthetic_report(&report, &options);
    report.last_t_ns = report.first_t_ns + 5000000000u;
    report.devices[0].allocated_peak.t_ns = report.first_t_ns + 1234600000u;
    draw(&drawing, &report, &sizes[0]);
    assert_true(drawing_says(&drawing, "label-line", "t = 1.235 s"));
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

/* "27" alone says nothing: phases that are gathered are counted as phases, or not at all. */
TEST(gathered_phases_are_counted_as_phases)
{
    enum { GATHERED = 14 }; /* 4% of the width has space for the count, not for "14 phases */
    struct synthetic_options options = {.steps = 120};
    struct mt_report report;
    struct mt_drawing drawing;
    uint32_t count = 0, gathered = 0;

    synthetic_report(&report, &options);
    for (uint32_t i = 0; i < report.phase_count; i++) {
        struct mt_phase *phase = (struct mt_phase *)&report.phases[i];
        double events = (double)report.devices[0].last_event, at;

        if (!report.main_phase[i])
            continue;
        at = count < GATHERED ? 0.04 * count / (double)GATHERED : 0.5 + 0.0005 * count;
        phase->begin_event = (uint64_t)(at * events);
        phase->end_event =
            (uint64_t)((at + (count < GATHERED ? 0.04 / (double)GATHERED : 0.0005)) * events);
        count++;
    }
    draw(&drawing, &report, &sizes[1]);
    for (size_t at = 0; at + 1 < drawing.op_count; at++) {
        if (!drawing_is(&drawing.ops[at], "phases"))
            continue;
        gathered++;
        if (drawing_is(&drawing.ops[at + 1], "cell-text"))
            assert_non_null(strstr(drawing.ops[at + 1].text, " phases"));
    }
    assert_true(gathered > 0);
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

/* Steps too narrow for their numbers share one label. */
TEST(narrow_steps_share_a_label)
{
    struct synthetic_options options = {.steps = 40};
    struct mt_report report;
    struct mt_drawing drawing;

    synthetic_report(&report, &options);
    draw(&drawing, &report, &sizes[7]);
    assert_true(drawing_says(&drawing, "cell-text", "\xE2\x80\x93"));
    mt_drawing_release(&drawing);
    synthetic_release(&report);
}

TEST(same_report_same_bytes)
{
    struct synthetic_options options = {.steps = 7};
    char *svgs[2];

    for (int i = 0; i < 2; i++) {
        struct mt_report report;
        struct mt_drawing drawing;

        synthetic_report(&report, &options);
        draw(&drawing, &report, &sizes[0]);
        svgs[i] = svg_of(&drawing);
        mt_drawing_release(&drawing);
        synthetic_release(&report);
    }
    assert_string_equal(svgs[0], svgs[1]);
    free(svgs[0]);
    free(svgs[1]);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
