#include "time_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "units.h"
#include "util.h"

void mt_time_axis_init(struct mt_time_axis *axis, const struct mt_report *report,
                       const struct mt_timeline *timeline, bool by_event)
{
    memset(axis, 0, sizeof *axis);
    axis->report = report;
    axis->timeline = timeline;
    axis->by_event = by_event;
    for (uint32_t i = 0; i < report->phase_count; i++)
        axis->row_count += report->main_phase[i];
}

void mt_time_axis_window(struct mt_drawing *drawing, const struct mt_device_report *device,
                         const struct mt_axis_window *window, struct mt_timeline *axis)
{
    const struct mt_timeline *whole = device->timeline;
    struct mt_span *span = mt_arena_alloc(&drawing->arena, sizeof *span);

    memset(axis, 0, sizeof *axis);
    axis->first_event = window->begin_event;
    axis->last_event = mt_max_u64(window->begin_event, window->end_event);
    if (window->is_whole && whole && whole->span_count > 1) {
        axis->spans = whole->spans;
        axis->span_count = whole->span_count;
        axis->busy_ns = whole->busy_ns;
        return;
    }
    span->begin_t_ns = window->begin_t_ns;
    span->end_t_ns = mt_max_u64(window->end_t_ns, window->begin_t_ns + 1);
    axis->spans = span;
    axis->span_count = 1;
    axis->busy_ns = span->end_t_ns - span->begin_t_ns;
}

uint32_t mt_time_axis_spans(const struct mt_time_axis *axis)
{
    return axis->by_event || !axis->timeline->span_count ? 1 : axis->timeline->span_count;
}

/* Returns the width of the axis without the folds, in pixels. */
static double drawn_width(const struct mt_time_axis *axis)
{
    return axis->width - MT_FOLD_WIDTH * (double)(mt_time_axis_spans(axis) - 1);
}

double mt_time_axis_x(const struct mt_time_axis *axis, uint64_t t_ns, uint64_t event)
{
    const struct mt_timeline *timeline = axis->timeline;
    uint32_t span = 0;

    if (axis->by_event) {
        uint64_t count = timeline->last_event - timeline->first_event + 1;
        uint64_t before = event > timeline->first_event ? event - timeline->first_event : 0;

        return axis->left + axis->width * (double)mt_min_u64(before, count) / (double)count;
    }
    while (span + 1 < timeline->span_count && t_ns >= timeline->spans[span + 1].begin_t_ns)
        span++;
    return axis->left + span * MT_FOLD_WIDTH +
           drawn_width(axis) * mt_timeline_position(timeline, t_ns);
}

double mt_time_axis_span_left(const struct mt_time_axis *axis, uint32_t span)
{
    if (axis->by_event || span >= axis->timeline->span_count)
        return axis->left;
    return mt_time_axis_x(axis, axis->timeline->spans[span].begin_t_ns, 0);
}

double mt_time_axis_span_right(const struct mt_time_axis *axis, uint32_t span)
{
    if (axis->by_event || span + 1 >= axis->timeline->span_count)
        return axis->left + axis->width;
    return mt_time_axis_x(axis, axis->timeline->spans[span].end_t_ns, 0);
}

static void draw_zigzag(struct mt_drawing *drawing, double x, double y, double height)
{
    const struct mt_paint paint = {.stroke = MT_COLOR_AXIS};
    struct mt_point points[256];
    size_t count = 0;

    for (double down = 0; down <= height && count < MT_ARRAY_LEN(points); down += 6, count++) {
        points[count].x = x + (count % 2 ? 2.5 : -2.5);
        points[count].y = y + down;
    }
    mt_draw_path(drawing, points, count, false, false, &paint, NULL, "fold");
}

void mt_time_axis_draw_folds(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y,
                             double height)
{
    const struct mt_paint cover = {.fill = MT_COLOR_BACKGROUND};
    struct mt_text_style style = {.size = MT_SIZE_SMALL,
                                  .color = MT_COLOR_MUTED,
                                  .anchor = MT_ANCHOR_MIDDLE,
                                  .vertical = true};
    char length[MT_UNITS_TEXT], label[MT_UNITS_TEXT + 16];

    for (uint32_t i = 0; i + 1 < mt_time_axis_spans(axis); i++) {
        const struct mt_span *spans = axis->timeline->spans;
        double left = mt_time_axis_span_right(axis, i), right = mt_time_axis_span_left(axis, i + 1);

        mt_draw_rect(drawing, left + 8, y - 2, right - left - 16, height + 3, &cover, NULL,
                     "fold-cover");
        draw_zigzag(drawing, left + 8, y, height);
        draw_zigzag(drawing, right - 8, y, height);
        mt_format_duration(length, spans[i + 1].begin_t_ns - spans[i].end_t_ns);
        snprintf(label, sizeof label, height > 120 ? "idle %s folded" : "%s", length);
        mt_draw_text(drawing, (left + right) / 2 + 4, y + height / 2, label, &style, "fold-label");
    }
}

