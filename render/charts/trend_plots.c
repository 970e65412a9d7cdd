/* The two plots of the chart of steps: bars from zero, and the level alone, enlarged. */
#include "trend_layout.h"

#include <math.h>
#include <stdio.h>

#include "report_query.h"
#include "units.h"
#include "util.h"

const struct mt_peak *mt_trend_outer_peak(const struct mt_trend_layout *layout)
{
    const struct mt_peak *peak = &layout->device->allocated_peak;
    uint64_t within = 0;

    for (uint32_t i = 0; i < layout->trend.count; i++)
        within = mt_max_u64(within, layout->steps[i].peak.allocated);
    return peak->bytes > within + within / 100 ? peak : NULL;
}

static double y_of(const struct mt_trend_layout *layout, double bytes)
{
    return layout->plot.y + layout->plot.height * (1 - bytes / (double)layout->top);
}

/* The same for bars, which end at the upper edge if they are broken. */
static double bar_y(const struct mt_trend_layout *layout, double bytes)
{
    return layout->is_broken ? fmax(y_of(layout, bytes), layout->plot.y) : y_of(layout, bytes);
}

static double level_y(const struct mt_trend_layout *layout, double bytes)
{
    double low = (double)layout->level_low,
           range = (double)(layout->level_high - layout->level_low);

    return layout->level.y + layout->level.height * (1 - (bytes - low) / (range * 1.12));
}

/* Returns the x of the middle of a step. `step` counts from the first step in the plot. */
static double x_of(const struct mt_trend_layout *layout, double step)
{
    return layout->plot.x + layout->plot.width * (step + 0.5) / layout->trend.count;
}

static const char *one_step(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                            const struct mt_trend_column *column)
{
    const struct mt_step_use *step = &layout->steps[column->first];
    char n[6][MT_UNITS_TEXT];

    return mt_arena_printf(
        &drawing->arena,
        "%s: %s (%s B) still allocated at its end, peak %s (%s B), reserved %s "
        "(%s B)",
        mt_chart_frame_where(drawing, layout->report, MT_NO_PHASE, step->step),
        mt_format_bytes(n[0], step->exit.allocated), mt_format_count(n[1], step->exit.allocated),
        mt_format_bytes(n[2], step->peak.allocated), mt_format_count(n[3], step->peak.allocated),
        mt_format_bytes(n[4], step->peak.reserved), mt_format_count(n[5], step->peak.reserved));
}

static const char *some_steps(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                              const struct mt_trend_column *column)
{
    const struct mt_step_use *first = &layout->steps[column->first];
    char n[3][MT_UNITS_TEXT];

    return mt_arena_printf(
        &drawing->arena, "steps %lld to %lld: %s B to %s B at their ends, peak %s B",
        (long long)first->step, (long long)first[column->count - 1].step,
        mt_format_count(n[0], column->level_min), mt_format_count(n[1], column->level_max),
        mt_format_count(n[2], column->peak));
}

static void draw_part(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                      const struct mt_trend_column *column, uint64_t from, uint64_t to,
                      enum mt_color color, const char *role)
{
    const struct mt_paint paint = {.fill = color};
    double gap = layout->is_grouped ? 0 : round((column->right - column->left) * 0.2);
    double top = bar_y(layout, (double)to), bottom = bar_y(layout, (double)from);

    if (to > from && bottom > top)
        mt_draw_rect(drawing, column->left + gap, top, column->right - column->left - 2 * gap,
                     bottom - top, &paint, NULL, role);
}

static void draw_column(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                        const struct mt_trend_column *column)
{
    const char *title = column->count == 1 ? one_step(drawing, layout, column)
                                           : some_steps(drawing, layout, column);

    mt_draw_group_begin(drawing, title, "column");
    draw_part(drawing, layout, column, column->level_max, column->peak, MT_COLOR_LEVEL_PEAK,
              "peak");
    draw_part(drawing, layout, column, column->level_min, column->level_max, MT_COLOR_LEVEL_RANGE,
              "range");
    draw_part(drawing, layout, column, 0, column->level_min, MT_COLOR_LEVEL, "level");
    mt_draw_group_end(drawing);
}

