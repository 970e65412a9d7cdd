/* Icicle and flame chart of every capture, on the display list: widths are proportional to bytes,
 * numbers are those of the report, no text overlaps, nothing leaves the picture. */
#include "stack_chart_checks.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyze.h"
#include "flamechart_model.h"
#include "chart_frame.h"
#include "icicle.h"
#include "import.h"
#include "site.h"
#include "units.h"
#include "util.h"

static const char *const captures[] = {"churn",
                                       "churn_expandable",
                                       "ddp_rank0",
                                       "ddp_rank1",
                                       "gpt_cap",
                                       "gpt_default",
                                       "gpt_expandable",
                                       "gpt_ring",
                                       "gpt_split64",
                                       "graph",
                                       "leak",
                                       "leakval",
                                       "oom_adam",
                                       "resnet50_cap1900",
                                       "resnet50_cap900",
                                       "seq2seq",
                                       "seq2seq_native",
                                       "streams",
                                       "twogpu"};

static bool is_cell(const struct mt_op *op)
{
    return op->kind == MT_OP_RECT && op->role && !strncmp(op->role, "cell:", 5);
}

/* Is part of the cell folded away? */
static bool is_folded(const struct mt_drawing *drawing, const struct mt_op *cell)
{
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], "fold-cover") &&
            drawing->ops[i].x < cell->x + cell->width &&
            drawing->ops[i].x + drawing->ops[i].width > cell->x)
            return true;
    return false;
}

/* Cells of one row do not overlap; wide ones have words. */
static void check_cells(const char *name, const struct mt_drawing *drawing, double wide)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!is_cell(op))
            continue;
        assert_non_null(op->title);
        if (op->width >= wide && op->height >= 15 && !drawing_is(op, "cell:rest") &&
            !drawing_has_text_in(drawing, op) && !is_folded(drawing, op))
            fail_msg("%s, %s: no words in '%s', %g px wide", name, drawing->id, op->title,
                     op->width);
        for (size_t j = 0; j < i; j++) {
            const struct mt_op *other = &drawing->ops[j];

            if (is_cell(other) && fabs(other->y - op->y) < 1 &&
                fmin(op->x + op->width, other->x + other->width) - fmax(op->x, other->x) > 1)
                fail_msg("%s, %s: '%s' covers '%s'", name, drawing->id, op->title, other->title);
        }
    }
}

static bool is_node_cell(const struct mt_op *op)
{
    return is_cell(op) && !drawing_is(op, "cell:rest");
}

static enum mt_color color_of(const struct mt_report *report, const struct mt_node *node)
{
    switch (node->kind) {
    case MT_NODE_ROOT: return MT_COLOR_ROOT;
    case MT_NODE_NO_STACK:
    case MT_NODE_TIED: return MT_COLOR_ORIGIN_0 + (int)MT_ORIGIN_ENGINE;
    case MT_NODE_BLOCKS: return mt_role_color(node->role);
    case MT_NODE_FRAME: break;
    }
    return MT_COLOR_ORIGIN_0 + (unsigned)mt_frame_origin(report->symbols, node->frame);
}

/* Node cells are drawn in the order of the nodes: each is where and as wide as
 * its bytes say, in the color of its origin or role. */
static void check_node_cells(const char *name, const struct mt_report *report,
                             const struct mt_icicle *icicle, const struct mt_drawing *drawing)
{
    double scale = (drawing->width - 2 * MT_MARGIN) / (double)icicle->nodes[0].bytes;
    uint32_t node = 0, drawn = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!is_node_cell(op))
            continue;
        while (node < icicle->count &&
               (fabs(MT_MARGIN + (double)icicle->nodes[node].offset * scale - op->x) > 0.01 ||
                fabs((double)icicle->nodes[node].bytes * scale - op->width) > 1.01 ||
                color_of(report, &icicle->nodes[node]) != op->paint.fill))
            node++;
        if (node == icicle->count)
            fail_msg("%s: no node is like the cell '%s'", name, op->title);
        double width = (double)icicle->nodes[node].bytes * scale;
        assert_true(op->width <= width + 0.01);
        node++;
        drawn++;
    }
    assert_true(drawn > 0);
}

/* "31 too narrow to draw (4.03 MiB, 0.1%)": less than half a percent. */
static void check_dropped(const char *name, const struct mt_drawing *drawing)
{
    const struct mt_op *note = drawing_find(drawing, "footnote");
    const char *said = note ? strstr(note->text, "too narrow to draw (") : NULL;
    const char *share = said ? strchr(said, ',') : NULL;

    if (said && strtod(said + strlen("too narrow to draw ("), NULL) <= 0)
        fail_msg("%s: nothing is too narrow: %s", name, note->text);
    if (!share || share[2] == '<')
        return;
    if (strtod(share + 1, NULL) >= 0.5)
        fail_msg("%s: %s", name, note->text);
}

static int compare_down(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left > right ? -1 : left < right;
}

