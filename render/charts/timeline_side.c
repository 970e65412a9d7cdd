/* The legend of the timeline: the peak by role and by the largest groups of live blocks. */
#include "timeline_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define ROW        22.0
#define GROUP_ROW  32.0
#define MAX_GROUPS 6
#define HEAD       40.0 /* height of heading and bar */

/* Returns true if the layer is visible anywhere in the plot. */
static bool is_seen(const struct mt_timeline_layout *layout, int layer)
{
    const struct mt_device_report *device = layout->device;
    const struct mt_timeline *timeline = device->timeline;
    uint64_t least = mt_max_u64(device->reserved_peak.bytes, device->allocated_peak.bytes) / 400;

    for (uint32_t i = 0; i < timeline->bin_count; i++)
        if (mt_timeline_layer_bytes(layout, &timeline->time_bins[i], layer) > least ||
            mt_timeline_layer_bytes(layout, &timeline->event_bins[i], layer) > least)
            return true;
    return false;
}

/* Returns a rank that breaks ties between layers of equal size: by role, or from the base line
 * up. */
static int rank_of(const struct mt_timeline_layout *layout, int layer)
{
    const enum mt_color fill = layout->layers[layer].paint.fill;

    return layout->device->timeline->layers ? layer : (int)fill;
}

static bool goes_before(const struct mt_timeline_layout *layout, int layer, int other)
{
    uint64_t bytes = layout->layers[layer].peak_bytes, others = layout->layers[other].peak_bytes;

    return bytes != others ? bytes > others : rank_of(layout, layer) < rank_of(layout, other);
}

/* Finds the layers that have bytes at the peak, largest first, then layers that are visible only
 * elsewhere. */
static size_t layers_by_size(const struct mt_timeline_layout *layout, int layers[MT_ROLE_COUNT])
{
    size_t count = 0, i;

    for (int layer = 0; layer < layout->layer_count; layer++) {
        if (!layout->layers[layer].peak_bytes && !is_seen(layout, layer))
            continue;
        for (i = count++; i > 0 && goes_before(layout, layer, layers[i - 1]); i--)
            layers[i] = layers[i - 1];
        layers[i] = layer;
    }
    return count;
}

/* Writes a share as a whole percentage: "52%", "<1%". */
static void whole_percent(char text[MT_UNITS_TEXT], uint64_t part, uint64_t whole)
{
    double percent = whole ? (double)part / (double)whole * 100 : 0;

    if (percent > 0 && percent < 0.5)
        snprintf(text, MT_UNITS_TEXT, "<1%%");
    else
        snprintf(text, MT_UNITS_TEXT, "%u%%", (unsigned)(percent + 0.5));
}

/* Draws the peak as one bar, with roles in the same order as in the plot. */
static void draw_bar(struct mt_drawing *drawing, const struct mt_timeline_layout *layout, double x,
                     double y, double width)
{
    const struct mt_device_report *device = layout->device;
    double whole = (double)device->allocated_peak.bytes;
    char bytes[MT_UNITS_TEXT];
    int i;

    for (i = 0; i < layout->layer_count; i++) {
        const struct mt_timeline_layer *layer = &layout->layers[i];
        double part = (double)layer->peak_bytes / fmax(whole, 1) * width;

        if (part <= 0)
            continue;
        mt_draw_rect(drawing, x, y, part, 10, &layer->paint,
                     mt_arena_printf(&drawing->arena, "%s %s", layer->name,
                                     mt_format_bytes(bytes, layer->peak_bytes)),
                     "bar");
        x += part;
    }
}

struct row {
    const char *name, *value, *note; /* if the value is "", the note uses its room */
    struct mt_paint swatch;
    bool is_place; /* the name is a site and is shortened in the middle */
};

static void draw_row(struct mt_drawing *drawing, double x, double y, double width,
                     const struct row *row)
{
    double value_right = x + width - 44;
    double room =
        *row->value
            ? value_right - x - 20 - 1.05 * mt_text_width(row->value, MT_SIZE_BODY, MT_SEMIBOLD)
            : width - 20 - 1.05 * mt_text_width(row->note, MT_SIZE_BODY, MT_REGULAR);

    mt_draw_rect(drawing, x, y - 11, 13, 13, &row->swatch, NULL, "swatch");
    mt_chart_frame_text(
        drawing, x + 20, y,
        mt_text_fit(drawing, row->name, MT_SIZE_BODY, MT_REGULAR, room - 6, row->is_place),
        MT_SIZE_BODY, MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "legend");
    mt_chart_frame_text(drawing, value_right, y, row->value, MT_SIZE_BODY, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_END, "legend-value");
    mt_chart_frame_text(drawing, x + width, y, row->note, MT_SIZE_BODY, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_END, "legend-note");
}