static void draw_reserved(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    const struct mt_paint paint = {.stroke = MT_COLOR_RESERVED, .stroke_width = 1.6};
    struct mt_text_style style = {
        .size = 12.5, .color = MT_COLOR_TEXT, .anchor = MT_ANCHOR_END, .halo = true};
    struct mt_point *points =
        mt_arena_array(&drawing->arena, 2 * (size_t)layout->column_count, sizeof *points);
    uint32_t count = 0;
    uint64_t most = 0;

    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct mt_trend_column *column = &layout->columns[i];
        double y = bar_y(layout, (double)column->reserved);

        most = mt_max_u64(most, column->reserved);
        points[count++] = (struct mt_point){column->left, y};
        points[count++] = (struct mt_point){column->right, y};
    }
    if (!most || !mt_knows_reserved(layout->report)) /* all reserved memory is allocated */
        return;
    mt_draw_path(drawing, points, count, false, true, &paint, "reserved: most in each step",
                 "curve:reserved");
    double right = layout->plot.x + layout->plot.width,
           width = mt_text_room("reserved", 12.5, MT_REGULAR);
    double y = y_of(layout, (double)layout->columns[layout->column_count - 1].reserved) - 6;
    mt_chart_frame_plate(drawing, right - 8 - width, y - 12, width + 8, 15);
    mt_draw_text(drawing, right - 4, y, "reserved", &style, "label:reserved");
}

/* Draws a line between two steps, clipped to the height of the plot. */
static void draw_clipped(struct mt_drawing *drawing, struct mt_point a, struct mt_point b,
                         const struct mt_box *box, const struct mt_paint *paint, const char *title)
{
    double top = box->y, bottom = box->y + box->height, from = 0, to = 1;
    double rise = b.y - a.y;
    struct mt_point ends[2];

    if (fabs(rise) > 1e-9) {
        double at_top = (top - a.y) / rise, at_bottom = (bottom - a.y) / rise;
        from = fmax(from, fmin(at_top, at_bottom));
        to = fmin(to, fmax(at_top, at_bottom));
    } else if (a.y < top || a.y > bottom) {
        return;
    }
    if (!(from < to))
        return;
    ends[0] = (struct mt_point){a.x + (b.x - a.x) * from, a.y + rise * from};
    ends[1] = (struct mt_point){a.x + (b.x - a.x) * to, a.y + rise * to};
    mt_draw_path(drawing, ends, 2, false, false, paint, title, "trend");
}

static void draw_trend(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                       bool enlarged)
{
    const struct mt_trend *trend = &layout->trend;
    const struct mt_paint paint = {
        .stroke = mt_trend_color(trend), .stroke_width = 2.2, .dashed = true};
    double first = (double)trend->level_bytes;
    double last = first + (double)trend->bytes_per_step * (trend->end - 1 - trend->begin);
    struct mt_point a = {x_of(layout, trend->begin), 0}, b = {x_of(layout, trend->end - 1), 0};
    char n[MT_UNITS_TEXT];

    if (!trend->has_slope)
        return;
    a.y = enlarged ? level_y(layout, first) : y_of(layout, first);
    b.y = enlarged ? level_y(layout, last) : y_of(layout, last);
    const char *title = mt_arena_printf(&drawing->arena, "robust trend: %s%s B per step",
                                        trend->bytes_per_step < 0 ? "\xE2\x88\x92" : "+",
                                        mt_format_count(n, mt_magnitude(trend->bytes_per_step)));
    draw_clipped(drawing, a, b, enlarged ? &layout->level : &layout->plot, &paint, title);
}

/* Draws a gap through the tops of broken bars, and their heights above them. */
static void draw_breaks(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    const struct mt_paint gap = {.stroke = MT_COLOR_BACKGROUND, .stroke_width = 4};
    const struct mt_peak *outer = mt_trend_outer_peak(layout);
    double y = layout->plot.y + 12, free_from = 0;
    char text[MT_UNITS_TEXT];

    for (uint32_t i = 0; layout->is_broken && i < layout->column_count; i++) {
        const struct mt_trend_column *column = &layout->columns[i];
        double middle = (column->left + column->right) / 2;

        if (column->peak <= layout->top)
            continue;
        double inset = layout->is_grouped ? 0 : round((column->right - column->left) * 0.2) - 2;
        mt_draw_line(drawing, column->left + inset, y + 3, column->right - inset, y - 3, &gap);
        mt_format_bytes(text, column->peak);
        double half = 0.53 * mt_text_width(text, MT_SIZE_SMALL, MT_SEMIBOLD);
        middle = fmax(middle, layout->plot.x + half);
        if (middle - half < free_from || outer) /* whose name is there */
            continue;
        mt_chart_frame_text(drawing, middle, layout->plot.y - 6, text, MT_SIZE_SMALL, MT_SEMIBOLD,
                            MT_COLOR_TEXT, MT_ANCHOR_MIDDLE, "label:broken");
        free_from = middle + half + 6;
    }
}

