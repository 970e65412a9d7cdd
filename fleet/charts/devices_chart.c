/* Devices that several processes share. The chart shows how much memory each process held over
 * time, and memory that was not released. It has a panel for each of the devices with the highest
 * sums. */
#include <math.h>
#include <string.h>

#include "chart_frame.h"
#include "devices_view.h"
#include "draw.h"
#include "job_chart.h"
#include "job_frame.h"
#include "job_report.h"
#include "place.h"
#include "scale.h"
#include "units.h"
#include "util.h"

enum { MAX_PANELS = 3 };

#define ONE_PLOT  300.0 /* heights */
#define MANY_PLOT 190.0
#define MIN_PLOT  90.0
#define GAP       18.0

/* Chooses the devices with the largest peaks, largest first. Returns their number. */
static uint32_t choose(const struct mt_job_report *report, uint32_t *chosen)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++) {
        uint32_t at = count;

        while (at && report->devices[chosen[at - 1]].peak_bytes < report->devices[i].peak_bytes)
            at--;
        if (at == MAX_PANELS)
            continue;
        count += count < MAX_PANELS;
        memmove(chosen + at + 1, chosen + at, (count - at - 1) * sizeof *chosen);
        chosen[at] = i;
    }
    return count;
}

static const char *facts(struct mt_drawing *drawing, const struct mt_job_report *report,
                         uint32_t highest)
{
    const struct mt_job_device *device = &report->devices[highest];
    uint32_t devices = mt_devices_count(report);
    char count[MT_UNITS_TEXT], peak[MT_UNITS_TEXT];

    return mt_arena_printf(&drawing->arena, "%s shared %s · highest: %s%s reserved together, %s",
                           mt_format_count(count, devices), devices == 1 ? "device" : "devices",
                           device->is_exact ? "" : "at most ",
                           mt_format_bytes(peak, device->peak_bytes),
                           mt_devices_name(drawing, report, device));
}

struct picture {
    struct mt_drawing *drawing;
    const struct mt_job_report *report;
    uint32_t chosen[MAX_PANELS + 1], count;
    struct mt_devices_panel panels[MAX_PANELS];
    double small_print;
};

#define HEADING 18.0 /* from the top of the panel to the baseline of the heading */
#define TO_PLOT 12.0
#define AXIS    42.0 /* room for ticks, and the distance to the heading of the table */

/* Returns the height of the panel without its plot. */
static double devices_panel_height(const struct mt_devices_panel *panel)
{
    return HEADING + TO_PLOT + AXIS + panel->layer_count * MT_DEVICES_ROW + 12;
}

static double fixed_height(const struct picture *picture)
{
    double height = picture->small_print;

    for (uint32_t i = 0; i < picture->count; i++)
        height += devices_panel_height(&picture->panels[i]) + GAP;
    return height + (picture->count < picture->report->device_count ? 24 : 0);
}

/* Fits the panels into a height. A low picture gets lower plots first, then fewer devices. */
static void fit_height(struct picture *picture, double y, double wanted)
{
    struct mt_drawing *drawing = picture->drawing;
    double height = wanted > 0 ? mt_chart_frame_height(wanted, wanted) : 0;

    while (wanted > 0 && picture->count > 1 &&
           y + fixed_height(picture) + picture->count * MIN_PLOT > height)
        picture->count--;
    double plot = wanted > 0            ? (height - y - fixed_height(picture)) / picture->count
                  : picture->count == 1 ? ONE_PLOT
                                        : MANY_PLOT;
    plot = fmax(floor(plot), MIN_PLOT);
    for (uint32_t i = 0; i < picture->count; i++)
        picture->panels[i].height = plot;
    drawing->height =
        mt_chart_frame_height(fmax(height, y + fixed_height(picture) + picture->count * plot), 0);
}

