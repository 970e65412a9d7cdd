/* The curve of allocated bytes, on the same x axis as the rows. In a column of pixels, the curve
 * goes to the fullest instant, then to the last level. */
#include "flamechart_layout.h"

#include <math.h>

#include "units.h"

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

void mt_flame_draw_peak(const struct mt_flame_layout *layout)
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

void mt_flame_draw_curve(const struct mt_flame_layout *layout)
{
    const struct mt_paint fill = {.fill = MT_COLOR_CURVE_FILL};
    const struct mt_paint line = {.stroke = MT_COLOR_CURVE, .stroke_width = 1.3};
    const struct mt_flamechart *chart = layout->chart;
    uint64_t top = top_of(layout);
    struct outline outline = {.capacity =
                                  4 * ((size_t)chart->curve_count + chart->event_curve_count) + 8};
    struct mt_ticks ticks;
    size_t drawn;

    outline.points =
        mt_arena_array(&layout->drawing->arena, outline.capacity, sizeof *outline.points);
    mt_byte_ticks(&ticks, chart->peak_allocated, top, 5);
    mt_chart_frame_byte_axis(layout->drawing, &layout->plot, &ticks, top);
    trace(layout, top, &outline);
    drawn = outline.count;
    add_point(&outline, layout->plot.x + layout->plot.width, layout->plot.y + layout->plot.height);
    add_point(&outline, layout->plot.x, layout->plot.y + layout->plot.height);
    mt_draw_path(layout->drawing, outline.points, outline.count, true, true, &fill, NULL,
                 "area:allocated");
    mt_draw_path(layout->drawing, outline.points, drawn, false, true, &line, NULL,
                 "curve:allocated");
}