/* Draws the peak of the run between the steps around it, and its name above the plot, where nothing
 * else is. */
static void draw_outer_peak(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    const struct mt_peak *peak = mt_trend_outer_peak(layout);
    const struct mt_paint line = {.stroke = MT_COLOR_LEVEL_PEAK, .stroke_width = 3, .opacity = 1};
    const struct mt_paint leader = {.stroke = MT_COLOR_AXIS};
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.6};
    struct mt_text_style style = {
        .size = MT_SIZE_SMALL, .weight = MT_SEMIBOLD, .color = MT_COLOR_TEXT, .halo = true};
    const struct mt_box *plot = &layout->plot;
    uint32_t before = 0;
    char bytes[MT_UNITS_TEXT];

    if (!peak)
        return;
    while (before < layout->trend.count && layout->steps[before].begin_event <= peak->event)
        before++;
    double x = plot->x + plot->width * before / layout->trend.count;
    double y = fmax(y_of(layout, (double)peak->bytes), plot->y);
    const char *text = mt_arena_printf(&drawing->arena, "peak of the run %s, %s the steps",
                                       mt_format_bytes(bytes, peak->bytes),
                                       !before                         ? "before"
                                       : before == layout->trend.count ? "after"
                                                                       : "between");
    mt_draw_line(drawing, x, plot->y + plot->height, x, y, &line);
    mt_draw_line(drawing, x, y, x, plot->y - 4, &leader);
    mt_draw_circle(drawing, x, y, 4, &ring, text, "ring:run");
    double width = mt_text_room(text, style.size, style.weight);
    style.anchor = x + width > plot->x + plot->width ? MT_ANCHOR_END : MT_ANCHOR_START;
    mt_draw_text(drawing, style.anchor == MT_ANCHOR_END ? x + 3 : x - 3, plot->y - 7, text, &style,
                 "label:run");
}

static double warm_up_width(const struct mt_trend_layout *layout)
{
    return layout->plot.width * layout->trend.begin / fmax(layout->trend.count, 1);
}

static void draw_warm_up(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                         const struct mt_box *box)
{
    const struct mt_paint paint = {.fill = MT_COLOR_PANEL};

    if (layout->trend.has_slope)
        mt_draw_rect(drawing, box->x, box->y, warm_up_width(layout), box->height, &paint,
                     "warm-up: does not count toward growth", "warm-up");
}

/* Writes "warm-up". Call it after the lines of the axis are drawn, because they would cross the
 * text. */
static void write_warm_up(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    double width = warm_up_width(layout);
    const struct mt_text_style style = {
        .size = MT_SIZE_SMALL, .color = MT_COLOR_FAINT, .anchor = MT_ANCHOR_MIDDLE, .halo = true};

    if (layout->trend.has_slope && !layout->is_broken &&
        width > 1.05 * mt_text_width("warm-up", style.size, MT_REGULAR) + 8)
        mt_draw_text(drawing, layout->plot.x + width / 2, layout->plot.y + 14, "warm-up", &style,
                     "label:warm-up");
}

/* Returns true if the numbers of the steps are consecutive. */
static bool are_consecutive(const struct mt_trend_layout *layout)
{
    const struct mt_step_use *steps = layout->steps;

    for (uint32_t i = 1; i < layout->trend.count; i++)
        if (steps[i].step != steps[i - 1].step + 1)
            return false;
    return true;
}

