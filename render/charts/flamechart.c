/* The flame chart: the curve of allocated bytes. Below the curve, on the same x axis, are the step,
 * the phases and the call stacks, colored by their effect on memory. */
#include <math.h>
#include <string.h>

#include "buf.h"
#include "chart.h"
#include "flamechart_layout.h"
#include "flamechart_model.h"
#include "icicle.h"
#include "report_query.h"
#include "site.h"
#include "time_axis.h"
#include "units.h"
#include "util.h"

#define FLAME_TABLE_HEIGHT 66.0

/* The curve of allocated bytes, on the same x axis as the rows. In a column of pixels, the curve
 * goes to the fullest instant, then to the last level. */

static double level_y(const struct mt_flame_layout *layout, uint64_t top, uint64_t level)
{
    return layout->plot.y + layout->plot.height * (1 - (double)level / (double)top);
}

/* Returns the bytes at the upper edge of the plot, with room for the ring above the highest
 * point. */
static uint64_t top_of(const struct mt_flame_layout *layout)
{
    uint64_t peak = layout->chart->peak_allocated;

    return peak + peak / 12 + 1;
}

struct outline {
    struct mt_point *points;
    size_t count, capacity;
};

static void add_point(struct outline *outline, double x, double y)
{
    struct mt_point *last = outline->count ? &outline->points[outline->count - 1] : NULL;

    if (outline->count == outline->capacity)
        return;
    if (last && fabs(last->x - x) < 0.05 && fabs(last->y - y) < 0.05)
        return;
    outline->points[outline->count].x = x;
    outline->points[outline->count++].y = y;
}

static void step_to(struct outline *outline, double x, double y)
{
    if (outline->count && fabs(outline->points[outline->count - 1].y - y) < 0.05)
        return; /* extends the line at the same level */
    if (outline->count)
        add_point(outline, x, outline->points[outline->count - 1].y);
    add_point(outline, x, y);
}

static double bin_x(const struct mt_flame_layout *layout, const struct mt_curve_bin *bin)
{
    return mt_time_axis_x(&layout->axis, bin->t_ns, bin->event);
}

/* Traces the curve: for each column of pixels, to the fullest bin, then to the last level. */
static void trace(const struct mt_flame_layout *layout, uint64_t top, struct outline *outline)
{
    const struct mt_flamechart *chart = layout->chart;
    const struct mt_curve_bin *bins = layout->axis.by_event ? chart->event_curve : chart->curve;
    uint32_t count = layout->axis.by_event ? chart->event_curve_count : chart->curve_count;
    uint32_t i = 0;

    add_point(outline, layout->plot.x, level_y(layout, top, chart->enter_allocated));
    while (i < count) {
        const struct mt_curve_bin *fullest = &bins[i], *last = &bins[i];
        double column = floor(bin_x(layout, &bins[i]));

        for (; i < count && floor(bin_x(layout, &bins[i])) <= column; i++) {
            if (bins[i].max > fullest->max)
                fullest = &bins[i];
            last = &bins[i];
        }
        step_to(outline, bin_x(layout, fullest), level_y(layout, top, fullest->max));
        step_to(outline, mt_time_axis_x(&layout->axis, last->last_t_ns, last->last_event),
                level_y(layout, top, last->last));
    }
    add_point(outline, layout->plot.x + layout->plot.width,
              level_y(layout, top, chart->exit_allocated));
}

/* Returns the left edge of a label of `width` that no fold covers. The label is right of the ring,
 * or left of the ring at the end of the plot. */
static double label_left(const struct mt_flame_layout *layout, double x, double width)
{
    double left = x + 10;
    uint32_t gaps = mt_time_axis_spans(&layout->axis) - 1;

    for (uint32_t i = 0; i < gaps; i++) {
        double gap = mt_time_axis_span_right(&layout->axis, i);

        if (left < gap + MT_FOLD_WIDTH && left + width > gap)
            left = gap + MT_FOLD_WIDTH + 2;
    }
    if (left + width <= layout->plot.x + layout->plot.width)
        return left;
    left = x - 10 - width;
    for (uint32_t i = gaps; i > 0; i--) {
        double gap = mt_time_axis_span_right(&layout->axis, i - 1);

        if (left < gap + MT_FOLD_WIDTH && left + width > gap)
            left = gap - 2 - width;
    }
    return left;
}

