/* Icicle and flame chart of every capture, on the display list: what is drawn
 * is as wide as what it stands for, numbers are those of the report, no text
 * overlaps, nothing leaves the picture. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyze.h"
#include "chart.h"
#include "../unit/drawing_checks.h"
#include "dice.h"
#include "flamechart_model.h"
#include "frame.h"
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

static const struct mt_chart_options all_options[] = {
    {.width = 1200},
    {.width = 830},
    {.width = 1200, .event_axis = true, .flame = true},
    {.width = 830, .reversed = true, .event_axis = true},
    {.width = 600, .height = 400},
};

/* ---- what holds of both ---------------------------------------------- */

static void check_picture(const char *name, struct mt_drawing *drawing)
{
    const char *fault = drawing_fault(drawing);
    struct mt_buf svg = {0};

    if (fault)
        fail_msg("%s, %s %g wide: %s", name, drawing->id, drawing->width, fault);
    assert_int_equal(mt_svg_write(drawing, MT_THEME_AUTO, &svg, NULL), MT_OK);
    if (svg.length >= 100000)
        fail_msg("%s, %s: %zu bytes of SVG", name, drawing->id, svg.length);
    mt_buf_release(&svg);
}

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

/* ---- icicle ---------------------------------------------------------- */

static bool is_node_cell(const struct mt_op *op)
{
    return is_cell(op) && !drawing_is(op, "cell:rest");
}

static enum mt_color color_of(const struct mt_report *report, const struct mt_node *node)
{
    switch (node->kind) {
    case MT_NODE_ROOT: return MT_COLOR_ROOT;
    case MT_NODE_NO_STACK:
    case MT_NODE_TIED: return MT_COLOR_ORIGIN_0 + MT_ORIGIN_ENGINE;
    case MT_NODE_BLOCKS: return mt_role_color(node->role);
    case MT_NODE_FRAME: break;
    }
    return MT_COLOR_ORIGIN_0 + (unsigned)mt_frame_origin(report->symbols, node->frame);
}

/* Node cells are drawn in the order of the nodes: each is where and as wide as
 * its bytes say, in the colour of its origin or role. */
static void check_node_cells(const char *name, const struct mt_report *report,
                             const struct mt_icicle *icicle, const struct mt_drawing *drawing)
{
    double scale = (drawing->width - 2 * MT_MARGIN) / (double)icicle->nodes[0].bytes;
    uint32_t node = 0, drawn = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        double width;

        if (!is_node_cell(op))
            continue;
        while (node < icicle->count &&
               (fabs(MT_MARGIN + (double)icicle->nodes[node].offset * scale - op->x) > 0.01 ||
                fabs((double)icicle->nodes[node].bytes * scale - op->width) > 1.01 ||
                color_of(report, &icicle->nodes[node]) != op->paint.fill))
            node++;
        if (node == icicle->count)
            fail_msg("%s: no node is like the cell '%s'", name, op->title);
        width = (double)icicle->nodes[node].bytes * scale;
        assert_true(op->width <= width + 0.01);
        node++;
        drawn++;
    }
    assert_true(drawn > 0);
}