/* The table has the largest sums of blocks under one frame, in order. */
static void check_table(const struct mt_icicle *icicle, const struct mt_drawing *drawing,
                        bool reversed)
{
    uint64_t *own = calloc(icicle->count, sizeof *own);
    char text[MT_UNITS_TEXT];
    size_t row = 0;

    assert_non_null(own);
    for (uint32_t i = 1; i < icicle->count; i++)
        if (reversed)
            own[i] = icicle->nodes[i].depth == 1 ? icicle->nodes[i].bytes : 0;
        else
            own[i] = icicle->nodes[i].own_bytes;
    qsort(own, icicle->count, sizeof *own, compare_down);
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], "holder-bytes"))
            assert_string_equal(drawing->ops[i].text, mt_format_bytes(text, own[row++]));
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], "holder-path") && strstr(drawing->ops[i].text, "…"))
            assert_true(strlen(drawing->ops[i].text) > 12); /* "in...ll__" names nobody */
    assert_true(row >= 1 && row <= 8);
    free(own);
}

static void check_icicle(const char *name, const struct mt_report *report,
                         const struct mt_device_report *device,
                         const struct mt_chart_options *options)
{
    const struct mt_instant *peak = &device->instants[0];
    struct mt_icicle_options shape = {.reversed = options->reversed,
                                      .first_event = device->first_event};
    struct mt_arena arena = {0};
    struct mt_icicle *icicle;
    struct mt_drawing drawing;

    mt_icicle_build(&arena, peak->holdings, peak->holding_count, report->phases,
                    report->phase_count, report->symbols, &shape, &icicle);
    assert_int_equal(icicle->nodes[0].bytes, device->allocated_peak.bytes);
    mt_chart_find("icicle")->draw(report, device, options, &drawing);
    check_picture(name, &drawing);
    check_cells(name, &drawing, 70);
    check_node_cells(name, report, icicle, &drawing);
    check_table(icicle, &drawing, options->reversed);
    if (options->height > 0)
        assert_true(drawing.height == options->height);
    else
        check_dropped(name, &drawing);
    mt_drawing_release(&drawing);
    mt_arena_release(&arena);
}

/* Nets and peaks of the steps and phases of the model are the report's. */
static void check_model(const struct mt_report *report, const struct mt_device_report *device)
{
    const struct mt_flamechart *chart = device->flamechart;
    uint32_t phases = 0;

    for (uint32_t i = 0; i < chart->cell_count; i++) {
        const struct mt_cell *cell = &chart->cells[i];

        if ((cell->kind != MT_CELL_STEP && cell->kind != MT_CELL_PHASE) || cell->merged > 1)
            continue;
        if (report->phases[cell->phase].end_event > chart->end_event)
            continue; /* its teardown is not drawn */
        const struct mt_phase_use *use = &device->phase_uses[cell->phase];
        assert_int_equal(cell->net_bytes, (int64_t)(use->exit.allocated - use->enter.allocated));
        assert_int_equal(cell->peak_allocated, use->peak.allocated);
        assert_int_equal(cell->begin_t_ns,
                         mt_max_u64(report->phases[cell->phase].begin_t_ns, chart->begin_t_ns));
        if (cell->kind == MT_CELL_STEP && chart->step != MT_NO_STEP)
            assert_int_equal(cell->net_bytes,
                             (int64_t)(chart->exit_allocated - chart->enter_allocated));
        phases++;
    }
    assert_true(phases > 0 || report->phase_count == 0 || chart->cell_count > 0);
    assert_int_equal(chart->peak_allocated, device->allocated_peak.bytes);
    assert_int_equal(chart->peak_event, device->allocated_peak.event);
}

/* "+1.94 GiB" -> bytes, as far as three digits go. */
static double bytes_of(const char *text)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}, {"B", 1.0}};
    double sign = 1, value = 0;
    char digits[32];
    size_t length = 0;

    if (!strncmp(text, "\xE2\x88\x92", 3)) {
        sign = -1;
        text += 3;
    } else if (*text == '+') {
        text++;
    }
    for (const char *at = text; *at && *at != ' ' && length + 1 < sizeof digits; at++)
        if (*at != ',')
            digits[length++] = *at;
    digits[length] = '\0';
    value = strtod(digits, NULL);
    for (size_t i = 0; i < MT_ARRAY_LEN(units); i++)
        if (strstr(text, units[i].unit))
            return sign * value * units[i].bytes;
    return 0;
}

/* The nets of the table add up to the last one, to the digits shown. */
static void check_nets(const char *name, const struct mt_drawing *drawing)
{
    double sum = 0, last = 0, slack = 0;
    size_t count = 0;

    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], "phase-net")) {
            sum += last;
            last = bytes_of(drawing->ops[i].text);
            slack += fabs(last) / 100;
            count++;
        }
    if (count && fabs(sum - last) > slack)
        fail_msg("%s: nets add up to %g, not %g", name, sum, last);
}