static void draw_tick(struct mt_drawing *drawing, const struct mt_time_axis *axis, double x,
                      double y, const char *label, double *free_from)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    double half = 0.52 * mt_text_width(label, MT_SIZE_AXIS, MT_REGULAR);

    if (x - half < *free_from || x + half > axis->left + axis->width + 16)
        return;
    mt_draw_line(drawing, x, y, x, y + 4, &line);
    mt_chart_frame_text(drawing, x, y + 18, label, MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_MIDDLE, "tick-x");
    *free_from = x + half + 10;
}

static void draw_event_ticks(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y)
{
    uint64_t first = axis->timeline->first_event, last = axis->timeline->last_event;
    uint64_t step = mt_scale_count_step((double)(last - first + 1) * 80 / axis->width);
    double free_from = 0;
    char label[MT_UNITS_TEXT];

    for (uint64_t at = (first + step - 1) / step * step; at <= last; at += step) {
        draw_tick(drawing, axis, mt_time_axis_x(axis, 0, at), y, mt_format_count(label, at),
                  &free_from);
        if (at + step < at)
            break;
    }
}

static void draw_time_ticks(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y)
{
    const struct mt_timeline *timeline = axis->timeline;
    double least = (double)timeline->busy_ns * 80 / fmax(drawn_width(axis), 1), free_from = 0;
    uint64_t zero = axis->report->first_t_ns, step = mt_scale_time_step(least);
    char label[MT_TICK_TEXT];

    if (!timeline->span_count)
        return;
    uint64_t longest = timeline->spans[timeline->span_count - 1].end_t_ns;
    longest = longest > zero ? longest - zero : 0;
    for (uint32_t i = 0; i < timeline->span_count; i++) {
        uint64_t begin = timeline->spans[i].begin_t_ns, end = timeline->spans[i].end_t_ns;

        begin = begin > zero ? begin - zero : 0;
        end = end > zero ? end - zero : 0;
        for (uint64_t at = (begin + step - 1) / step * step; at <= end; at += step) {
            mt_scale_time_label(label, at, step, longest);
            draw_tick(drawing, axis, mt_time_axis_x(axis, zero + at, 0), y, label, &free_from);
            if (at + step < at)
                break;
        }
    }
}

void mt_time_axis_draw_ticks(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y)
{
    if (axis->by_event)
        draw_event_ticks(drawing, axis, y);
    else
        draw_time_ticks(drawing, axis, y);
}

static void add_numbers(struct mt_buf *out, const double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mt_buf_add_char(out, ' ');
        mt_buf_add_decimal(out, numbers[i], 1);
    }
}

static void begin_zoom(struct mt_drawing *drawing, struct mt_buf *role)
{
    mt_draw_group_begin(drawing, NULL, role->data);
    mt_buf_release(role);
}

void mt_zoom_begin(struct mt_drawing *drawing, const char *kind, const struct mt_box *box)
{
    const double numbers[] = {box->x, box->y, box->width, box->height};
    struct mt_buf role = {0};

    mt_buf_printf(&role, MT_ZOOM "%s", kind);
    add_numbers(&role, numbers, MT_ARRAY_LEN(numbers));
    begin_zoom(drawing, &role);
}

void mt_zoom_begin_point(struct mt_drawing *drawing, const char *kind, double x, double y)
{
    const double numbers[] = {x, y};
    struct mt_buf role = {0};

    mt_buf_printf(&role, MT_ZOOM "%s", kind);
    add_numbers(&role, numbers, MT_ARRAY_LEN(numbers));
    begin_zoom(drawing, &role);
}

void mt_zoom_begin_bytes(struct mt_drawing *drawing, uint64_t top)
{
    struct mt_buf role = {0};

    mt_buf_printf(&role, MT_ZOOM "bytes %llu", (unsigned long long)top);
    begin_zoom(drawing, &role);
}

/* The baseline, then left edge, right edge, first and last value of each span. */
void mt_zoom_begin_ticks(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y)
{
    const struct mt_timeline *timeline = axis->timeline;
    struct mt_buf role = {0};

    mt_buf_printf(&role, MT_ZOOM "%s", axis->by_event ? "events" : "times");
    add_numbers(&role, &y, 1);
    for (uint32_t i = 0; i < mt_time_axis_spans(axis); i++) {
        const double edges[] = {mt_time_axis_span_left(axis, i), mt_time_axis_span_right(axis, i)};
        uint64_t begin = timeline->first_event, end = timeline->last_event + 1;

        if (!axis->by_event && !timeline->span_count)
            break;
        if (!axis->by_event) {
            begin = mt_sub_or_0_u64(timeline->spans[i].begin_t_ns, axis->report->first_t_ns);
            end = mt_sub_or_0_u64(timeline->spans[i].end_t_ns, axis->report->first_t_ns);
        }
        add_numbers(&role, edges, MT_ARRAY_LEN(edges));
        mt_buf_printf(&role, " %llu %llu", (unsigned long long)begin, (unsigned long long)end);
    }
    begin_zoom(drawing, &role);
}
