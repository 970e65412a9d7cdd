/* Memory over time: how much is allocated and reserved, by which layers, and how much is unused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chart.h"
#include "report_query.h"
#include "time_axis.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

/* The legend of the timeline: the peak by role and by the largest groups of live blocks. */

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

    for (int i = 0; i < layout->layer_count; i++) {
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
    size_t count = layers_by_size(layout, layers);
    struct row row;

    mt_chart_frame_text(drawing, x, y + 10, "At peak allocated", 14, MT_SEMIBOLD, MT_COLOR_TEXT,
                        MT_ANCHOR_START, "heading");
    mt_chart_frame_text(drawing, x + width, y + 10,
                        mt_format_bytes(value, device->allocated_peak.bytes), 14, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_END, "heading-value");
    draw_bar(drawing, layout, x, y + 20, width);
    y += HEAD + 12;
    for (size_t i = 0; i < count; i++, y += ROW) {
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

    mt_draw_circle(drawing, x + 5, y - 4.5, 4, &dot, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 16, y,
                        mt_chart_frame_fit_site(drawing, site->site, MT_SIZE_AXIS, room),
                        MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "group");
    snprintf(line, sizeof line, "%s %s", mt_format_count(blocks, site->blocks),
             site->blocks == 1 ? "block" : "blocks");
    const char *note =
        site->phase && *site->phase
            ? mt_arena_printf(&drawing->arena, "%s, allocated in %s", line, site->phase)
            : line;
    mt_chart_frame_text(drawing, x + 16, y + 14.5,
                        mt_text_fit(drawing, note, MT_SIZE_SMALL, MT_REGULAR, width - 16, false),
                        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "group-note");
}

static size_t group_count(const struct mt_device_report *device)
{
    return device->peak_site_count < MAX_GROUPS ? device->peak_site_count : MAX_GROUPS;
}

static void draw_groups(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                        double x, double y, double width)
{
    size_t count = group_count(layout->device);

    if (!count || y + 10 + 22 + 20 > layout->side_bottom)
        return;
    mt_chart_frame_text(drawing, x, y + 10, "Largest live groups at peak", 14, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    y += 10 + 22;
    for (size_t i = 0; i < count && y + 18 <= layout->side_bottom; i++, y += GROUP_ROW)
        draw_group(drawing, x, y, width, &layout->device->peak_sites[i]);
}

/* Returns the height of timeline_draw_side below a narrow plot. */
static double timeline_side_height(const struct mt_timeline_layout *layout)
{
    int layers[MT_ROLE_COUNT];
    double left = HEAD + 12 + ROW * (double)(layers_by_size(layout, layers) + 1);
    double right = 32 + GROUP_ROW * (double)group_count(layout->device);

    return fmax(left, right) + 4;
}

/* Draws the legend: the layers at the allocated peak, and the largest groups of live blocks. */
static void timeline_draw_side(struct mt_drawing *drawing, const struct mt_timeline_layout *layout)
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

/* Draws names and colors of the layers on baseline y. Replaces timeline_draw_side if there is no
 * room for it. */
static void timeline_draw_role_row(struct mt_drawing *drawing,
                                   const struct mt_timeline_layout *layout, double y)
{
    int layers[MT_ROLE_COUNT];
    struct mt_swatch swatches[MT_ROLE_COUNT];
    size_t count = layers_by_size(layout, layers);

    for (size_t i = 0; i < count; i++) {
        swatches[i].text = layout->layers[layers[i]].name;
        swatches[i].color = layout->layers[layers[i]].paint.fill;
    }
    mt_chart_frame_swatches(drawing, layout->plot.x, y, drawing->width - MT_MARGIN, swatches,
                            count);
}

#define SIDE_WIDTH      258.0 /* width of the legend next to a wide plot */
#define MIN_PLOT        140.0
#define STANDARD_HEIGHT 680.0
#define NEAR_LIMIT      1.6 /* limits up to this multiple of the maximum are drawn */

static enum mt_color verdict(double fragmentation)
{
    return fragmentation < 0.1 ? MT_COLOR_GOOD : fragmentation < 0.3 ? MT_COLOR_WARN : MT_COLOR_BAD;
}

/* Writes the cost of rounding and unsplit tails at the allocated peak. */
static void describe_rounding(char text[MT_UNITS_TEXT + 16], const struct mt_device_report *device)
{
    const struct mt_bytes *then = &device->allocated_peak.then;
    char part[MT_UNITS_TEXT];

    if (then->requested && then->allocated >= then->requested) {
        mt_format_percent(part,
                          (double)(then->allocated - then->requested) / (double)then->requested);
        snprintf(text, MT_UNITS_TEXT + 16, "rounding %s%s", *part == '<' ? "" : "+", part);
    } else {
        snprintf(text, MT_UNITS_TEXT + 16, "%s B",
                 mt_format_count(part, device->requested_peak.bytes));
    }
}

/* Draws tiles for the level of the driver, where nothing is reserved or rounded. */
static double draw_driver_tiles(struct mt_drawing *drawing, const struct mt_device_report *device,
                                double y)
{
    char values[2][MT_UNITS_TEXT], counts[2][MT_UNITS_TEXT + 2];
    struct mt_tile tiles[2] = {
        {"Peak allocated", mt_format_bytes(values[0], device->allocated_peak.bytes), counts[0],
         mt_role_color(MT_ROLE_ACTIVATIONS), NULL},
        {"Allocated at the end", mt_format_bytes(values[1], device->end.allocated), counts[1],
         MT_COLOR_FAINT, NULL}};

    strcat(mt_format_count(counts[0], device->allocated_peak.bytes), " B");
    strcat(mt_format_count(counts[1], device->end.allocated), " B");
    return mt_chart_frame_tiles(drawing, y, tiles, 2);
}

static double draw_tiles(struct mt_drawing *drawing, const struct mt_device_report *device,
                         double y)
{
    const struct mt_bytes *then = &mt_fragmentation_peak(device)->then;
    char values[4][MT_UNITS_TEXT], counts[2][MT_UNITS_TEXT + 2], part[MT_UNITS_TEXT];
    char rounding[MT_UNITS_TEXT + 16], unused[MT_UNITS_TEXT + 16];
    uint64_t allocated = device->allocated_peak.bytes, requested = device->requested_peak.bytes;
    struct mt_tile tiles[4] = {
        {"Peak reserved", mt_format_bytes(values[0], device->reserved_peak.bytes), counts[0],
         MT_COLOR_RESERVED, NULL},
        {"Peak allocated", mt_format_bytes(values[1], allocated), counts[1],
         mt_role_color(MT_ROLE_ACTIVATIONS), NULL},
        {"Peak requested", mt_format_bytes(values[2], requested), rounding, MT_COLOR_FAINT, NULL},
        {mt_arena_printf(&drawing->arena, "Fragmentation at %s", mt_fragmentation_instant(device)),
         mt_format_percent(values[3], mt_unused_share(then)), unused,
         verdict(mt_unused_share(then)), "Fragmentation"}};

    strcat(mt_format_count(counts[0], device->reserved_peak.bytes), " B");
    strcat(mt_format_count(counts[1], allocated), " B");
    describe_rounding(rounding, device);
    snprintf(unused, sizeof unused, "%s unused",
             mt_format_bytes(
                 part, then->reserved > then->allocated ? then->reserved - then->allocated : 0));
    return mt_chart_frame_tiles(drawing, y, tiles, 4);
}

/* Returns the limit of the run, if it is close enough to be drawn. */
static uint64_t near_limit(const struct mt_device_report *device, uint64_t largest)
{
    uint64_t limit = mt_timeline_limit(device);

    /* An imprecise limit is only mentioned in the text. */
    if (device->replay.limit_inferred && mt_limit_is_known(&device->replay) &&
        (double)device->replay.limit_low_bytes < 0.9 * (double)device->replay.limit_high_bytes)
        return 0;
    return limit && (double)limit <= NEAR_LIMIT * (double)largest ? limit : 0;
}

/* Returns true for the level of the driver. A replay under another policy has reserved memory, so
 * it does not count. */
static bool is_of_driver(const struct mt_report *report)
{
    return report->is_driver_level && !report->what_if;
}

static const char *footnote(struct mt_drawing *drawing, const struct mt_timeline_layout *layout)
{
    const char *layers = mt_timeline_layers_text(drawing, layout);
    const char *at = mt_fragmentation_instant(layout->device);

    return mt_arena_printf(
        &drawing->arena, "%s%s%s%s \xC2\xB7 each column shows its fullest instant",
        is_of_driver(layout->report) ? "allocated = requests to the driver, over all heaps"
                                     : "fragmentation = unused \xC3\xB7 reserved, at the ",
        is_of_driver(layout->report) ? "" : at, layers ? " \xC2\xB7 " : "", layers ? layers : "");
}

/* Divides the space between the facts and the bottom edge. A small picture omits small print first,
 * then tiles, then the legend if the picture is narrow. */
static void place_plot(struct mt_timeline_layout *layout, struct mt_drawing *drawing, double y)
{
    double rows = mt_time_axis_height(&layout->axis, layout->device->step_count),
           bottom = drawing->height - 10;

    if (bottom - y - 68 - rows - 24 >= MIN_PLOT + 60) {
        bottom = mt_chart_frame_footnote(drawing, footnote(drawing, layout)) - 2;
        layout->has_legend_row = true;
    }
    layout->side_bottom = bottom;
    bottom -= rows + (layout->has_legend_row ? 26 : 0);
    double top = y;
    if (bottom - y - 78 >= MIN_PLOT)
        top = is_of_driver(layout->report) ? draw_driver_tiles(drawing, layout->device, y)
                                           : draw_tiles(drawing, layout->device, y);
    layout->narrow = drawing->width < MT_NARROW_WIDTH;
    layout->side_top = top + 24;
    layout->side_width = SIDE_WIDTH;
    layout->side_left = drawing->width - MT_MARGIN - SIDE_WIDTH;
    top += top > y ? 28 : 10;
    top += layout->device->oom_count ? 14 : 0;
    layout->plot = (struct mt_box){0, top, layout->side_left - 26, bottom - top};
    if (layout->narrow) {
        double side = timeline_side_height(layout);
        layout->plot.width = drawing->width - MT_MARGIN - 8;
        layout->side_left = MT_MARGIN;
        layout->side_width = drawing->width - 2 * MT_MARGIN;
        if (layout->plot.height - side - 12 >= MIN_PLOT) {
            layout->plot.height -= side + 12;
        } else {
            layout->side_width = 0;
            layout->has_role_row = layout->plot.height >= MIN_PLOT;
            layout->plot.height -= layout->has_role_row ? 22 : 0;
        }
        layout->side_top = layout->side_bottom - side;
    }
}

/* Places the byte axis, and the room for its labels left of the plot. */
static void place_axes(struct mt_timeline_layout *layout)
{
    uint64_t largest =
        mt_max_u64(layout->device->reserved_peak.bytes, layout->device->allocated_peak.bytes);

    mt_byte_ticks(&layout->ticks, largest, largest ? layout->top : 0,
                  (size_t)fmin(fmax(layout->plot.height / 36, 2), 7));
    layout->plot.x = mt_chart_frame_plot_x(&layout->ticks, "");
    layout->plot.width -= layout->plot.x;
    layout->axis.left = layout->plot.x;
    layout->axis.width = layout->plot.width;
}

/* Sets the bytes at the upper edge of the plot, with some room above the highest curve. */
static void place_top(struct mt_timeline_layout *layout)
{
    uint64_t largest =
        mt_max_u64(layout->device->reserved_peak.bytes, layout->device->allocated_peak.bytes);

    layout->limit_bytes = near_limit(layout->device, largest);
    double top = fmax((double)largest * 1.16, (double)layout->limit_bytes * 1.07);
    layout->top = (uint64_t)fmin(top, 1.8e19);
    if (!layout->top)
        layout->top = 1;
}

static void draw_rows(struct mt_drawing *drawing, struct mt_timeline_layout *layout)
{
    static const char lowest[] = "white line: lowest of each column";
    double y = layout->plot.y + layout->plot.height + 6;
    double legend_right =
        layout->narrow ? drawing->width - MT_MARGIN : layout->plot.x + layout->plot.width;

    y = mt_time_axis_draw_rows(drawing, &layout->axis, layout->device, y);
    mt_time_axis_draw_ticks(drawing, &layout->axis, y + 2);
    if (layout->has_legend_row && layout->has_lowest)
        legend_right -=
            24 + mt_chart_frame_text(drawing, legend_right, y + 46, lowest, 12.5, MT_REGULAR,
                                     MT_COLOR_MUTED, MT_ANCHOR_END, "legend");
    if (layout->has_legend_row)
        legend_right = mt_timeline_draw_retries_legend(drawing, layout, legend_right, y + 46);
    if (layout->has_legend_row)
        mt_time_axis_draw_legend(drawing, &layout->axis, y + 46, legend_right);
    if (layout->has_role_row)
        timeline_draw_role_row(drawing, layout, y + (layout->has_legend_row ? 68 : 44));
}

static void draw_plot(struct mt_drawing *drawing, const struct mt_timeline_layout *layout)
{
    const struct mt_box *plot = &layout->plot;
    const struct mt_paint base = {.stroke = MT_COLOR_AXIS};

    mt_time_axis_draw_step_tints(drawing, &layout->axis, layout->device, plot);
    mt_chart_frame_byte_axis(drawing, plot, &layout->ticks, layout->top);
    mt_timeline_draw_layers(drawing, layout);
    mt_time_axis_draw_step_starts(drawing, &layout->axis, layout->device, plot);
    mt_draw_line(drawing, plot->x, plot->y + plot->height, plot->x + plot->width,
                 plot->y + plot->height, &base);
    mt_time_axis_draw_folds(drawing, &layout->axis, plot->y, plot->height);
    mt_timeline_draw_labels(drawing, layout);
}

static const char *facts_of(struct mt_drawing *drawing, const struct mt_report *report,
                            const struct mt_device_report *device)
{
    const char *facts = mt_chart_frame_facts(drawing, report, device);
    bool is_allocators = mt_limit_is_known(&device->replay);
    uint64_t limit = mt_timeline_limit(device);
    uint64_t largest = mt_max_u64(device->reserved_peak.bytes, device->allocated_peak.bytes);
    char text[MT_LIMIT_TEXT];

    if (!limit || near_limit(device, largest))
        return facts;
    const char *longer =
        mt_arena_printf(&drawing->arena, "%s \xC2\xB7 %s %s%s", facts,
                        is_allocators ? "limit" : "device", mt_timeline_limit_text(text, device),
                        is_allocators && device->replay.limit_inferred ? "" : ", off scale");
    return longer;
}

static double standard_height(const struct mt_timeline_layout *layout, double width)
{
    return width < MT_NARROW_WIDTH && layout ? 560 + 40 + timeline_side_height(layout)
                                             : STANDARD_HEIGHT;
}

static const char *chart_name(struct mt_drawing *drawing, const struct mt_timeline *timeline)
{
    static const char name[] = "GPU memory timeline";
    const char *longer = NULL;

    if (timeline && timeline->layers)
        longer = mt_arena_printf(&drawing->arena, "%s by %s", name,
                                 mt_layer_by_name(timeline->layers->by));
    return longer ? longer : name;
}

static void draw_nothing(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device, const char *title)
{
    double y = mt_chart_frame_header(drawing, title, mt_chart_frame_facts(drawing, report, device));

    mt_chart_frame_nothing(drawing, y + 8, "No allocator events",
                           "The trace has no allocation or release of device memory.");
}

static bool is_empty(const struct mt_device_report *device)
{
    return !device || !device->timeline || !device->timeline->bin_count || !device->events;
}

bool mt_timeline_lay_out(const struct mt_report *report, const struct mt_device_report *device,
                         const struct mt_chart_options *options, struct mt_drawing *drawing,
                         struct mt_timeline_layout *layout)
{
    double width = mt_chart_frame_width(options->width);
    bool empty = is_empty(device);

    memset(layout, 0, sizeof *layout);
    layout->report = report;
    layout->device = device;
    if (!empty) {
        mt_time_axis_init(&layout->axis, report, device->timeline, options->event_axis);
        mt_timeline_make_layers(layout);
    }
    mt_drawing_init(
        drawing, width,
        mt_chart_frame_height(options->height, standard_height(empty ? NULL : layout, width)),
        "timeline");
    const char *title = mt_chart_frame_title(drawing, report, device,
                                             chart_name(drawing, empty ? NULL : device->timeline));
    mt_chart_frame_describe(drawing, report, empty ? NULL : device, title);
    if (empty) {
        draw_nothing(drawing, report, device, title);
        return false;
    }
    layout->axis.rest = mt_chart_frame_teardown(drawing, report, device);
    double y = mt_chart_frame_header(drawing, title, facts_of(drawing, report, device));
    place_plot(layout, drawing, y);
    place_top(layout);
    place_axes(layout);
    return true;
}

static void draw_chart(const struct mt_report *report, const struct mt_device_report *device,
                       const struct mt_chart_options *options, struct mt_drawing *drawing)
{
    struct mt_timeline_layout layout;

    if (mt_timeline_lay_out(report, device, options, drawing, &layout)) {
        mt_timeline_make_columns(drawing, &layout);
        draw_plot(drawing, &layout);
        draw_rows(drawing, &layout);
        timeline_draw_side(drawing, &layout);
    }
}

const struct mt_chart mt_chart_timeline = {
    .name = "timeline",
    .summary = "memory over time by role, phase, site or stream",
    .needs_history = true,
    .models = MT_MODEL_TIMELINE,
    .draw = draw_chart,
};
