/* The address space over time. It shows holes, segments that are never used again, and blocks that
 * prevent a segment from being returned. */
#include <math.h>
#include <stdio.h>

#include "address.h"
#include "block_key.h"
#include "report_query.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

/* The parts around the map: occupancy of segments, remarkable segments, and the legend of
 * colors. */

#define MIN_BAR   1.0 /* pixels; lower segments share a bar */
#define MIN_TITLE 2.5
#define MIN_BLOCK 1.0  /* pixels, minimum width and height */
#define POOR      0.25 /* an occupancy below this is red */

struct crowd {
    uint32_t first, count; /* places */
    double top, bottom;
    double used, held;
    uint64_t bytes, blocks;
};

/* Finds the next places that are together at least `least` pixels high. Returns false at the
 * end. */
static bool next_crowd(const struct mt_address_layout *layout, double least, struct crowd *crowd)
{
    uint32_t first = crowd->first + crowd->count;

    *crowd = (struct crowd){.first = first};
    for (uint32_t i = first; i < layout->address->place_count; i++) {
        const struct mt_address_range *place = &layout->address->places[i];

        crowd->count++;
        crowd->used += place->used;
        crowd->held += place->held;
        crowd->bytes += place->bytes;
        crowd->blocks += place->blocks;
        crowd->bottom = mt_address_y(layout, layout->begins[first]);
        crowd->top = mt_address_y(layout, layout->begins[i] + place->bytes);
        if (crowd->bottom - crowd->top >= least)
            break;
    }
    return crowd->count > 0;
}

static void draw_axis(const struct mt_address_layout *layout)
{
    const struct mt_paint line = {.stroke = MT_COLOR_GRID};
    static const char *const labels[] = {"0", "50", "100%"};
    double bottom = layout->plot.y + layout->plot.height;

    for (int i = 0; i < 3; i++) {
        double x = layout->bar_left + layout->bar_width * i / 2;

        mt_draw_line(layout->drawing, x, layout->plot.y, x, bottom, &line);
        mt_chart_frame_text(layout->drawing, x, bottom + 18, labels[i], MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_MUTED, i ? MT_ANCHOR_MIDDLE : MT_ANCHOR_START, "tick-bar");
    }
    mt_chart_frame_text(layout->drawing, layout->bar_left, layout->plot.y - 7, "occupancy",
                        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "bar-name");
    if (layout->has_tail)
        mt_chart_frame_text(layout->drawing, layout->bar_left, bottom + 34, "bytes × time",
                            MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "bar-name");
}

/* Draws a bar next to each segment that shows how full the segment was. */
static void address_draw_bars(const struct mt_address_layout *layout)
{
    struct crowd crowd = {0};

    draw_axis(layout);
    mt_zoom_begin(
        layout->drawing, "y",
        &(struct mt_box){layout->bar_left, layout->plot.y, layout->bar_width, layout->plot.height});
    while (next_crowd(layout, MIN_BAR, &crowd)) {
        double share = crowd.held > 0 ? fmin(crowd.used / crowd.held, 1) : 0;
        struct mt_paint paint = {.fill = share < POOR ? MT_COLOR_BAD : MT_COLOR_FAINT};
        double height = fmax(crowd.bottom - crowd.top, 0.5);

        if (crowd.held > 0)
            mt_draw_rect(layout->drawing, layout->bar_left, crowd.bottom - height,
                         fmax(layout->bar_width * share, 0.5), fmax(height - 0.25, 0.5), &paint,
                         NULL, "bar");
    }
    mt_draw_group_end(layout->drawing);
}

static const char *occupancy(const struct crowd *crowd, char text[MT_UNITS_TEXT])
{
    return crowd->held > 0 ? mt_format_percent(text, fmin(crowd->used / crowd->held, 1))
                           : "unknown";
}

/* Returns true for a segment that only the graphs or the code of one pool can use. */
static bool is_private(const struct mt_address_layout *layout, const struct mt_address_range *place)
{
    const struct mt_symbols *symbols = layout->report->symbols;
    const struct mt_pool_info *pool =
        symbols && place->pool < symbols->pool_count ? &symbols->pools[place->pool] : NULL;

    return pool && (pool->id[0] || pool->id[1]);
}