/* The highest point of the curve is the peak, and the ring is on it. */
static void check_curve(const struct mt_device_report *device, const struct mt_drawing *drawing)
{
    const struct mt_op *curve = drawing_find(drawing, "curve:allocated");
    const struct mt_op *ring = drawing_find(drawing, "ring:peak");
    const struct mt_op *label = drawing_find(drawing, "label:peak");
    double highest = HUGE_VAL, zero = 0, top = 0;
    char size[MT_UNITS_TEXT];

    assert_true(curve && ring && label);
    for (uint32_t i = 0; i < curve->point_count; i++)
        highest = fmin(highest, curve->points[i].y);
    assert_true(fabs(highest - ring->y) < 0.5);
    mt_format_bytes(size, device->allocated_peak.bytes);
    assert_string_equal(label->text + strlen("peak "), size);
    /* The axis says where 0 is, and where its uppermost tick. */
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!drawing_is(op, "tick-y"))
            continue;
        if (!strcmp(op->text, "0")) {
            zero = op->y;
        } else {
            double pixels = (zero - op->y) / bytes_of(op->text);
            double peak = zero - pixels * (double)device->allocated_peak.bytes;

            top = op->y;
            if (fabs(peak - 4.5 - highest) >= 0.5)
                fail_msg("the peak is at %g, the axis says %g", highest, peak - 4.5);
        }
    }
    assert_true(zero > 0 && top > 0);
}

/* Phase cells begin where the axis of the curve says. */
static void check_alignment(const struct mt_device_report *device, const struct mt_drawing *drawing)
{
    const struct mt_flamechart *chart = device->flamechart;
    const struct mt_op *area = drawing_find(drawing, "area:allocated");
    double left = area->points[0].x, right = left;

    for (uint32_t i = 0; i < area->point_count; i++)
        right = fmax(right, area->points[i].x);
    for (uint32_t i = 0; i < chart->cell_count; i++) {
        const struct mt_cell *cell = &chart->cells[i];
        double share = (double)(cell->begin_t_ns - chart->begin_t_ns) /
                       (double)(chart->end_t_ns - chart->begin_t_ns);
        double width = (double)(cell->end_t_ns - cell->begin_t_ns) /
                       (double)(chart->end_t_ns - chart->begin_t_ns) * (right - left);
        bool found = false;

        if (cell->kind != MT_CELL_PHASE || cell->merged > 1 || width < 4)
            continue;
        for (size_t j = 0; j < drawing->op_count && !found; j++)
            found = drawing_is(&drawing->ops[j], "cell:phase") &&
                    fabs(drawing->ops[j].x - (left + share * (right - left))) < 0.5 &&
                    fabs(drawing->ops[j].width - width) < 1.5;
        assert_true(found);
    }
}

static void check_flamechart(const char *name, const struct mt_report *report,
                             const struct mt_device_report *device,
                             const struct mt_chart_options *options)
{
    struct mt_drawing drawing;

    mt_chart_find("flamechart")->draw(report, device, options, &drawing);
    check_picture(name, &drawing);
    check_cells(name, &drawing, 130);
    if (options->height > 0)
        assert_true(drawing.height == options->height);
    check_curve(device, &drawing);
    check_nets(name, &drawing);
    if (!options->event_axis && device->flamechart->step != MT_NO_STEP)
        check_alignment(device, &drawing);
    mt_drawing_release(&drawing);
}

/* The same report twice: the same bytes. */
static void check_repeats(const struct mt_report *report, const struct mt_device_report *device)
{
    for (size_t c = 0; mt_charts[c]; c++) {
        const struct mt_chart *chart = mt_charts[c];
        struct mt_buf svg[2] = {{0}, {0}};

        for (int i = 0; i < 2; i++) {
            struct mt_drawing drawing;

            chart->draw(report, device, &all_options[0], &drawing);
            mt_svg_write(&drawing, MT_THEME_AUTO, &svg[i]);
            mt_drawing_release(&drawing);
        }
        assert_int_equal(svg[0].length, svg[1].length);
        assert_memory_equal(svg[0].data, svg[1].data, svg[0].length);
        mt_buf_release(&svg[0]);
        mt_buf_release(&svg[1]);
    }
}

static void check_report(const char *name, const struct mt_report *report)
{
    for (uint32_t d = 0; d < report->device_count; d++) {
        const struct mt_device_report *device = &report->devices[d];

        check_model(report, device);
        check_repeats(report, device);
        for (size_t i = 0; i < MT_ARRAY_LEN(all_options); i++) {
            check_icicle(name, report, device, &all_options[i]);
            check_flamechart(name, report, device, &all_options[i]);
        }
    }
}

TEST(captures_are_drawn_as_they_are)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        for (int whole = 0; whole < 2; whole++) {
            struct mt_analyze_options options = {.models = MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART,
                                                 .window.whole = whole};
            struct mt_error error = {0};
            struct mt_source *source = NULL;
            struct mt_report *report = NULL;
            char path[512];

            snprintf(path, sizeof path, MEMTRACE_FIXTURES "/captures/%s.pickle.zst", captures[i]);
            if (mt_import_open_any(path, &source, &error) ||
                mt_analyze(source, &options, &report, &error))
                fail_msg("%s: %s", captures[i], error.text);
            check_report(captures[i], report);
            mt_report_release(report);
            mt_source_close(source);
        }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