/* Returns the noun for panels. */
static const char *panel_noun(const struct mt_job_report *report, bool is_one)
{
    if (mt_devices_count(report) < report->device_count)
        return is_one ? "period of use is" : "periods of use are";
    return is_one ? "shared device is" : "shared devices are";
}

/* Draws "8,189 more shared devices are not drawn: at most 40.0 GiB together on any of them". */
static void draw_rest(const struct picture *picture, double y)
{
    const struct mt_job_report *report = picture->report;
    uint32_t rest = report->device_count - picture->count;
    uint64_t most = 0;
    char count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];

    if (!rest)
        return;
    for (uint32_t i = 0; i < report->device_count; i++) {
        bool is_drawn = false;

        for (uint32_t k = 0; k < picture->count; k++)
            is_drawn |= picture->chosen[k] == i;
        if (!is_drawn)
            most = mt_max_u64(most, report->devices[i].peak_bytes);
    }
    const char *text =
        mt_arena_printf(&picture->drawing->arena, "%s more %s not drawn: at most %s together%s",
                        mt_format_count(count, rest), panel_noun(report, rest == 1),
                        mt_format_bytes(bytes, most), rest == 1 ? "" : " on any of them");
    mt_chart_frame_text(picture->drawing, MT_MARGIN, y,
                        mt_text_fit(picture->drawing, text, MT_SIZE_BODY, MT_REGULAR,
                                    picture->drawing->width - 2 * MT_MARGIN, false),
                        MT_SIZE_BODY, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "rest");
}

static bool are_exact(const struct picture *picture)
{
    for (uint32_t i = 0; i < picture->count; i++)
        if (!picture->panels[i].device->is_exact)
            return false;
    return true;
}

#define MAX_TOTAL 1.6 /* a device of more than this multiple of the peak is off the scale */
#define HEADROOM  1.2 /* the plot ends at this multiple of the largest sum, for labels */

static void place_plot(struct mt_devices_panel *panel, struct mt_ticks *ticks)
{
    const struct mt_job_device *device = panel->device;
    uint64_t largest = device->peak_bytes;
    double widest = 0;

    panel->has_total_line = device->total_bytes &&
                            (double)device->total_bytes <= MAX_TOTAL * (double)device->peak_bytes;
    if (panel->has_total_line)
        largest = mt_max_u64(largest, device->total_bytes);
    panel->top = (uint64_t)fmin(fmax((double)device->peak_bytes * HEADROOM,
                                     panel->has_total_line ? (double)largest * 1.06 : 1),
                                1.8e19);
    mt_byte_ticks(ticks, largest, panel->top, (size_t)fmin(fmax(panel->plot.height / 36, 2), 6));
    for (size_t i = 0; i < ticks->count; i++)
        widest = fmax(widest, mt_text_width(ticks->ticks[i].label, MT_SIZE_AXIS, MT_REGULAR));
    panel->plot.x = round(MT_MARGIN + 1.05 * widest + 9);
    panel->plot.width = panel->drawing->width - MT_MARGIN - panel->plot.x;
}

/* Draws "device 141 GiB" with a sample of its line, right-aligned. Returns the x on the left of
 * both. */
static double draw_total_words(const struct mt_devices_panel *panel, double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.4, .dashed = true};
    double right = panel->plot.x + panel->plot.width;
    char bytes[MT_UNITS_TEXT];

    if (!panel->device->total_bytes)
        return right;
    const char *text = mt_arena_printf(&panel->drawing->arena, "device %s%s",
                                       mt_format_bytes(bytes, panel->device->total_bytes),
                                       panel->has_total_line ? "" : ", off the scale");
    double left = right - mt_text_room(text, MT_SIZE_SMALL, MT_REGULAR);
    mt_chart_frame_text(panel->drawing, right, y, text, MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_LIMIT,
                        MT_ANCHOR_END, "total");
    if (!panel->has_total_line)
        return left - 14;
    mt_draw_path(panel->drawing, (const struct mt_point[]){{left - 30, y - 4}, {left - 6, y - 4}},
                 2, false, false, &line, NULL, "legend-line");
    return left - 44;
}