static const char *one_title(const struct mt_address_layout *layout, const struct crowd *crowd)
{
    const struct mt_address_range *place = &layout->address->places[crowd->first];
    char size[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], share[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];
    char more[MT_UNITS_TEXT];
    const char *created = "before the recorded history";
    const char *again = "", *end = place->reserved_end ? "" : ", released";

    if (!place->initial)
        created = mt_arena_printf(&layout->drawing->arena, "at %s",
                                  mt_chart_frame_at(layout->drawing, layout->report,
                                                    place->created_t_ns, place->created_event));
    if (place->segments > 1)
        again = mt_arena_printf(&layout->drawing->arena, ", %s segments in succession",
                                mt_format_count(more, place->segments));
    return mt_arena_printf(
        &layout->drawing->arena, "%s %s (%s B) at 0x%llx\ncreated %s%s%s\n%s, occupancy %s%s%s",
        place->is_expandable ? "expandable segment, at most" : "segment of",
        mt_format_bytes(size, place->bytes), mt_format_count(exact, place->bytes),
        (unsigned long long)place->base, created, again, end,
        mt_format_counted(blocks, place->blocks, "block"), occupancy(crowd, share),
        place->was_idle
            ? layout->address->has_steps ? "\nidle during the last step" : "\nempty at the end"
            : "",
        is_private(layout, place) ? "\nin a private pool (CUDA graphs)" : "");
}

static const char *title_of(const struct mt_address_layout *layout, const struct crowd *crowd)
{
    char count[MT_UNITS_TEXT], size[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    char exact[MT_UNITS_TEXT];

    if (crowd->count == 1)
        return one_title(layout, crowd);
    return mt_arena_printf(
        &layout->drawing->arena, "%s segments, %s (%s B)\n%s, occupancy %s",
        mt_format_count(count, crowd->count), mt_format_bytes(size, crowd->bytes),
        mt_format_count(exact, crowd->bytes), mt_format_counted(blocks, crowd->blocks, "block"),
        occupancy(crowd, share));
}

static void address_draw_titles(const struct mt_address_layout *layout)
{
    const struct mt_paint paint = {.fill = MT_COLOR_BACKGROUND, .unseen = true};
    double right = layout->bar_left + layout->bar_width;
    struct crowd crowd = {0};

    while (next_crowd(layout, fmax(MIN_TITLE, layout->plot.height / 300), &crowd))
        mt_draw_rect(layout->drawing, layout->plot.x, crowd.top, right - layout->plot.x,
                     fmax(crowd.bottom - crowd.top, 0.5), &paint, title_of(layout, &crowd),
                     "segment");
}

static void draw_block(const struct mt_address_layout *layout, const struct mt_block_shape *block,
                       uint64_t begin)
{
    const struct mt_paint paint = {.fill = MT_COLOR_BACKGROUND, .unseen = true};
    const struct mt_box *plot = &layout->plot;
    const struct mt_address_range *place = &layout->address->places[block->place];
    uint64_t end = mt_min_u64(block->offset + block->life.block_bytes, place->bytes);
    double left = mt_time_axis_x(&layout->axis, block->life.birth_t_ns, block->life.birth_event);
    double right = plot->x + plot->width, bottom = mt_address_y(layout, begin + block->offset);
    double height = fmax(bottom - mt_address_y(layout, begin + end), MIN_BLOCK);

    if (block->end.event != UINT64_MAX)
        right = mt_time_axis_x(&layout->axis, block->end.t_ns, block->end.event);
    left = fmin(fmax(left, plot->x), plot->x + plot->width - MIN_BLOCK);
    right = fmin(fmax(right, left + MIN_BLOCK), plot->x + plot->width);
    mt_draw_rect(layout->drawing, left, fmax(bottom - height, plot->y), right - left, height,
                 &paint, NULL, "block");
    mt_draw_key(layout->drawing, mt_block_key(&layout->drawing->arena, block));
}

/* Draws an invisible shape over each of the largest blocks. Scripts find the blocks by their
 * keys. */
static void address_draw_blocks(const struct mt_address_layout *layout)
{
    const struct mt_address *address = layout->address;

    for (uint32_t i = 0; i < address->block_count; i++)
        draw_block(layout, &address->blocks[i], layout->begins[address->blocks[i].place]);
}

struct entry {
    const char *text;
    struct mt_paint paint;
};

static size_t entries_of(const struct mt_address_layout *layout, struct entry *entries)
{
    size_t count = 0;

    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        enum mt_role role = mt_timeline_stack[i];

        if (layout->roles[role])
            entries[count++] = (struct entry){mt_role_title(role), {.fill = mt_role_color(role)}};
    }
    entries[count++] = (struct entry){"reserved, free", {.fill = MT_COLOR_UNUSED, .tint = 1}};
    entries[count++] =
        (struct entry){"not reserved", {.fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_GRID}};
    for (size_t i = 0; i < count; i++)
        entries[i].paint.radius = 2.5;
    return count;
}