/* Draws the mark of the peak. Call it after the folds are drawn, because they would cover the
 * mark. */
static void flame_draw_peak(const struct mt_flame_layout *layout)
{
    const struct mt_flamechart *chart = layout->chart;
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_CURVE, .stroke_width = 2};
    const struct mt_text_style style = {
        .size = 13, .weight = MT_SEMIBOLD, .color = MT_COLOR_TEXT, .halo = true};
    double x = mt_time_axis_x(&layout->axis, chart->peak_t_ns, chart->peak_event);
    double y = level_y(layout, top_of(layout), chart->peak_allocated);
    char size[MT_UNITS_TEXT];
    const char *label = mt_arena_printf(&layout->drawing->arena, "peak %s",
                                        mt_format_bytes(size, chart->peak_allocated));

    mt_draw_circle(layout->drawing, x, y, 4, &ring, NULL, "ring:peak");
    mt_draw_text(layout->drawing,
                 label_left(layout, x, 1.06 * mt_text_width(label, 13, MT_SEMIBOLD)), y - 6, label,
                 &style, "label:peak");
}

static void flame_draw_curve(const struct mt_flame_layout *layout)
{
    const struct mt_paint fill = {.fill = MT_COLOR_CURVE_FILL};
    const struct mt_paint line = {.stroke = MT_COLOR_CURVE, .stroke_width = 1.3};
    const struct mt_flamechart *chart = layout->chart;
    uint64_t top = top_of(layout);
    struct outline outline = {.capacity =
                                  4 * ((size_t)chart->curve_count + chart->event_curve_count) + 8};
    struct mt_ticks ticks;

    outline.points =
        mt_arena_array(&layout->drawing->arena, outline.capacity, sizeof *outline.points);
    mt_byte_ticks(&ticks, chart->peak_allocated, top, 5);
    mt_chart_frame_byte_axis(layout->drawing, &layout->plot, &ticks, top);
    trace(layout, top, &outline);
    size_t drawn = outline.count;
    add_point(&outline, layout->plot.x + layout->plot.width, layout->plot.y + layout->plot.height);
    add_point(&outline, layout->plot.x, layout->plot.y + layout->plot.height);
    mt_draw_path(layout->drawing, outline.points, outline.count, true, true, &fill, NULL,
                 "area:allocated");
    mt_draw_path(layout->drawing, outline.points, drawn, false, true, &line, NULL,
                 "curve:allocated");
}

/* The effect of each phase on memory: net change and peak. With a column for the time between
 * phases, the net changes add up to that of the window. */

enum { MAX_NAMES = 32 };

#define MIN_COLUMN  100.0
#define BEST_COLUMN 150.0

/* Phases with the same name. */
struct column {
    const char *name;
    uint32_t count;
    int64_t net;
    uint64_t peak;
    bool has_peak;
};

struct table {
    struct column columns[MAX_NAMES];
    uint32_t count;
    int64_t net; /* sum over all columns */
};

/* Returns true for a phase directly below the step, or for an outermost phase if there is no step.
 * Phases that the framework inserted do not count. */
static bool is_outermost(const struct mt_report *report, const struct mt_flamechart *chart,
                         const struct mt_phase *phase)
{
    int32_t around = mt_shown_phase(report->phases, report->phase_count, phase->parent);

    if (chart->phase != MT_NO_PHASE)
        return around == chart->phase;
    return around == MT_NO_PHASE || report->phases[around].is_step;
}

/* Returns true if all effects of the phase are in the window. The window of a whole run extends
 * from the first to the last allocation or free, so this holds even for phases that begin before or
 * end after the window. */