static void draw_heading(const struct mt_devices_panel *panel, double y)
{
    struct mt_drawing *drawing = panel->drawing;
    double right = draw_total_words(panel, y), room = right - MT_MARGIN;
    char count[MT_UNITS_TEXT];
    const char *name = mt_devices_name(drawing, panel->report, panel->device);
    const char *facts = mt_arena_printf(&drawing->arena, "%s processes over %s",
                                        mt_format_count(count, panel->device->tenant_count),
                                        mt_devices_when(panel, panel->device->end_t_ns));

    name = mt_text_fit(drawing, name, 14, MT_SEMIBOLD, room, true);
    double used = 12 + 1.06 * mt_chart_frame_text(drawing, MT_MARGIN, y, name, 14, MT_SEMIBOLD,
                                                  MT_COLOR_TEXT, MT_ANCHOR_START, "device");
    if (mt_text_room(facts, MT_SIZE_SMALL, MT_REGULAR) <= room - used)
        mt_chart_frame_text(drawing, MT_MARGIN + used, y, facts, MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_START, "device-facts");
}

static double base_y(const struct mt_devices_panel *panel)
{
    return panel->plot.y + panel->plot.height;
}

/* Draws an area below a stepped line along the columns. */
static void draw_area(const struct mt_devices_panel *panel, const struct mt_devices_layer *layer,
                      struct mt_point *points)
{
    const struct mt_box *plot = &panel->plot;
    uint32_t count = 0;
    uint64_t highest = 0;
    char bytes[MT_UNITS_TEXT];
    const char *name = layer->tenant ? mt_devices_process(panel, layer->tenant)
                                     : "processes without a layer of their own";

    points[count++] = (struct mt_point){plot->x, base_y(panel)};
    for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++) {
        double y = mt_devices_y(panel, layer->tops[c]);
        double x = plot->x + plot->width * c / MT_JOB_COLUMNS;

        highest = mt_max_u64(highest, layer->tops[c]);
        if (y == points[count - 1].y)
            continue;
        points[count] = (struct mt_point){x, points[count - 1].y};
        points[count + 1] = (struct mt_point){x, y};
        count += 2;
    }
    points[count] = (struct mt_point){plot->x + plot->width, points[count - 1].y};
    points[count + 1] = (struct mt_point){plot->x + plot->width, base_y(panel)};
    count += 2;
    if (!highest)
        return;
    const char *title = mt_arena_printf(&panel->drawing->arena, "%s: %s%s at the device's peak",
                                        name, panel->device->is_exact ? "" : "at most ",
                                        mt_format_bytes(bytes, layer->held_bytes));
    mt_draw_path(panel->drawing, points, count, true, true, &layer->paint, title,
                 layer->tenant ? "layer" : "layer:others");
}

static void draw_stack(const struct mt_devices_panel *panel)
{
    struct mt_point *points =
        mt_arena_array(&panel->drawing->arena, 2 * MT_JOB_COLUMNS + 4, sizeof *points);

    for (uint32_t i = panel->layer_count; i-- > 0;)
        draw_area(panel, &panel->layers[i], points);
}

static void draw_total(const struct mt_devices_panel *panel)
{
    const struct mt_paint line = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.4, .dashed = true};
    double y = mt_devices_y(panel, panel->device->total_bytes);
    const struct mt_point points[] = {{panel->plot.x, y}, {panel->plot.x + panel->plot.width, y}};

    if (panel->has_total_line)
        mt_draw_path(panel->drawing, points, 2, false, false, &line, "memory of the device",
                     "line:total");
}