/* "31 too narrow to draw (4.03 MiB, 0.1 %)": less than half a percent. */
static void check_dropped(const char *name, const struct mt_drawing *drawing)
{
    const struct mt_op *note = drawing_find(drawing, "footnote");
    const char *said = note ? strstr(note->text, "too narrow to draw (") : NULL;
    const char *share = said ? strchr(said, ',') : NULL;

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

    assert_int_equal(mt_icicle_build(&arena, peak->holdings, peak->holding_count, report->phases,
                                     report->phase_count, report->symbols, &shape, &icicle),
                     MT_OK);
    assert_int_equal(icicle->nodes[0].bytes, device->allocated_peak.bytes);
    assert_int_equal(mt_icicle_draw(report, device, options, &drawing, NULL), MT_OK);
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

/* ---- flame chart ----------------------------------------------------- */

/* Nets and peaks of the steps and phases of the model are the report's. */
static void check_model(const struct mt_report *report, const struct mt_device_report *device)
{
    const struct mt_flamechart *chart = device->flamechart;
    uint32_t phases = 0;

    for (uint32_t i = 0; i < chart->cell_count; i++) {
        const struct mt_cell *cell = &chart->cells[i];
        const struct mt_phase_use *use;

        if ((cell->kind != MT_CELL_STEP && cell->kind != MT_CELL_PHASE) || cell->merged > 1)
            continue;
        use = &device->phase_uses[cell->phase];
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

    assert_int_equal(mt_flamechart_draw(report, device, options, &drawing, NULL), MT_OK);
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
    for (const struct mt_chart *chart = mt_charts; chart->name; chart++) {
        struct mt_buf svg[2] = {{0}, {0}};

        for (int i = 0; i < 2; i++) {
            struct mt_drawing drawing;

            assert_int_equal(chart->draw(report, device, &all_options[0], &drawing, NULL), MT_OK);
            assert_int_equal(mt_svg_write(&drawing, MT_THEME_AUTO, &svg[i], NULL), MT_OK);
            mt_drawing_release(&drawing);
        }
        assert_int_equal(svg[0].length, svg[1].length);
        assert_memory_equal(svg[0].data, svg[1].data, svg[0].length);
        mt_buf_release(&svg[0]);
        mt_buf_release(&svg[1]);
    }
}

/* ---- captures -------------------------------------------------------- */

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

static void captures_are_drawn_as_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        for (int whole = 0; whole < 2; whole++) {
            struct mt_analyze_options options = {.models = MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART,
                                                 .window.whole = whole};
            struct mt_error error = {0};
            struct mt_source *source = NULL;
            struct mt_report *report = NULL;
            char path[512];

            snprintf(path, sizeof path, MEMTRACE_FIXTURES "/captures/%s.pickle.zst", captures[i]);
            if (mt_open_any(path, NULL, &source, &error) ||
                mt_analyze(source, &options, &report, &error))
                fail_msg("%s: %s", captures[i], error.text);
            check_report(captures[i], report);
            mt_report_release(report);
            mt_source_close(source);
        }
}

/* ---- reports that have little to show -------------------------------- */

static void draw_both(const struct mt_report *report, const struct mt_device_report *device)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(all_options); i++) {
        struct mt_drawing drawing;

        assert_int_equal(mt_icicle_draw(report, device, &all_options[i], &drawing, NULL), MT_OK);
        check_picture("little", &drawing);
        mt_drawing_release(&drawing);
        assert_int_equal(mt_flamechart_draw(report, device, &all_options[i], &drawing, NULL),
                         MT_OK);
        check_picture("little", &drawing);
        mt_drawing_release(&drawing);
    }
}

static void little_to_show_is_shown(void **state)
{
    struct mt_symbols symbols = {0};
    struct mt_report report = {.name = "little", .symbols = &symbols};
    struct mt_device_report device = {.instant_count = 1};
    struct mt_holding holding = {.stack = MT_NO_ID,
                                 .phase = MT_NO_PHASE,
                                 .role = MT_ROLE_OTHER,
                                 .block_bytes = 512,
                                 .blocks = 1,
                                 .bytes = 512,
                                 .requested_bytes = 4};
    struct mt_instant instant = {.phase = MT_NO_PHASE, .step = MT_NO_STEP, .t_ns = 5};
    struct mt_flamechart_window window = {5, 5, 0, 0, MT_NO_STEP, 0, NULL};
    struct mt_event event = {.kind = MT_EVENT_ALLOC, .t_ns = 5, .stack = MT_NO_ID};
    struct mt_flamechart_builder *builder;
    struct mt_arena arena = {0};

    (void)state;
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    report.first_t_ns = report.last_t_ns = 5;
    draw_both(&report, NULL); /* an empty trace */
    draw_both(&report, &device);
    device.instants = &instant; /* nothing alive, no event */
    report.devices = &device;
    report.device_count = 1;
    draw_both(&report, &device);
    instant.holdings = &holding; /* one block, one event, no phase, no stack */
    instant.holding_count = 1;
    assert_int_equal(mt_flamechart_builder_new(&arena, &window, NULL, 0, &symbols, &builder),
                     MT_OK);
    assert_int_equal(mt_flamechart_builder_add(builder, &event, MT_NO_PHASE, 512, 512), MT_OK);
    assert_int_equal(mt_flamechart_builder_finish(builder, &device.flamechart), MT_OK);
    assert_int_equal(device.flamechart->peak_allocated, 512);
    draw_both(&report, &device);
    mt_arena_release(&arena);
    mt_symbols_release(&symbols);
}