static bool is_inside(const struct mt_flamechart *chart, const struct mt_phase *phase)
{
    if (chart->step == MT_NO_STEP && chart->phase == MT_NO_PHASE)
        return phase->begin_event <= chart->end_event && phase->end_event >= chart->begin_event;
    return phase->begin_event >= chart->begin_event && phase->end_event <= chart->end_event;
}

static bool is_listed(const struct mt_flame_layout *layout, const struct mt_phase *phase)
{
    const struct mt_flamechart *chart = layout->chart;
    bool surrounds =
        phase->begin_event <= chart->begin_event && phase->end_event >= chart->end_event;

    return !phase->is_step && !phase->is_plumbing && !surrounds && is_inside(chart, phase) &&
           is_outermost(layout->report, chart, phase);
}

/* Returns the column of a name. The last column takes all names beyond the limit. */
static struct column *column_of(struct table *table, const char *name)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (!strcmp(table->columns[i].name, name))
            return &table->columns[i];
    if (table->count == MAX_NAMES) {
        table->columns[MAX_NAMES - 1].name = "others";
        return &table->columns[MAX_NAMES - 1];
    }
    table->columns[table->count].name = name;
    return &table->columns[table->count++];
}

static int64_t net_of(const struct mt_phase_use *use)
{
    return (int64_t)(use->exit.allocated - use->enter.allocated);
}

/* Collects the phases. Phases of other threads that overlap with earlier ones are skipped, because
 * their net changes would count twice. */
static void collect(const struct mt_flame_layout *layout, struct table *table)
{
    const struct mt_report *report = layout->report;
    uint64_t until = 0;

    memset(table, 0, sizeof *table);
    for (uint32_t i = 0; layout->device->phase_uses && i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];
        const struct mt_phase_use *use = &layout->device->phase_uses[i];

        if (!is_listed(layout, phase) || phase->begin_event < until)
            continue;
        until = phase->end_event;
        struct column *column = column_of(table, phase->name);
        column->count++;
        column->net += net_of(use);
        column->peak = mt_max_u64(column->peak, use->peak.allocated);
        column->has_peak = true;
        table->net += net_of(use);
    }
}

/* Adds the rightmost columns: the time between phases, and the whole window. */
static void add_totals(const struct mt_flame_layout *layout, struct table *table, uint32_t room)
{
    const struct mt_flamechart *chart = layout->chart;
    int64_t net = (int64_t)(chart->exit_allocated - chart->enter_allocated);
    bool has_rest = net != table->net;
    uint32_t wanted = room - 1 - has_rest;

    while (table->count > wanted) { /* merges the last two columns */
        struct column *last = &table->columns[table->count - 2], *gone = last + 1;

        last->name = "others";
        last->count += gone->count;
        last->net += gone->net;
        last->peak = mt_max_u64(last->peak, gone->peak);
        table->count--;
    }
    if (has_rest)
        table->columns[table->count++] =
            (struct column){.name = "between", .count = 1, .net = net - table->net};
    table->columns[table->count++] =
        (struct column){.name = chart->phase != MT_NO_PHASE ? "whole phase"
                                : chart->step == MT_NO_STEP ? "whole run"
                                                            : "whole step",
                        .count = 1,
                        .net = net,
                        .peak = chart->peak_allocated,
                        .has_peak = true};
}

/* Returns the number of columns of the table of phases below the axis; 0: there is no table. */
static uint32_t flame_table_columns(const struct mt_flame_layout *layout)
{
    struct table table;

    collect(layout, &table);
    return table.count;
}

