/* Limits of the timeline: the memory limit as a line, OOMs as flags. */
#include "timeline_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_query.h"
#include "units.h"
#include "util.h"

#define FLAG_GAP 18.0 /* pixels; closer OOM flags are merged */

uint64_t mt_timeline_limit(const struct mt_device_report *device)
{
    return mt_limit_is_known(&device->replay) ? device->replay.limit_bytes
                                              : device->total_memory_bytes;
}

/* Returns true if the run shows only an upper and a lower bound of the limit. */
static bool limit_is_deduced(const struct mt_device_report *device)
{
    return device->replay.limit_inferred && mt_limit_is_known(&device->replay);
}

const char *mt_timeline_limit_text(char text[MT_LIMIT_TEXT], const struct mt_device_report *device)
{
    const struct mt_replay_result *replay = &device->replay;
    const bool is_deduced = limit_is_deduced(device);
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    mt_format_bytes(low, mt_timeline_limit(device));
    if (is_deduced) {
        mt_format_bytes(low, replay->limit_low_bytes);
        mt_format_bytes(high, replay->limit_high_bytes);
    }
    if (!is_deduced)
        snprintf(text, MT_LIMIT_TEXT, "%s", low);
    else if (!strcmp(low, high))
        snprintf(text, MT_LIMIT_TEXT, "%s, inferred", low);
    else
        snprintf(text, MT_LIMIT_TEXT, "between %s and %s, inferred", low, high);
    return text;
}

static double base_y(const struct mt_timeline_layout *layout)
{
    return layout->plot.y + layout->plot.height;
}

static double right_x(const struct mt_timeline_layout *layout)
{
    return layout->plot.x + layout->plot.width;
}

/* Returns "memory limit between 1.65 GiB and 1.67 GiB, inferred", or if is_short is set "limit 1.65
 * GiB to 1.67 GiB". */
static const char *limit_label(struct mt_drawing *drawing, const struct mt_device_report *device,
                               bool is_short)
{
    const struct mt_replay_result *replay = &device->replay;
    char text[MT_LIMIT_TEXT], low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    mt_format_bytes(low, replay->limit_low_bytes);
    mt_format_bytes(high, replay->limit_high_bytes);
    if (is_short && limit_is_deduced(device) && strcmp(low, high) != 0)
        return mt_arena_printf(&drawing->arena, "limit %s to %s", low, high);
    return mt_arena_printf(&drawing->arena, "%slimit %s", is_short ? "" : "memory ",
                           mt_timeline_limit_text(text, device));
}

/* Finds the cheapest place for a text of that width, above the line at y or below it. Returns its
 * cost. */
static double limit_place(const struct mt_timeline_layout *layout, const struct mt_placer *placer,
                          double y, double width, struct mt_box *best)
{
    double least = MT_PLACE_LIMIT;

    for (int i = 0; i < 2; i++) {
        struct mt_box box = {layout->plot.x + 8, i ? y + 5 : y - 19, width, 15};

        for (; box.x + width + 8 < right_x(layout); box.x += 10) {
            double cost = mt_placer_cost(placer, &box) + 0.1 * (box.x - layout->plot.x) + 20 * i;

            if (cost < least && box.y + box.height < base_y(layout)) {
                least = cost;
                *best = box;
            }
        }
    }
    return least;
}

void mt_timeline_draw_limit(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                            struct mt_placer *placer)
{
    const struct mt_paint line = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.5, .dashed = true};
    const struct mt_text_style style = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_LIMIT, .halo = true};
    double y = mt_timeline_y(layout, layout->limit_bytes);

    if (!layout->limit_bytes)
        return;
    mt_draw_line(drawing, layout->plot.x, y, right_x(layout), y, &line);
    mt_placer_avoid(placer, (struct mt_box){layout->plot.x, y - 3, layout->plot.width, 6},
                    MT_PLACE_LINE);
    for (int is_short = 0; is_short < 2; is_short++) {
        const char *text = limit_label(drawing, layout->device, is_short);
        double width = 1.05 * mt_text_width(text, style.size, style.weight);
        struct mt_box box;

        if (limit_place(layout, placer, y, width, &box) >= MT_PLACE_LIMIT)
            continue;
        mt_draw_text(drawing, box.x, box.y + 12.5, text, &style, "label:limit");
        mt_placer_avoid(placer, box, MT_PLACE_TEXT);
        return;
    }
}

/* OOMs that are drawn as one flag. */
struct flag {
    double x;
    uint32_t first, count;
};

static const char *oom_title(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                             const struct flag *flag)
{
    const struct mt_oom *oom = &layout->device->oom_list[flag->first];
    const char *where = mt_chart_frame_where(drawing, layout->report, oom->phase, oom->step);
    char wanted[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], free_bytes[MT_UNITS_TEXT];

    mt_format_bytes(wanted, oom->request_bytes);
    mt_format_bytes(reserved, oom->then.reserved);
    mt_format_bytes(free_bytes, oom->device_free_bytes);
    return mt_arena_printf(
        &drawing->arena, "%s%s out of memory%s%s: requested %s, reserved %s, free on the device %s",
        flag->count > 1 ? "several times"
        : oom->fatal    ? "fatal"
                        : "caught",
        flag->count > 1 ? ", first:" : ":", *where ? " in " : "", where, wanted, reserved,
        free_bytes);
}