/* Deep stacks, endless and hostile names, ten thousand small blocks. */
static void much_to_show_is_bounded(void **state)
{
    enum { HOLDINGS = 10000, STACKS = 3000 };
    static struct mt_holding holdings[HOLDINGS];
    struct mt_symbols symbols = {0};
    struct mt_report report = {.name = "much", .symbols = &symbols};
    struct mt_device_report device = {.instant_count = 1};
    struct mt_instant instant = {
        .holdings = holdings, .holding_count = HOLDINGS, .phase = MT_NO_PHASE, .step = MT_NO_STEP};
    struct mt_flamechart_window window = {0, HOLDINGS * 10, 0, HOLDINGS, MT_NO_STEP, 0, NULL};
    struct mt_flamechart_builder *builder;
    struct mt_arena arena = {0};
    uint64_t seed = 3, allocated = 0;
    uint32_t file, stack = MT_NO_ID;

    (void)state;
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_symbols_string(&symbols, "/w/\x01\xff<&>.py", 10, &file), MT_OK);
    for (uint32_t i = 0; i < STACKS; i++) {
        char name[400];
        uint32_t function, frame;

        dice_linear(&seed);
        snprintf(name, sizeof name, "%u_%0*u", i, (int)(seed >> 40) % 300 + 1, i % 7);
        assert_int_equal(mt_symbols_string(&symbols, name, strlen(name), &function), MT_OK);
        assert_int_equal(mt_symbols_frame(&symbols, function, file, i, &frame), MT_OK);
        assert_int_equal(mt_symbols_stack(&symbols, i % 40 ? stack : MT_NO_ID, frame, &stack),
                         MT_OK);
    }
    assert_int_equal(mt_flamechart_builder_new(&arena, &window, NULL, 0, &symbols, &builder),
                     MT_OK);
    for (uint32_t i = 0; i < HOLDINGS; i++) {
        struct mt_event event = {.kind = MT_EVENT_ALLOC, .seq = i, .t_ns = i * 10};

        dice_linear(&seed);
        holdings[i] = (struct mt_holding){.stack = (uint32_t)(seed >> 33) % STACKS,
                                          .phase = MT_NO_PHASE,
                                          .role = (enum mt_role)((seed >> 20) % MT_ROLE_COUNT),
                                          .block_bytes = 512 * ((seed >> 40) % 5000 + 1),
                                          .blocks = 1};
        holdings[i].bytes = holdings[i].requested_bytes = holdings[i].block_bytes;
        allocated += holdings[i].bytes;
        event.stack = holdings[i].stack;
        assert_int_equal(mt_flamechart_builder_add(builder, &event, MT_NO_PHASE,
                                                   (int64_t)holdings[i].bytes, allocated),
                         MT_OK);
    }
    assert_int_equal(mt_flamechart_builder_finish(builder, &device.flamechart), MT_OK);
    device.instants = &instant;
    report.devices = &device;
    report.device_count = 1;
    draw_both(&report, &device);
    mt_arena_release(&arena);
    mt_symbols_release(&symbols);
}

/* ---- random reports -------------------------------------------------- */

enum { RANDOM_PHASES = 200, RANDOM_EVENTS = 3000, RANDOM_STACKS = 200 };

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    return (uint32_t)((dice_linear(&random_state) >> 33) % limit);
}

struct random_world {
    struct mt_symbols symbols;
    struct mt_report report;
    struct mt_device_report device;
    struct mt_instant instant;
    struct mt_phase phases[RANDOM_PHASES];
    struct mt_phase_use uses[RANDOM_PHASES];
    bool main_phase[RANDOM_PHASES];
    struct mt_holding holdings[RANDOM_EVENTS];
    struct mt_arena arena;
};

static const char *random_name(void)
{
    static const char *const names[] = {"forward",
                                        "backward",
                                        "step#3",
                                        "optimizer",
                                        "x",
                                        "a rather long name of a phase",
                                        "zero_grad",
                                        "\xC3\xA4\xC3\xB6",
                                        "nccl:all_reduce",
                                        ""};

    return names[random_below(MT_ARRAY_LEN(names))];
}

static void random_symbols(struct mt_symbols *symbols)
{
    static const char *const files[] = {"/w/train.py", "/v/site-packages/torch/nn/modules/m.py",
                                        "/v/site-packages/torch/optim/a.py", "??", "<string>"};

    assert_int_equal(mt_symbols_init(symbols), MT_OK);
    for (uint32_t i = 0; i < RANDOM_STACKS; i++) {
        const char *name = random_name(), *path = files[random_below(5)];
        uint32_t function, file, frame, stack, count = symbols->stack_count;
        uint32_t parent = count && random_below(9) ? random_below(count) : MT_NO_ID;

        assert_int_equal(mt_symbols_string(symbols, name, strlen(name), &function), MT_OK);
        assert_int_equal(mt_symbols_string(symbols, path, strlen(path), &file), MT_OK);
        assert_int_equal(mt_symbols_frame(symbols, function, file, random_below(50), &frame),
                         MT_OK);
        assert_int_equal(mt_symbols_stack(symbols, parent, frame, &stack), MT_OK);
    }
}