static double draw_words(const struct mt_address_layout *layout, double y, const char *const *lines,
                         size_t count)
{
    double room = layout->drawing->width - MT_MARGIN - layout->legend_left;

    for (size_t i = 0; i < count; i++, y += 17)
        mt_chart_frame_text(
            layout->drawing, layout->legend_left, y,
            mt_text_fit(layout->drawing, lines[i], MT_SIZE_SMALL, MT_REGULAR, room, false),
            MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "how-to-read");
    return y;
}

/* Draw the legend of the colors, either beside the map or as a row on baseline y. */
static void address_draw_legend(const struct mt_address_layout *layout)
{
    static const char *const words[] = {"A released segment",      "keeps its place: the",
                                        "axis counts the places",  "of all segments.",
                                        "Gray is reserved and",    "free: only requests",
                                        "that fit can use it.",    "Fainter color marks",
                                        "rows of pixels that are", "used in part."};
    enum { ABOUT_PLACES = 4 }; /* lines that are omitted first if there is not enough room */
    struct entry entries[MT_ROLE_COUNT + 2];
    size_t count = entries_of(layout, entries), first = 0;
    double y = layout->plot.y + 6;

    mt_chart_frame_text(layout->drawing, layout->legend_left, y, "Color", 14, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    y += 24;
    for (size_t i = 0; i < count; i++, y += 22) {
        mt_draw_rect(layout->drawing, layout->legend_left, y - 11, 13, 13, &entries[i].paint, NULL,
                     "swatch");
        mt_chart_frame_text(layout->drawing, layout->legend_left + 20, y, entries[i].text,
                            MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "legend");
    }
    if (y + 24 + 17 * (double)MT_ARRAY_LEN(words) > layout->plot.y + layout->plot.height)
        first = ABOUT_PLACES;
    if (y + 24 + 17 * (double)(MT_ARRAY_LEN(words) - first) > layout->plot.y + layout->plot.height)
        return;
    mt_chart_frame_text(layout->drawing, layout->legend_left, y + 14, "How to read", 14,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    draw_words(layout, y + 36, words + first, MT_ARRAY_LEN(words) - first);
}

static void address_draw_legend_row(const struct mt_address_layout *layout, double y)
{
    struct entry entries[MT_ROLE_COUNT + 2];
    struct mt_swatch swatches[MT_ROLE_COUNT + 1];
    size_t count = entries_of(layout, entries), kept = 0, fit;
    double x = MT_MARGIN, right = layout->drawing->width - MT_MARGIN;

    /* Rows of swatches have no tints, so free memory is drawn first, separately. */
    mt_draw_rect(layout->drawing, MT_MARGIN, y - 10, 12, 12, &entries[count - 2].paint, NULL,
                 "swatch");
    x += 37 + 1.05 * mt_chart_frame_text(layout->drawing, x + 17, y, "reserved, free", 12.5,
                                         MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "legend");
    for (size_t i = 0; i + 2 < count; i++)
        swatches[kept++] = (struct mt_swatch){entries[i].text, entries[i].paint.fill};
    fit = mt_chart_frame_swatches_fit(swatches, kept, right - x);
    mt_chart_frame_swatches(layout->drawing, x, y, right, swatches, fit);
    if (fit < kept)
        mt_chart_frame_swatches(layout->drawing, MT_MARGIN, y + 20, right, swatches + fit,
                                kept - fit);
}

#define STANDARD_HEIGHT 760.0
#define MIN_PLOT        120.0
#define BAR_WIDTH       100.0
#define NARROW_BARS     70.0
#define LEGEND_WIDTH    148.0
#define TILES           68.0 /* height of two-line tiles */
#define ABOVE           28.0 /* distance between tiles and map */

static enum mt_color verdict(double share, double good, double bad)
{
    return share <= good ? MT_COLOR_GOOD : share <= bad ? MT_COLOR_WARN : MT_COLOR_BAD;
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Returns a tile with the occupancy over time, or at the end if the trace has no duration. */
static struct mt_tile occupancy_tile(const struct mt_address *address, char text[MT_UNITS_TEXT])
{
    bool lasts = address->held > 0;
    double share = lasts ? fmin(address->used / address->held, 1)
                         : share_of(address->allocated_end, address->reserved_end);

    return (struct mt_tile){lasts ? "Mean occupancy" : "Occupancy", mt_format_percent(text, share),
                            !lasts               ? "at the end"
                            : address->has_steps ? "bytes × time, from step 0"
                                                 : "bytes × time",
                            verdict(1 - share, 0.3, 0.6), NULL};
}

static double draw_tiles(const struct mt_address_layout *layout, double y)
{
    const struct mt_address *address = layout->address;
    char values[4][MT_UNITS_TEXT], notes[3][MT_UNITS_TEXT + 16], bytes[MT_UNITS_TEXT];
    uint64_t peak = layout->device->reserved_peak.bytes;
    bool is_cut = mt_device_shown_end(layout->device).is_cut;
    struct mt_tile tiles[4] = {
        {is_cut ? "Reserved at the error" : "Reserved at the end",
         mt_format_bytes(values[0], address->reserved_end), notes[0], MT_COLOR_RESERVED,
         is_cut ? "Reserved at error" : "Reserved at end"},
        occupancy_tile(address, values[1]),
        {"Segments used at most once", mt_format_count(values[2], address->once_segments), notes[1],
         verdict(share_of(address->once_bytes, peak), 0.02, 0.15), "Used at most once"},
        {address->has_steps ? "Idle during the last step" : "Empty at the end",
         mt_format_bytes(values[3], address->idle_bytes), notes[2],
         verdict(share_of(address->idle_bytes, peak), 0.05, 0.25), "Idle in last step"}};

    mt_format_counted(notes[0], address->segments_end, "segment");
    snprintf(notes[1], sizeof notes[1], "%s in total", mt_format_bytes(bytes, address->once_bytes));
    mt_format_counted(notes[2], address->idle_segments, "segment");
    if (!address->has_steps)
        tiles[3].short_label = NULL;
    return mt_chart_frame_tiles(layout->drawing, y, tiles, 4);
}

static const char *facts_of(const struct mt_address_layout *layout)
{
    char row[MT_UNITS_TEXT], count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];
    const char *options = layout->report->options, *pools = "";
    uint64_t in_pools = 0;

    for (uint32_t i = 0; i < layout->address->place_count; i++)
        if (is_private(layout, &layout->address->places[i]))
            in_pools += layout->address->places[i].reserved_end;
    if (in_pools)
        pools = mt_arena_printf(&layout->drawing->arena, " · %s in private pools (CUDA graphs)",
                                mt_format_bytes(bytes, in_pools));

    return mt_arena_printf(
        &layout->drawing->arena,
        "each pixel row is %s of device memory · segments stacked in order of "
        "creation · %s · %s %s%s",
        mt_format_bytes(row, (uint64_t)((double)layout->top / layout->plot.height)),
        options && *options ? options : "default allocator",
        mt_format_count(count, layout->address->place_count),
        layout->address->place_count == 1 ? "place" : "places", pools);
}

static const char *small_print(const struct mt_address_layout *layout)
{
    const struct mt_address *address = layout->address;
    char count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT], outside[MT_UNITS_TEXT], unit[MT_UNITS_TEXT];
    const char *homeless = "", *beside = "", *coarse = "";

    if (address->homeless_segments)
        homeless = mt_arena_printf(&layout->drawing->arena, " · %s (%s) had no room here",
                                   mt_format_counted(count, address->homeless_segments, "segment"),
                                   mt_format_bytes(bytes, address->homeless_bytes));
    if (address->outside_bytes)
        beside = mt_arena_printf(&layout->drawing->arena, " · %s of blocks lie in no known segment",
                                 mt_format_bytes(outside, address->outside_bytes));
    if (layout->unit > 1)
        coarse = mt_arena_printf(&layout->drawing->arena, " · drawn in cells of %s pixels",
                                 mt_format_count(unit, (uint64_t)layout->unit));
    return mt_arena_printf(&layout->drawing->arena,
                           "each column shows its fullest instant · a released segment leaves an "
                           "empty place for the next one of its size%s%s%s%s",
                           layout->report->roles_inferred ? " · roles are inferred" : "", homeless,
                           beside, coarse);
}

static double down_to_grid(double pixels)
{
    return fmax(floor(pixels / MT_ADDRESS_GRID), 1) * MT_ADDRESS_GRID;
}

/* Leaves room for labels left of the plot, and for bars and legend right of it. */
static void place_width(struct mt_address_layout *layout)
{
    double right = layout->drawing->width - MT_MARGIN;

    if (!layout->narrow) {
        layout->legend_left = right - LEGEND_WIDTH;
        right = layout->legend_left - 20;
    }
    layout->bar_width = layout->narrow ? NARROW_BARS : BAR_WIDTH;
    layout->bar_left = right - layout->bar_width - 14;
    mt_byte_ticks(&layout->ticks, layout->bytes, layout->bytes ? layout->top : 0,
                  (size_t)fmin(fmax(layout->plot.height / 36, 2), 7));
    layout->plot.x = mt_chart_frame_plot_x(&layout->ticks, "");
    layout->plot.width = down_to_grid(layout->bar_left - 16 - layout->plot.x);
    layout->axis.left = layout->plot.x;
    layout->axis.width = layout->plot.width;
}

/* Places everything below the map, starting at the bottom edge. Returns the lower edge of the
 * map. */
static double place_tail(struct mt_address_layout *layout, double y)
{
    double below = mt_time_axis_height(&layout->axis, layout->device->step_count),
           bottom = layout->drawing->height - 10;
    double tail = 26 + 36 + (layout->narrow ? 44 : 0);

    layout->has_tail = bottom - y - TILES - below - tail - ABOVE >= MIN_PLOT;
    return bottom - below - (layout->has_tail ? tail : 0);
}

static void draw_rows(struct mt_address_layout *layout)
{
    double y = layout->plot.y + layout->plot.height + 6;

    mt_zoom_begin(layout->drawing, "x",
                  &(struct mt_box){layout->plot.x, y, layout->plot.width, 36});
    y = mt_time_axis_draw_rows(layout->drawing, &layout->axis, layout->device, y);
    mt_draw_group_end(layout->drawing);
    mt_zoom_begin_ticks(layout->drawing, &layout->axis, y + 2);
    mt_time_axis_draw_ticks(layout->drawing, &layout->axis, y + 2);
    mt_draw_group_end(layout->drawing);
    if (!layout->has_tail)
        return;
    mt_time_axis_draw_legend(layout->drawing, &layout->axis, y + 44,
                             layout->drawing->width - MT_MARGIN);
    if (layout->narrow)
        address_draw_legend_row(layout, y + 66);
}

/* Marks the time of the reserved peak above the plot: a short peak is only one column wide. */
static void draw_peak(const struct mt_address_layout *layout)
{
    const struct mt_peak *peak = &layout->device->reserved_peak;
    const struct mt_box *plot = &layout->plot;
    double x = fmin(mt_time_axis_x(&layout->axis, peak->t_ns, peak->event), plot->x + plot->width);
    const struct mt_paint mark = {.fill = MT_COLOR_TEXT};
    struct mt_point corners[] = {{x - 4, plot->y - 8}, {x + 4, plot->y - 8}, {x, plot->y - 2}};
    char size[MT_UNITS_TEXT];
    const char *label = mt_arena_printf(&layout->drawing->arena, "peak reserved %s",
                                        mt_format_bytes(size, peak->bytes));
    double width = 1.06 * mt_text_width(label, MT_SIZE_SMALL, MT_SEMIBOLD) + 8;
    bool is_left = x + width > plot->x + plot->width;

    mt_zoom_begin_point(layout->drawing, "mark", x, plot->y);
    mt_draw_path(layout->drawing, corners, 3, true, false, &mark, label, "mark:peak");
    mt_chart_frame_text(layout->drawing, is_left ? x - 8 : x + 8, plot->y - 3, label, MT_SIZE_SMALL,
                        MT_SEMIBOLD, MT_COLOR_TEXT, is_left ? MT_ANCHOR_END : MT_ANCHOR_START,
                        "label:peak");
    mt_draw_group_end(layout->drawing);
}

/* Names the axis, which counts all places. Places include returned memory, so the axis is longer
 * than the memory that was reserved at any one time. */
static void draw_axis_name(const struct mt_address_layout *layout)
{
    static const char *const names[] = {"all segments, stacked", "all segments"};
    const struct mt_text_style style = {.size = MT_SIZE_SMALL,
                                        .color = MT_COLOR_MUTED,
                                        .anchor = MT_ANCHOR_MIDDLE,
                                        .vertical = true};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        if (mt_text_room(names[i], style.size, style.weight) > layout->plot.height)
            continue;
        mt_draw_text(layout->drawing, 17, layout->plot.y + layout->plot.height / 2, names[i],
                     &style, "axis-name");
        return;
    }
}

