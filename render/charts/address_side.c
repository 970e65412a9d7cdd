/* The parts around the map: occupancy of segments, remarkable segments, and the legend of
 * colors. */
#include "address.h"

#include <math.h>
#include <stdio.h>

#include "block_key.h"
#include "report_query.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

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
        const struct mt_address_place *place = &layout->address->places[i];

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

void mt_address_draw_bars(const struct mt_address_layout *layout)
{
    struct crowd crowd = {0};

    draw_axis(layout);
    while (next_crowd(layout, MIN_BAR, &crowd)) {
        double share = crowd.held > 0 ? fmin(crowd.used / crowd.held, 1) : 0;
        struct mt_paint paint = {.fill = share < POOR ? MT_COLOR_BAD : MT_COLOR_FAINT};
        double height = fmax(crowd.bottom - crowd.top, 0.5);

        if (crowd.held > 0)
            mt_draw_rect(layout->drawing, layout->bar_left, crowd.bottom - height,
                         fmax(layout->bar_width * share, 0.5), fmax(height - 0.25, 0.5), &paint,
                         NULL, "bar");
    }
}

static const char *occupancy(const struct crowd *crowd, char text[MT_UNITS_TEXT])
{
    return crowd->held > 0 ? mt_format_percent(text, fmin(crowd->used / crowd->held, 1))
                           : "unknown";
}

static const char *one_title(const struct mt_address_layout *layout, const struct crowd *crowd)
{
    const struct mt_address_place *place = &layout->address->places[crowd->first];
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
        &layout->drawing->arena,
        "%s %s (%s B) at 0x%llx\ncreated %s%s%s\n%s block%s, occupancy %s%s",
        place->is_expandable ? "expandable segment, at most" : "segment of",
        mt_format_bytes(size, place->bytes), mt_format_count(exact, place->bytes),
        (unsigned long long)place->base, created ? created : "", again ? again : "", end,
        mt_format_count(blocks, place->blocks), place->blocks == 1 ? "" : "s",
        occupancy(crowd, share),
        place->was_idle
            ? layout->address->has_steps ? "\nidle during the last step" : "\nempty at the end"
            : "");
}

static const char *title_of(const struct mt_address_layout *layout, const struct crowd *crowd)
{
    char count[MT_UNITS_TEXT], size[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    char exact[MT_UNITS_TEXT];

    if (crowd->count == 1)
        return one_title(layout, crowd);
    return mt_arena_printf(
        &layout->drawing->arena, "%s segments, %s (%s B)\n%s blocks, occupancy %s",
        mt_format_count(count, crowd->count), mt_format_bytes(size, crowd->bytes),
        mt_format_count(exact, crowd->bytes), mt_format_count(blocks, crowd->blocks),
        occupancy(crowd, share));
}

void mt_address_draw_titles(const struct mt_address_layout *layout)
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
    const struct mt_address_place *place = &layout->address->places[block->place];
    uint64_t end = mt_min_u64(block->offset + block->block_bytes, place->bytes);
    double left = mt_time_axis_x(&layout->axis, block->birth_t_ns, block->birth_event);
    double right = plot->x + plot->width, bottom = mt_address_y(layout, begin + block->offset);
    double height = fmax(bottom - mt_address_y(layout, begin + end), MIN_BLOCK);

    if (block->end_event != UINT64_MAX)
        right = mt_time_axis_x(&layout->axis, block->end_t_ns, block->end_event);
    left = fmin(fmax(left, plot->x), plot->x + plot->width - MIN_BLOCK);
    right = fmin(fmax(right, left + MIN_BLOCK), plot->x + plot->width);
    mt_draw_rect(layout->drawing, left, fmax(bottom - height, plot->y), right - left, height,
                 &paint, NULL, "block");
    mt_draw_key(layout->drawing, mt_block_key(&layout->drawing->arena, block));
}

void mt_address_draw_blocks(const struct mt_address_layout *layout)
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

void mt_address_draw_legend(const struct mt_address_layout *layout)
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

void mt_address_draw_legend_row(const struct mt_address_layout *layout, double y)
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
