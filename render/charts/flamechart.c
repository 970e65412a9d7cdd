/* The flame chart: the curve of allocated bytes. Below the curve, on the same x axis, are the step,
 * the phases and the call stacks, colored by their effect on memory. */
#include "flamechart_layout.h"

#include <math.h>
#include <string.h>

#include "buf.h"
#include "icicle.h"
#include "report_query.h"
#include "site.h"
#include "units.h"
#include "util.h"

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

/* Draws the scale of colors with its numbers. */
static double draw_key(const struct mt_flame_layout *layout, double y)
{
    const double cell = 13, height = 12;
    double width = cell * 17, x = MT_MARGIN;
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

static void draw_row_names(const struct mt_flame_layout *layout)
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
        const char *name;

        if (cell->row != chart->frame_row + row || cell->kind != MT_CELL_FRAME ||
            cell->frame == MT_NO_ID)
            continue;
        name = mt_frame_function(&layout->drawing->arena, layout->report->symbols, cell->frame);
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
    return name ? name : "";
}

static const char *facts(const struct mt_flame_layout *layout)
{
    const struct mt_flamechart *chart = layout->chart;
    char events[MT_UNITS_TEXT], length[MT_UNITS_TEXT], enter[MT_UNITS_TEXT], leave[MT_UNITS_TEXT];
    bool has_times = mt_report_has_times(layout->report);
    const char *text = mt_arena_printf(
        &layout->drawing->arena,
        "x = %s · color = net change of allocated bytes while the frame was on the stack · %s "
        "allocations and frees%s%s · from %s to %s",
        layout->axis.by_event ? "events" : "time", mt_format_count(events, chart->events),
        has_times ? " in " : "",
        has_times ? mt_format_duration(length, chart->end_t_ns - chart->begin_t_ns) : "",
        mt_format_bytes(enter, chart->enter_allocated),
        mt_format_bytes(leave, chart->exit_allocated));

    return text;
}

static double height_below_curve(const struct mt_flame_layout *layout)
{
    double small_print = layout->drawing->width < MT_NARROW_WIDTH ? 56 : 40; /* two lines or one */

    return 16 + MT_FLAME_PITCH * layout->row_count + 30 +
           (layout->has_table ? MT_FLAME_TABLE_HEIGHT : 0) + small_print;
}

/* Returns the height of the curve. A low picture omits the table first, then the innermost rows. A
 * high picture has a higher curve. */
static double fit_height(struct mt_flame_layout *layout, double wanted)
{
    double room;

    layout->has_table = mt_flame_table_columns(layout) > 0;
    if (wanted <= 0)
        return CURVE_HEIGHT;
    room = mt_chart_frame_height(wanted, 0) - layout->plot.y;
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
    double y;

    make_timeline(layout, &timeline);
    mt_flame_layout_rows(layout);
    layout->zero_t_ns = layout->chart->step == MT_NO_STEP && layout->chart->phase == MT_NO_PHASE
                            ? mt_min_u64(layout->report->first_t_ns, layout->chart->begin_t_ns)
                            : layout->chart->begin_t_ns;
    since_zero.first_t_ns = layout->zero_t_ns;
    mt_time_axis_init(&layout->axis, &since_zero, &timeline, options->event_axis);
    layout->axis.left = layout->plot.x = MT_MARGIN + GUTTER;
    layout->axis.width = layout->plot.width = layout->drawing->width - layout->plot.x - MT_MARGIN;
    mt_flame_layout_cells(layout);
    y = draw_key(layout, mt_chart_frame_header(layout->drawing, title, facts(layout)));
    layout->plot.y = y + 14;
    layout->plot.height = fit_height(layout, options->height);
    layout->rows_top = layout->plot.y + layout->plot.height + 16;
    layout->drawing->height =
        ceil(layout->plot.y + layout->plot.height + height_below_curve(layout));
    mt_flame_draw_curve(layout);
    mt_flame_draw_rows(layout);
    draw_row_names(layout);
    y = layout->rows_top + MT_FLAME_PITCH * layout->row_count;
    mt_time_axis_draw_folds(layout->drawing, &layout->axis, layout->plot.y, y - layout->plot.y);
    mt_flame_draw_peak(layout);
    mt_time_axis_draw_ticks(layout->drawing, &layout->axis, y + 2);
    if (layout->has_table)
        mt_flame_draw_table(layout, y + 50);
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
    const char *title;

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, 640), "flamechart");
    title =
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
    .models = MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART,
    .is_enlarged = true,
    .draw = draw_chart,
};