static void draw_plot(struct mt_address_layout *layout)
{
    const struct mt_box *plot = &layout->plot;
    const struct mt_paint base = {.stroke = MT_COLOR_AXIS};

    mt_zoom_begin_bytes(layout->drawing, layout->top);
    mt_chart_frame_byte_axis(layout->drawing, plot, &layout->ticks, layout->top);
    draw_axis_name(layout);
    mt_draw_group_end(layout->drawing);
    address_draw_bars(layout);
    mt_zoom_begin(layout->drawing, "xy", plot);
    mt_address_draw_map(layout);
    mt_address_draw_borders(layout);
    mt_time_axis_draw_step_starts(layout->drawing, &layout->axis, layout->device, plot);
    mt_draw_group_end(layout->drawing);
    mt_draw_line(layout->drawing, plot->x, plot->y + plot->height, plot->x + plot->width,
                 plot->y + plot->height, &base);
    mt_zoom_begin(layout->drawing, "xy", plot);
    mt_time_axis_draw_folds(layout->drawing, &layout->axis, plot->y, plot->height);
    address_draw_titles(layout);
    if (layout->keyed)
        address_draw_blocks(layout);
    mt_draw_group_end(layout->drawing);
    draw_peak(layout);
}

static void draw_picture(struct mt_address_layout *layout, const char *title,
                         const struct mt_chart_options *options)
{
    struct mt_drawing *drawing = layout->drawing;
    double y, bottom;

    layout->model = options->event_axis ? &layout->address->event : &layout->address->time;
    mt_address_stack_places(layout);
    layout->top = mt_max_u64((uint64_t)((double)layout->bytes * 1.04), 1);
    mt_time_axis_init(&layout->axis, layout->report, layout->device->timeline, options->event_axis);
    layout->axis.rest = mt_chart_frame_teardown(drawing, layout->report, layout->device);
    layout->narrow = drawing->width < MT_NARROW_WIDTH;
    y = layout->narrow ? 97 : 78;
    bottom = place_tail(layout, y);
    if (bottom - y - TILES - ABOVE >= MIN_PLOT)
        y = draw_tiles(layout, y);
    layout->plot.height = down_to_grid(bottom - y - ABOVE);
    layout->plot.y = bottom - layout->plot.height;
    place_width(layout);
    mt_chart_frame_header(drawing, title, facts_of(layout));
    draw_plot(layout);
    draw_rows(layout);
    if (!layout->narrow)
        address_draw_legend(layout);
    if (layout->has_tail)
        mt_chart_frame_footnote(drawing, small_print(layout));
}