static void draw_time(const struct mt_devices_panel *panel)
{
    const struct mt_paint tick = {.stroke = MT_COLOR_AXIS};
    uint64_t span = panel->device->end_t_ns - panel->device->begin_t_ns;
    uint64_t step = mt_scale_time_step((double)span * 90 / panel->plot.width);
    double base = base_y(panel), right = panel->plot.x + panel->plot.width;

    for (uint64_t t = 0; t <= span; t += step) {
        double x = mt_devices_x(panel, panel->device->begin_t_ns + t);
        char label[MT_TICK_TEXT];

        mt_scale_time_label(label, t, step, span);
        double half = mt_text_room(label, MT_SIZE_AXIS, MT_REGULAR) / 2;
        mt_draw_line(panel->drawing, x, base, x, base + 4, &tick);
        if (x + half <= panel->drawing->width - 4 && x <= right)
            mt_chart_frame_text(panel->drawing, x, base + 18, label, MT_SIZE_AXIS, MT_REGULAR,
                                MT_COLOR_MUTED, MT_ANCHOR_MIDDLE, "tick-x");
        if (step > span - t)
            break;
    }
}

/* Draws the panel at y. Returns the y below the panel. */
static double devices_draw_panel(struct mt_devices_panel *panel, double y)
{
    struct mt_ticks ticks;

    panel->plot = (struct mt_box){.y = y + HEADING + TO_PLOT, .height = panel->height};
    place_plot(panel, &ticks);
    draw_heading(panel, y + HEADING);
    mt_chart_frame_byte_axis(panel->drawing, &panel->plot, &ticks, panel->top);
    draw_stack(panel);
    draw_total(panel);
    draw_time(panel);
    mt_devices_draw_labels(panel);
    return mt_devices_draw_table(panel, base_y(panel) + AXIS) + 12;
}

static void draw_picture(struct picture *picture, const char *title, const char *about,
                         const struct mt_job_chart_options *options)
{
    double y = mt_chart_frame_header(picture->drawing, title, about);

    picture->small_print = picture->drawing->width < MT_NARROW_WIDTH ? 44 : 28;
    for (uint32_t i = 0; i < picture->count; i++) {
        picture->panels[i] =
            (struct mt_devices_panel){.drawing = picture->drawing,
                                      .report = picture->report,
                                      .device = &picture->report->devices[picture->chosen[i]]};
        mt_devices_make_layers(&picture->panels[i]);
    }
    fit_height(picture, y, options->height);
    for (uint32_t i = 0; i < picture->count; i++)
        y = devices_draw_panel(&picture->panels[i], y) + GAP;
    draw_rest(picture, y);
    mt_chart_frame_footnote(picture->drawing,
                            are_exact(picture)
                                ? "a column: the levels at its highest sum · memory outside the "
                                  "allocators is not included "
                                  "· dot: own peak · 0 s: the first process starts"
                                : "\"at most\": a process counts with its largest level in 1/512 "
                                  "of its time · memory outside the allocators is not included · "
                                  "dot: own peak · 0 s: the first process starts");
}

static bool is_called_for(const struct mt_job_report *report)
{
    return report->device_count > 0;
}

static void draw_chart(const struct mt_job_report *report,
                       const struct mt_job_chart_options *options, struct mt_drawing *drawing)
{
    struct picture picture = {.drawing = drawing, .report = report};

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, 560), "devices");
    picture.count = choose(report, picture.chosen);
    const char *about = picture.count ? facts(drawing, report, picture.chosen[0])
                                      : "No device is shared by several processes.";
    const char *title = mt_job_words_describe(drawing, report, "shared devices", about);
    if (picture.count)
        draw_picture(&picture, title, about, options);
    else
        mt_job_words_nothing(drawing, title, "No device is shared",
                             "No two processes with a known device ran on it at the same time.");
}

const struct mt_job_chart mt_job_chart_devices = {
    .name = "devices",
    .summary = "what the processes of a shared device held over time, and what was not released",
    .called_for = is_called_for,
    .draw = draw_chart,
};

/* The panel of a shared device: heading, stack of processes over time, axes, table. Layers are
 * drawn from the top one down, each down to the base line, so there are no seams between them. */