static void draw_column(const struct mt_flame_layout *layout, const struct column *column, double x,
                        double y, double width)
{
    struct mt_drawing *drawing = layout->drawing;
    const struct mt_paint swatch = {.fill = mt_flame_color(layout, column->net), .radius = 2};
    char text[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    const char *name = column->name;

    if (column->count > 1)
        name = mt_arena_printf(&drawing->arena, "%s × %s", column->name,
                               mt_format_count(count, column->count));
    mt_chart_frame_text(drawing, x, y,
                        mt_text_fit(drawing, name ? name : "", 13, MT_SEMIBOLD, width - 8, false),
                        13, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "phase-name");
    mt_draw_rect(drawing, x, y + 10, 10, 10, &swatch, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 15, y + 20, mt_format_change(text, column->net), 13,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "phase-net");
    if (column->has_peak)
        mt_chart_frame_text(drawing, x, y + 40, mt_format_bytes(text, column->peak), 13, MT_REGULAR,
                            MT_COLOR_TEXT, MT_ANCHOR_START, "phase-peak");
}

static void flame_draw_table(const struct mt_flame_layout *layout, double y)
{
    static const char *const headings[] = {"phase", "net", "peak"};
    uint32_t room = (uint32_t)(layout->plot.width / MIN_COLUMN);
    struct table table;

    room = room < 3 ? 3 : room > MAX_NAMES ? MAX_NAMES : room;
    collect(layout, &table);
    add_totals(layout, &table, room);
    double width = layout->plot.width / table.count;
    width = width < BEST_COLUMN ? width : BEST_COLUMN;
    for (size_t i = 0; i < MT_ARRAY_LEN(headings); i++)
        mt_chart_frame_text(layout->drawing, MT_MARGIN, y + 20 * (double)i, headings[i], 13,
                            MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "heading");
    for (uint32_t i = 0; i < table.count; i++)
        draw_column(layout, &table.columns[i], layout->plot.x + i * width, y, width);
}

#define CURVE_HEIGHT 160.0
#define MIN_CURVE    64.0
#define GUTTER       70.0 /* room left of the plot */

static void make_timeline(const struct mt_flame_layout *layout, struct mt_timeline *axis)
{
    const struct mt_flamechart *chart = layout->chart;
    const struct mt_axis_window window = {chart->begin_t_ns, chart->end_t_ns, chart->begin_event,
                                          chart->end_event,
                                          chart->step == MT_NO_STEP && chart->phase == MT_NO_PHASE};

    mt_time_axis_window(layout->drawing, layout->device, &window, axis);
}

double mt_flame_draw_key(const struct mt_flame_layout *layout, double x, double y)
{
    const double cell = MT_FLAME_KEY / 17, height = 12;
    double width = MT_FLAME_KEY;
    char text[MT_UNITS_TEXT];

    for (int i = 0; i < 17; i++) {
        struct mt_paint paint = {.fill = (enum mt_color)((int)MT_COLOR_CHANGE_0 + i)};

        mt_draw_rect(layout->drawing, x + cell * i, y, cell, height, &paint, NULL, "key");
    }
    y += height + 15;
    mt_format_change(text, -(int64_t)layout->largest_net);
    mt_chart_frame_text(layout->drawing, x, y, text, MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_START, "key-text");
    mt_chart_frame_text(layout->drawing, x + width / 2, y, "0", MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_MIDDLE, "key-text");
    mt_format_change(text, (int64_t)layout->largest_net);
    mt_chart_frame_text(layout->drawing, x + width, y, text, MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "key-text");
    return y;
}

static void draw_row_name(const struct mt_flame_layout *layout, int32_t row, const char *name)
{
    double y = layout->rows_top + MT_FLAME_PITCH * row + MT_FLAME_PITCH / 2 + 3.5;

    mt_chart_frame_text(layout->drawing, layout->plot.x - 9, y, name, MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "row-name");
}

void mt_flame_draw_row_names(const struct mt_flame_layout *layout)
{
    const struct mt_flamechart *chart = layout->chart;
    bool has_phase_name = false;

    if (layout->rows[0] >= 0)
        draw_row_name(layout, layout->rows[0], "step");
    for (uint32_t row = 1; row + 1 < chart->frame_row && !has_phase_name; row++)
        if (layout->rows[row] >= 0 && (uint32_t)layout->rows[row] < layout->row_count) {
            draw_row_name(layout, layout->rows[row], "phase");
            has_phase_name = true;
        }
    for (uint32_t row = chart->frame_row; row < chart->row_count + chart->common_rows; row++)
        if (layout->rows[row] >= 0 && (uint32_t)layout->rows[row] < layout->row_count) {
            draw_row_name(layout, layout->rows[row], "stack");
            break;
        }
}

/* Adds the rows that are the same everywhere and not drawn: "<module> › main › train". */
static void add_common(const struct mt_flame_layout *layout, struct mt_buf *out)
{
    const struct mt_flamechart *chart = layout->chart;

    for (uint32_t i = 0, row = 0; i < chart->cell_count && row < chart->common_rows; i++) {
        const struct mt_cell *cell = &chart->cells[i];

        if (cell->row != chart->frame_row + row || cell->kind != MT_CELL_FRAME ||
            cell->frame == MT_NO_ID)
            continue;
        const char *name =
            mt_frame_function(&layout->drawing->arena, layout->report->symbols, cell->frame);
        mt_buf_printf(out, "%s%s", row ? " › " : "", name);
        row++;
    }
}

static void draw_footnote(const struct mt_flame_layout *layout)
{
    static const char last[] = " · a cell lasts until the first event outside it";
    struct mt_buf text = {0};
    char count[MT_UNITS_TEXT];

    if (layout->chart->common_rows) {
        mt_buf_add_text(&text, "stacks below ");
        add_common(layout, &text);
    }
    mt_chart_frame_add_rows_cut(&text, layout->rows_cut);
    if (layout->merged_calls)
        mt_buf_printf(&text, "%s%s calls too narrow for a label are drawn together",
                      text.length ? " · " : "", mt_format_count(count, layout->merged_calls));
    if (!text.length)
        mt_buf_add_text(&text, last + strlen(" · "));
    else if (1.1 * mt_text_width(text.data, MT_SIZE_SMALL, MT_REGULAR) + 310 < layout->axis.width)
        mt_buf_add_text(&text, last);
    mt_chart_frame_footnote(layout->drawing, text.data);
    mt_buf_release(&text);
}

static const char *chart_name(struct mt_drawing *drawing, const struct mt_report *report,
                              const struct mt_flamechart *chart)
{
    char number[MT_UNITS_TEXT];
    const char *name = "memory flame chart";

    if (chart && chart->phase != MT_NO_PHASE)
        name = mt_arena_printf(&drawing->arena, "memory flame chart, %s",
                               report->phases[chart->phase].path);
    else if (chart && chart->step != MT_NO_STEP)
        name = mt_arena_printf(&drawing->arena, "memory flame chart, step %s%s",
                               chart->step < 0 ? "−" : "",
                               mt_format_count(number, mt_magnitude(chart->step)));
    return name;
}

static const char *facts(const struct mt_flame_layout *layout)
{
    const struct mt_flamechart *chart = layout->chart;
    char events[MT_UNITS_TEXT], length[MT_UNITS_TEXT], enter[MT_UNITS_TEXT], leave[MT_UNITS_TEXT];
    bool has_times = mt_report_has_times(layout->report);

    return mt_arena_printf(
        &layout->drawing->arena,
        "x = %s · color = net change of allocated bytes while the frame was on the stack · %s "
        "allocations and frees%s%s · from %s to %s",
        layout->axis.by_event ? "events" : "time", mt_format_count(events, chart->events),
        has_times ? " in " : "",
        has_times ? mt_format_duration(length, chart->end_t_ns - chart->begin_t_ns) : "",
        mt_format_bytes(enter, chart->enter_allocated),
        mt_format_bytes(leave, chart->exit_allocated));
}

static double height_below_curve(const struct mt_flame_layout *layout)
{
    double small_print = layout->drawing->width < MT_NARROW_WIDTH ? 56 : 40; /* two lines or one */

    return 16 + MT_FLAME_PITCH * layout->row_count + 30 +
           (layout->has_table ? FLAME_TABLE_HEIGHT : 0) + small_print;
}

/* Returns the height of the curve. A low picture omits the table first, then the innermost rows. A
 * high picture has a higher curve. */
static double fit_height(struct mt_flame_layout *layout, double wanted)
{
    layout->has_table = flame_table_columns(layout) > 0;
    if (wanted <= 0)
        return CURVE_HEIGHT;
    double room = mt_chart_frame_height(wanted, 0) - layout->plot.y;
    if (room - height_below_curve(layout) < MIN_CURVE)
        layout->has_table = false;
    while (layout->row_count > 3 && room - height_below_curve(layout) < MIN_CURVE) {
        layout->row_count--;
        layout->rows_cut++;
    }
    return fmax(MIN_CURVE, room - height_below_curve(layout));
}

static void draw_picture(struct mt_flame_layout *layout, const char *title,
                         const struct mt_chart_options *options)
{
    struct mt_report since_zero = *layout->report;
    struct mt_timeline timeline;

    make_timeline(layout, &timeline);
    mt_flame_layout_rows(layout);
    layout->zero_t_ns = layout->chart->step == MT_NO_STEP && layout->chart->phase == MT_NO_PHASE
                            ? mt_min_u64(layout->report->first_t_ns, layout->chart->begin_t_ns)
                            : layout->chart->begin_t_ns;
    since_zero.first_t_ns = layout->zero_t_ns;
    mt_time_axis_init(&layout->axis, &since_zero, &timeline, options->event_axis);
    if (layout->chart->end_event == mt_device_shown_end(layout->device).event)
        layout->axis.rest =
            mt_chart_frame_teardown(layout->drawing, layout->report, layout->device);
    layout->axis.left = layout->plot.x = MT_MARGIN + GUTTER;
    layout->axis.width = layout->plot.width = layout->drawing->width - layout->plot.x - MT_MARGIN;
    mt_flame_layout_cells(layout);
    double y = mt_flame_draw_key(layout, MT_MARGIN,
                                 mt_chart_frame_header(layout->drawing, title, facts(layout)));
    layout->plot.y = y + 14;
    layout->plot.height = fit_height(layout, options->height);
    layout->rows_top = layout->plot.y + layout->plot.height + 16;
    layout->drawing->height =
        ceil(layout->plot.y + layout->plot.height + height_below_curve(layout));
    flame_draw_curve(layout);
    mt_flame_draw_rows(layout);
    mt_flame_draw_row_names(layout);
    y = layout->rows_top + MT_FLAME_PITCH * layout->row_count;
    mt_time_axis_draw_folds(layout->drawing, &layout->axis, layout->plot.y, y - layout->plot.y);
    flame_draw_peak(layout);
    mt_time_axis_draw_ticks(layout->drawing, &layout->axis, y + 2);
    if (layout->has_table)
        flame_draw_table(layout, y + 50);
    draw_footnote(layout);
    layout->axis.report = layout->report;
    layout->axis.timeline = NULL; /* do not keep pointers to local variables */
}

static void draw_chart(const struct mt_report *report, const struct mt_device_report *device,
                       const struct mt_chart_options *options, struct mt_drawing *drawing)
{
    struct mt_flame_layout layout = {.drawing = drawing,
                                     .report = report,
                                     .device = device,
                                     .chart = device ? device->flamechart : NULL};

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, 640), "flamechart");
    const char *title =
        mt_chart_frame_title(drawing, report, device, chart_name(drawing, report, layout.chart));
    mt_chart_frame_describe(drawing, report, device, title);
    if (layout.chart && layout.chart->events)
        draw_picture(&layout, title, options);
    else
        mt_chart_frame_empty(drawing, report, device, title,
                             device ? "Nothing was allocated or freed" : "No allocator events",
                             "There is nothing to put on a time axis.");
}

const struct mt_chart mt_chart_flamechart = {
    .name = "flamechart",
    .summary = "which calls grew or shrank memory",
    .needs_history = true,
    .models = MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART,
    .is_on_request = true,
    .draw = draw_chart,
};