/* Draws the layers at the peak. Returns the y below them. */
static double draw_breakdown(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                             double x, double y, double width)
{
    const struct mt_device_report *device = layout->device;
    const struct mt_bytes *then = &device->allocated_peak.then;
    char value[MT_UNITS_TEXT], note[MT_UNITS_TEXT];
    int layers[MT_ROLE_COUNT];
    size_t count = layers_by_size(layout, layers), i;
    struct row row;

    mt_chart_frame_text(drawing, x, y + 10, "At peak allocated", 14, MT_SEMIBOLD, MT_COLOR_TEXT,
                        MT_ANCHOR_START, "heading");
    mt_chart_frame_text(drawing, x + width, y + 10,
                        mt_format_bytes(value, device->allocated_peak.bytes), 14, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_END, "heading-value");
    draw_bar(drawing, layout, x, y + 20, width);
    y += HEAD + 12;
    for (i = 0; i < count; i++, y += ROW) {
        const struct mt_timeline_layer *layer = &layout->layers[layers[i]];

        mt_format_bytes(value, layer->peak_bytes);
        whole_percent(note, layer->peak_bytes, device->allocated_peak.bytes);
        row = (struct row){layer->name, layer->peak_bytes ? value : "",
                           layer->peak_bytes ? note : "not at the peak", layer->paint,
                           layout->device->timeline->layers &&
                               layout->device->timeline->layers->by == MT_LAYERS_BY_SITE};
        row.swatch.radius = 2.5;
        draw_row(drawing, x, y, width, &row);
    }
    if (then->reserved > then->allocated) {
        whole_percent(note, then->reserved - then->allocated, then->reserved);
        row = (struct row){"Reserved, unused",
                           mt_format_bytes(value, then->reserved - then->allocated),
                           note,
                           {.fill = MT_COLOR_UNUSED, .hatched = true, .radius = 2.5},
                           false};
        draw_row(drawing, x, y + 2, width, &row);
        y += ROW + 2;
    }
    return y - 8;
}

static void draw_group(struct mt_drawing *drawing, double x, double y, double width,
                       const struct mt_site_use *site)
{
    const struct mt_paint dot = {.fill = mt_role_color(site->role)};
    char bytes[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT], line[2 * MT_UNITS_TEXT];
    double value =
        mt_chart_frame_text(drawing, x + width, y, mt_format_bytes(bytes, site->bytes),
                            MT_SIZE_AXIS, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_END, "group-value");
    double room = width - 16 - 1.05 * value - 10;
    const char *note;

    mt_draw_circle(drawing, x + 5, y - 4.5, 4, &dot, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 16, y,
                        mt_chart_frame_fit_site(drawing, site->site, MT_SIZE_AXIS, room),
                        MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "group");
    snprintf(line, sizeof line, "%s %s", mt_format_count(blocks, site->blocks),
             site->blocks == 1 ? "block" : "blocks");
    note = site->phase && *site->phase
               ? mt_arena_printf(&drawing->arena, "%s, allocated in %s", line, site->phase)
               : line;
    mt_chart_frame_text(
        drawing, x + 16, y + 14.5,
        mt_text_fit(drawing, note ? note : "", MT_SIZE_SMALL, MT_REGULAR, width - 16, false),
        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "group-note");
}

static size_t group_count(const struct mt_device_report *device)
{
    return device->peak_site_count < MAX_GROUPS ? device->peak_site_count : MAX_GROUPS;
}

static void draw_groups(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                        double x, double y, double width)
{
    size_t count = group_count(layout->device), i;

    if (!count || y + 10 + 22 + 20 > layout->side_bottom)
        return;
    mt_chart_frame_text(drawing, x, y + 10, "Largest live groups at peak", 14, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    y += 10 + 22;
    for (i = 0; i < count && y + 18 <= layout->side_bottom; i++, y += GROUP_ROW)
        draw_group(drawing, x, y, width, &layout->device->peak_sites[i]);
}

double mt_timeline_side_height(const struct mt_timeline_layout *layout)
{
    int layers[MT_ROLE_COUNT];
    double left = HEAD + 12 + ROW * (double)(layers_by_size(layout, layers) + 1);
    double right = 32 + GROUP_ROW * (double)group_count(layout->device);

    return fmax(left, right) + 4;
}

void mt_timeline_draw_side(struct mt_drawing *drawing, const struct mt_timeline_layout *layout)
{
    const struct mt_paint rule = {.stroke = MT_COLOR_GRID};
    double x = layout->side_left, y = layout->side_top, width = layout->side_width;

    if (width <= 0 || !layout->device->allocated_peak.bytes)
        return;
    if (layout->narrow) {
        width = (width - 36) / 2;
        draw_breakdown(drawing, layout, x, y, width);
        draw_groups(drawing, layout, x + width + 36, y, width);
        return;
    }
    y = draw_breakdown(drawing, layout, x, y, width);
    if (group_count(layout->device) && y + 60 < layout->side_bottom)
        mt_draw_line(drawing, x, y, x + width, y, &rule);
    draw_groups(drawing, layout, x, y + 14, width);
}

void mt_timeline_draw_role_row(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                               double y)
{
    int layers[MT_ROLE_COUNT];
    struct mt_swatch swatches[MT_ROLE_COUNT];
    size_t count = layers_by_size(layout, layers), i;

    for (i = 0; i < count; i++) {
        swatches[i].text = layout->layers[layers[i]].name;
        swatches[i].color = layout->layers[layers[i]].paint.fill;
    }
    mt_chart_frame_swatches(drawing, layout->plot.x, y, drawing->width - MT_MARGIN, swatches,
                            count);
}