static const char *lacks_addresses(const struct mt_report *report,
                                   const struct mt_device_report *device)
{
    if (device->address && device->address->place_count)
        return NULL;
    return report->what_if ? "only the recorded run has addresses; a simulated policy has none"
                           : "the trace has no segments, so there are no addresses to draw";
}

/* Returns true if the chart is useful: more than 15% or more than 1 GiB of memory was unused, or
 * the file has no history to draw instead. */
static bool wastes_memory(const struct mt_report *report, const struct mt_device_report *device)
{
    return mt_unused_share(&device->reserved_peak.then) > 0.15 ||
           device->worst_unused_bytes > UINT64_C(1) << 30 || mt_lacks_history(report, device);
}

static void draw_chart(const struct mt_report *report, const struct mt_device_report *device,
                       const struct mt_chart_options *options, struct mt_drawing *drawing)
{
    struct mt_address_layout layout = {.drawing = drawing,
                                       .report = report,
                                       .device = device,
                                       .keyed = options->keyed,
                                       .address = device ? device->address : NULL};
    const char *lack = device ? lacks_addresses(report, device) : "there are no addresses to draw";
    bool is_state = device && mt_lacks_history(report, device);
    const char *title;

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, STANDARD_HEIGHT), "address");
    title = mt_chart_frame_title(drawing, report, device,
                                 is_state ? "segments and blocks" : "address space over time");
    mt_chart_frame_describe(drawing, report, device, title);
    if (lack)
        mt_chart_frame_empty(drawing, report, device, title,
                             device ? "No address map" : "No allocator events", lack);
    else if (is_state)
        mt_address_state_draw(&layout, title);
    else
        draw_picture(&layout, title, options);
}

const struct mt_chart mt_chart_address = {
    .name = "address",
    .summary = "contents of each segment over time",
    .models = MT_MODEL_TIMELINE | MT_MODEL_ADDRESS,
    .is_enlarged = true,
    .lacks = lacks_addresses,
    .called_for = wastes_memory,
    .draw = draw_chart,
};