static void draw_step_numbers(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                              double y)
{
    uint32_t count = layout->trend.count;
    char text[MT_UNITS_TEXT + 4], number[MT_UNITS_TEXT];
    int64_t last = layout->steps[count - 1].step;
    bool by_number = are_consecutive(layout);

    mt_format_count(number, (uint64_t)(last < 0 ? -(last + 1) : last));
    uint64_t each =
        mt_scale_count_step((1.05 * mt_text_width(number, MT_SIZE_AXIS, MT_REGULAR) + 14) /
                            (layout->plot.width / count));
    for (uint32_t i = 0; i < count; i++) {
        int64_t step = layout->steps[i].step;
        uint64_t size = mt_magnitude(step);
        double x = x_of(layout, i);

        if ((by_number ? size : i) % each != 0)
            continue;
        snprintf(text, sizeof text, "%s%s", step < 0 ? "\xE2\x88\x92" : "",
                 mt_format_count(number, size));
        double half = 0.53 * mt_text_width(text, MT_SIZE_AXIS, MT_REGULAR);
        if (x + half < layout->plot.x + layout->plot.width + 20)
            mt_chart_frame_text(drawing, x, y + 18, text, MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_MUTED,
                                MT_ANCHOR_MIDDLE, "tick-x");
    }
    mt_chart_frame_text(drawing, layout->plot.x + layout->plot.width / 2, y + 38, "step",
                        MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_MIDDLE, "axis-name");
}

static void draw_level_axis(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    const struct mt_box *box = &layout->level;
    struct mt_paint line = {.stroke = MT_COLOR_GRID};
    uint64_t range = layout->level_high - layout->level_low, top = range + range / 10;
    char head[2 * MT_UNITS_TEXT + 80], text[MT_TICK_TEXT + 1], n[2][MT_UNITS_TEXT];
    struct mt_ticks ticks;

    mt_byte_ticks(&ticks, range, top, 4);
    for (size_t i = 0; i < ticks.count; i++) {
        double y = level_y(layout, (double)layout->level_low + (double)ticks.ticks[i].value);

        line.stroke = i ? MT_COLOR_GRID : MT_COLOR_AXIS;
        mt_draw_line(drawing, box->x, y, box->x + box->width, y, &line);
        snprintf(text, sizeof text, "+%s", ticks.ticks[i].label);
        mt_chart_frame_text(drawing, box->x - 9, y + 4.5, text, MT_SIZE_AXIS, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_END, "tick-level");
    }
    snprintf(head, sizeof head, "The same level, enlarged: this axis starts at %s (%s B)",
             mt_format_bytes(n[0], layout->level_low), mt_format_count(n[1], layout->level_low));
    mt_chart_frame_text(drawing, box->x, box->y - 10,
                        mt_text_fit(drawing, head, 12.5, MT_SEMIBOLD, box->width, false), 12.5,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
}

/* Draws a column in the panel: a bar from its lower edge, clipped to the panel. */
static void draw_level_part(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                            const struct mt_trend_column *column, uint64_t from, uint64_t to,
                            enum mt_color color)
{
    const struct mt_paint paint = {.fill = color};
    double gap = layout->is_grouped ? 0 : round((column->right - column->left) * 0.2);
    double top = fmax(level_y(layout, (double)to), layout->level.y);
    double bottom = fmin(level_y(layout, (double)from), layout->level.y + layout->level.height);

    if (bottom > top)
        mt_draw_rect(drawing, column->left + gap, top, column->right - column->left - 2 * gap,
                     bottom - top, &paint, NULL, "level-enlarged");
}

static void draw_level_panel(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    if (!(layout->level.height > 0))
        return;
    draw_warm_up(drawing, layout, &layout->level);
    draw_level_axis(drawing, layout);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct mt_trend_column *column = &layout->columns[i];

        mt_draw_group_begin(drawing,
                            column->count == 1 ? one_step(drawing, layout, column)
                                               : some_steps(drawing, layout, column),
                            "column-enlarged");
        draw_level_part(drawing, layout, column, column->level_min, column->level_max,
                        MT_COLOR_LEVEL_RANGE);
        draw_level_part(drawing, layout, column, 0, column->level_min, MT_COLOR_LEVEL);
        mt_draw_group_end(drawing);
    }
    draw_trend(drawing, layout, true);
}

void mt_trend_draw_plots(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    const struct mt_box *lowest = layout->level.height > 0 ? &layout->level : &layout->plot;

    draw_warm_up(drawing, layout, &layout->plot);
    mt_chart_frame_byte_axis(drawing, &layout->plot, &layout->ticks, layout->top);
    write_warm_up(drawing, layout);
    for (uint32_t i = 0; i < layout->column_count; i++)
        draw_column(drawing, layout, &layout->columns[i]);
    draw_breaks(drawing, layout);
    draw_reserved(drawing, layout);
    draw_outer_peak(drawing, layout);
    draw_trend(drawing, layout, false);
    draw_level_panel(drawing, layout);
    draw_step_numbers(drawing, layout, lowest->y + lowest->height);
}