static void draw_flag(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                      const struct flag *flag)
{
    const struct mt_paint line = {.stroke = MT_COLOR_BAD, .stroke_width = 1.2};
    const struct mt_paint box = {.fill = MT_COLOR_BAD, .radius = 2.5};
    double y = layout->plot.y;

    mt_draw_line(drawing, flag->x, y - 4, flag->x, base_y(layout), &line);
    mt_draw_rect(drawing, flag->x - 7, y - 18, 14, 14, &box, oom_title(drawing, layout, flag),
                 "flag:oom");
    mt_chart_frame_text(drawing, flag->x, y - 6.5, "!", 12.5, MT_SEMIBOLD, MT_COLOR_BACKGROUND,
                        MT_ANCHOR_MIDDLE, "flag-text");
}

/* Returns the label of a flag: "4 × OOM, caught: wanted 2.00 GiB, reserved 948 MiB". `detail`,
 * 0..2, selects the length. */
static const char *oom_label(struct mt_drawing *drawing, const struct mt_device_report *device,
                             int detail)
{
    uint64_t most = 0;
    bool same = true, fatal = false;
    char wanted[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    const struct mt_oom *oom = device->oom_list;
    uint32_t i;

    for (i = 0; i < device->oom_count; i++) {
        same = same && oom[i].request_bytes == oom[0].request_bytes;
        fatal = fatal || oom[i].fatal;
        most = mt_max_u64(most, oom[i].request_bytes);
    }
    mt_format_bytes(wanted, most);
    mt_format_bytes(reserved, oom[device->oom_count - 1].then.reserved);
    mt_format_count(count, device->oom_count);
    return mt_arena_printf(
        &drawing->arena, "%s%sOOM%s%s%s%s%s%s", device->oom_count > 1 ? count : "",
        device->oom_count > 1 ? " \xC3\x97 " : "", fatal ? "" : ", caught",
        detail > 0 ? ": requested " : "", detail > 0 && !same ? "up to " : "",
        detail > 0 ? wanted : "", detail > 1 ? ", reserved " : "", detail > 1 ? reserved : "");
}

/* Returns the left edge of a gap of `width` before, after or between the flags; -1 if there is
 * none. */
static double find_room(const struct mt_timeline_layout *layout, const struct flag *flags,
                        size_t count, double width)
{
    size_t i;

    if (flags[0].x - 12 - width >= layout->plot.x)
        return flags[0].x - 12 - width;
    if (flags[count - 1].x + 12 + width <= right_x(layout))
        return flags[count - 1].x + 12;
    for (i = 1; i < count; i++) {
        if (flags[i].x - flags[i - 1].x >= width + 24)
            return flags[i - 1].x + 12;
    }
    return -1;
}

static void draw_oom_label(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                           struct mt_placer *placer, const struct flag *flags, size_t count)
{
    const struct mt_text_style style = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_BAD};
    int detail;

    for (detail = 2; detail >= 0; detail--) {
        const char *text = oom_label(drawing, layout->device, detail);
        double width = 1.05 * mt_text_width(text, style.size, style.weight);
        double x = find_room(layout, flags, count, width);

        if (x < 0)
            continue;
        mt_draw_text(drawing, x, layout->plot.y - 6.5, text, &style, "label:oom");
        mt_placer_avoid(placer, (struct mt_box){x, layout->plot.y - 19, width, 16}, MT_PLACE_TEXT);
        return;
    }
}

/* Collects the flags from left to right, and merges neighbors that would overlap. */
static size_t gather_flags(const struct mt_timeline_layout *layout, struct flag *flags, size_t most)
{
    const struct mt_oom *ooms = layout->device->oom_list;
    size_t count = 0;
    uint32_t i;

    for (i = 0; i < layout->device->oom_count; i++) {
        double x = mt_time_axis_x(&layout->axis, ooms[i].t_ns, ooms[i].event);

        if (count && (x - flags[count - 1].x < FLAG_GAP || count == most))
            flags[count - 1].count++;
        else
            flags[count++] = (struct flag){x, i, 1};
    }
    return count;
}

void mt_timeline_draw_ooms(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                           struct mt_placer *placer)
{
    size_t most = (size_t)(layout->plot.width / FLAG_GAP) + 2, count, i;
    struct flag *flags = mt_arena_array(&drawing->arena, most, sizeof *flags);

    if (!layout->device->oom_count)
        return;
    count = gather_flags(layout, flags, most);
    for (i = 0; i < count; i++) {
        draw_flag(drawing, layout, &flags[i]);
        mt_placer_avoid(placer,
                        (struct mt_box){flags[i].x - 2, layout->plot.y, 4, layout->plot.height},
                        4 * MT_PLACE_LINE);
        mt_placer_avoid(placer, (struct mt_box){flags[i].x - 9, layout->plot.y - 20, 18, 18},
                        MT_PLACE_MARK);
    }
    draw_oom_label(drawing, layout, placer, flags, count);
}