/* Events of one run with phases that open and close among them. */
static void random_run(struct random_world *world)
{
    struct mt_report *report = &world->report;
    uint64_t t_ns = 1000, allocated = 1u << 30, seq = 0;
    uint32_t scale = 1u << random_below(20), count = 1 + random_below(RANDOM_EVENTS - 1);
    struct mt_flamechart_window window = {.begin_t_ns = t_ns, .step = MT_NO_STEP, .bins = 0};
    struct mt_flamechart_builder *builder;
    static struct mt_event events[RANDOM_EVENTS];
    static int32_t phase_of[RANDOM_EVENTS];
    int32_t open = MT_NO_PHASE;

    for (uint32_t i = 0; i < count; seq++) {
        t_ns += random_below(scale);
        if (random_below(20) == 0 && report->phase_count < RANDOM_PHASES) {
            struct mt_phase *phase = &world->phases[report->phase_count];

            *phase = (struct mt_phase){.name = random_name(),
                                       .path = "path",
                                       .step = MT_NO_STEP,
                                       .parent = open,
                                       .is_step = open == MT_NO_PHASE && random_below(2),
                                       .is_plumbing = random_below(6) == 0,
                                       .begin_t_ns = t_ns,
                                       .begin_event = seq,
                                       .end_event = UINT64_MAX};
            open = (int32_t)report->phase_count++;
        } else if (random_below(20) == 0 && open != MT_NO_PHASE) {
            world->phases[open].end_event = seq;
            world->phases[open].end_t_ns = t_ns;
            open = world->phases[open].parent;
        } else {
            uint32_t stack = random_below(RANDOM_STACKS + 30);

            events[i] = (struct mt_event){.kind = random_below(2) ? MT_EVENT_ALLOC
                                                                  : MT_EVENT_FREE_REQUESTED,
                                          .seq = seq,
                                          .t_ns = t_ns,
                                          .stack = stack < RANDOM_STACKS ? stack : MT_NO_ID};
            phase_of[i++] = open;
        }
    }
    for (uint32_t i = 0; i < report->phase_count; i++)
        if (world->phases[i].end_event == UINT64_MAX) {
            world->phases[i].end_event = seq;
            world->phases[i].end_t_ns = t_ns;
        }
    window.end_t_ns = t_ns;
    window.end_event = seq;
    report->last_t_ns = t_ns;
    assert_int_equal(mt_flamechart_builder_new(&world->arena, &window, world->phases,
                                               report->phase_count, &world->symbols, &builder),
                     MT_OK);
    for (uint32_t i = 0; i < count; i++) {
        int64_t delta = (int64_t)random_below(1u << 21) - (1 << 20);

        allocated += (uint64_t)delta;
        assert_int_equal(
            mt_flamechart_builder_add(builder, &events[i], phase_of[i], delta, allocated), MT_OK);
        world->holdings[i] = (struct mt_holding){.stack = events[i].stack,
                                                 .phase = phase_of[i],
                                                 .role = random_below(MT_ROLE_COUNT),
                                                 .block_bytes = 512u << random_below(16),
                                                 .blocks = 1 + random_below(3)};
        world->holdings[i].bytes = world->holdings[i].block_bytes * world->holdings[i].blocks;
    }
    assert_int_equal(mt_flamechart_builder_finish(builder, &world->device.flamechart), MT_OK);
    world->instant.holding_count = count;
}

static void random_reports_keep_their_texts_apart(void **state)
{
    static struct random_world world;

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_state = seed;
        memset(&world, 0, sizeof world);
        random_symbols(&world.symbols);
        world.report = (struct mt_report){.name = "random",
                                          .symbols = &world.symbols,
                                          .first_t_ns = 1000,
                                          .phases = world.phases,
                                          .main_phase = world.main_phase,
                                          .devices = &world.device,
                                          .device_count = 1};
        world.device = (struct mt_device_report){
            .instants = &world.instant, .instant_count = 1, .phase_uses = world.uses};
        world.instant.holdings = world.holdings;
        world.instant.phase = MT_NO_PHASE;
        world.instant.step = MT_NO_STEP;
        random_run(&world);
        draw_both(&world.report, &world.device);
        mt_arena_release(&world.arena);
        mt_symbols_release(&world.symbols);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_reports_keep_their_texts_apart),
        cmocka_unit_test(captures_are_drawn_as_they_are),
        cmocka_unit_test(little_to_show_is_shown),
        cmocka_unit_test(much_to_show_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
