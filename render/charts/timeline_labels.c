/* Marks and labels in the plot of the timeline: retries, the limit, OOMs, peaks with their rings,
 * and unused memory. A label is placed where it covers the least. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "place.h"
#include "report_query.h"
#include "time_axis.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

/* Marks of retries, for which the allocator emptied its cache. They are triangles at the upper edge
 * of the plot. */

#define HALF_WIDTH 4.5
#define HEIGHT     7.0
#define GAP        10.0 /* pixels; closer triangles are merged */

static void draw_triangle(struct mt_drawing *drawing, double x, double y, const char *title,
                          const char *role)
{
    const struct mt_paint paint = {.fill = MT_COLOR_WARN};
    const struct mt_point points[3] = {
        {x - HALF_WIDTH, y - HEIGHT}, {x + HALF_WIDTH, y - HEIGHT}, {x, y}};

    mt_draw_path(drawing, points, 3, true, false, &paint, title, role);
}

static const char *title_of(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                            const struct mt_retry_mark *first, uint64_t retries)
{
    char count[MT_UNITS_TEXT], event[MT_UNITS_TEXT];
    bool by_event = layout->axis.by_event;

    return mt_arena_printf(&drawing->arena, "%s %s after emptying the cache%s, %s%s",
                           mt_format_count(count, retries), retries == 1 ? "retry" : "retries",
                           retries == 1 ? "" : " from here", by_event ? "event " : "t = ",
                           by_event ? mt_format_count(event, first->event)
                                    : mt_chart_frame_when(drawing, layout->report, first->t_ns));
}

/* Draws marks where the cache was emptied to serve a request. */
static void timeline_draw_retries(struct mt_drawing *drawing,
                                  const struct mt_timeline_layout *layout, struct mt_placer *placer)
{
    const struct mt_retry_mark *marks = layout->device->retry_marks;
    uint32_t count = layout->device->retry_mark_count, next;

    for (uint32_t i = 0; i < count; i = next) {
        double x = mt_time_axis_x(&layout->axis, marks[i].t_ns, marks[i].event);
        uint64_t retries = marks[i].retries;

        for (next = i + 1; next < count && mt_time_axis_x(&layout->axis, marks[next].t_ns,
                                                          marks[next].event) < x + GAP;
             next++)
            retries += marks[next].retries;
        draw_triangle(drawing, x, layout->plot.y + HEIGHT,
                      title_of(drawing, layout, &marks[i], retries), "retry");
        mt_placer_avoid(
            placer,
            (struct mt_box){x - HALF_WIDTH - 2, layout->plot.y, 2 * HALF_WIDTH + 4, HEIGHT + 2},
            MT_PLACE_MARK);
    }
}

double mt_timeline_draw_retries_legend(struct mt_drawing *drawing,
                                       const struct mt_timeline_layout *layout, double right,
                                       double y)
{
    if (!layout->device->retry_mark_count)
        return right;
    double width = mt_chart_frame_text(drawing, right, y, "retry", 12.5, MT_REGULAR, MT_COLOR_MUTED,
                                       MT_ANCHOR_END, "legend");
    draw_triangle(drawing, right - 1.05 * width - 9, y - 1.5, NULL, "swatch");
    return right - 1.05 * width - 9 - HALF_WIDTH - 20;
}

#define FLAG_GAP 18.0 /* pixels; closer OOM flags are merged */

/* Weights per square pixel of data. A label moves far away before it covers a line or the stack. If
 * there is no other place, it covers the stack first: the plate below it hides a line. */
#define LINE_WEIGHT  300.0
#define STACK_WEIGHT 30.0
#define LOW_PLOT     180.0 /* pixels; in lower plots, labels never cover data: they are omitted */

/* Limits of the timeline: the memory limit as a line, OOMs as flags. */

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

        for (; box.x + width + 8 < mt_timeline_right(layout); box.x += 10) {
            double cost = mt_placer_cost(placer, &box) + 0.1 * (box.x - layout->plot.x) + 20 * i;

            if (cost < least && box.y + box.height < base_y(layout)) {
                least = cost;
                *best = box;
            }
        }
    }
    return least;
}

/* Draw the line of the limit, and the flags of out-of-memory errors. Their texts avoid the
 * obstacles of the placer and become obstacles themselves. */
static void timeline_draw_limit(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                                struct mt_placer *placer)
{
    const struct mt_paint line = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.5, .dashed = true};
    const struct mt_text_style style = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_LIMIT, .halo = true};
    double y = mt_timeline_y(layout, layout->limit_bytes);

    if (!layout->limit_bytes)
        return;
    mt_draw_line(drawing, layout->plot.x, y, mt_timeline_right(layout), y, &line);
    mt_placer_avoid(placer, (struct mt_box){layout->plot.x, y - 3, layout->plot.width, 6},
                    layout->plot.height < LOW_PLOT ? MT_PLACE_MARK : LINE_WEIGHT);
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

    for (uint32_t i = 0; i < device->oom_count; i++) {
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
    if (flags[0].x - 12 - width >= layout->plot.x)
        return flags[0].x - 12 - width;
    if (flags[count - 1].x + 12 + width <= mt_timeline_right(layout))
        return flags[count - 1].x + 12;
    for (size_t i = 1; i < count; i++)
        if (flags[i].x - flags[i - 1].x >= width + 24)
            return flags[i - 1].x + 12;
    return -1;
}

static void draw_oom_label(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                           struct mt_placer *placer, const struct flag *flags, size_t count)
{
    const struct mt_text_style style = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_BAD};

    for (int detail = 2; detail >= 0; detail--) {
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

    for (uint32_t i = 0; i < layout->device->oom_count; i++) {
        double x = mt_time_axis_x(&layout->axis, ooms[i].t_ns, ooms[i].event);

        if (count && (x - flags[count - 1].x < FLAG_GAP || count == most))
            flags[count - 1].count++;
        else
            flags[count++] = (struct flag){x, i, 1};
    }
    return count;
}

static void timeline_draw_ooms(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                               struct mt_placer *placer)
{
    size_t most = (size_t)(layout->plot.width / FLAG_GAP) + 2;
    struct flag *flags = mt_arena_array(&drawing->arena, most, sizeof *flags);

    if (!layout->device->oom_count)
        return;
    size_t count = gather_flags(layout, flags, most);
    for (size_t i = 0; i < count; i++) {
        draw_flag(drawing, layout, &flags[i]);
        mt_placer_avoid(placer,
                        (struct mt_box){flags[i].x - 2, layout->plot.y, 4, layout->plot.height},
                        4 * MT_PLACE_LINE);
        mt_placer_avoid(placer, (struct mt_box){flags[i].x - 9, layout->plot.y - 20, 18, 18},
                        MT_PLACE_MARK);
    }
    draw_oom_label(drawing, layout, placer, flags, count);
}

#define CHUNK        8.0 /* pixels of a curve that form one obstacle */
#define LINE_HEIGHT  17.0
#define PLATE_MARGIN 4.0  /* margin around the text of a label */
#define MAX_COVERED  4000 /* maximum cost of the label of unused memory */
/* Weight per square pixel of the cursor of report.html. Labels move a little to avoid it. */
#define CURSOR_WEIGHT 0.25

/* The extremes of the curves over CHUNK pixels. */
struct chunk {
    double x, width;
    double reserved_high, reserved_low;   /* y of the line; a higher level has a smaller y */
    double allocated_high, allocated_low; /* y of the upper edge of the stack */
};

static struct chunk make_chunk(const struct mt_timeline_layout *layout, uint32_t first,
                               uint32_t end)
{
    struct chunk chunk = {layout->columns[first].x, 0, HUGE_VAL, 0, HUGE_VAL, 0};

    /* the line comes from the level of the column before it */
    for (uint32_t i = first ? first - 1 : 0; i < end; i++) {
        double reserved = mt_timeline_y(layout, layout->columns[i].reserved);
        double allocated = mt_timeline_y(layout, layout->columns[i].bin->allocated);

        chunk.reserved_high = fmin(chunk.reserved_high, reserved);
        chunk.reserved_low = fmax(chunk.reserved_low, reserved);
        chunk.allocated_high = fmin(chunk.allocated_high, allocated);
        chunk.allocated_low = fmax(chunk.allocated_low, allocated);
    }
    chunk.width = layout->columns[end - 1].x + layout->column_width - chunk.x;
    return chunk;
}

static size_t make_chunks(const struct mt_timeline_layout *layout, struct chunk *chunks)
{
    uint32_t first = 0, end;
    size_t count = 0;

    for (; first < layout->column_count; first = end) {
        for (end = first + 1; end < layout->column_count &&
                              layout->columns[end].x - layout->columns[first].x < CHUNK;
             end++)
            ;
        chunks[count++] = make_chunk(layout, first, end);
    }
    return count;
}

/* A low plot has little room beside its data, and a label would cover much of it. The tiles have
 * the numbers of labels that are omitted. */
static void avoid_curves(struct mt_placer *placer, const struct mt_timeline_layout *layout,
                         const struct chunk *chunks, size_t count)
{
    bool is_low = layout->plot.height < LOW_PLOT;

    for (size_t i = 0; i < count; i++) {
        const struct chunk *c = &chunks[i];
        struct mt_box line = {c->x, c->reserved_high - 3, c->width,
                              c->reserved_low - c->reserved_high + 6};
        struct mt_box stack = {c->x, c->allocated_high, c->width,
                               base_y(layout) - c->allocated_high};

        if (layout->device->reserved_peak.bytes)
            mt_placer_avoid(placer, line, is_low ? MT_PLACE_MARK : LINE_WEIGHT);
        mt_placer_avoid(placer, stack, is_low ? MT_PLACE_MARK : STACK_WEIGHT);
    }
}

static void avoid_folds(struct mt_placer *placer, const struct mt_timeline_layout *layout)
{
    for (uint32_t i = 0; i + 1 < mt_time_axis_spans(&layout->axis); i++) {
        double left = mt_time_axis_span_right(&layout->axis, i);
        struct mt_box box = {left, layout->plot.y, MT_FOLD_WIDTH, layout->plot.height};

        /* where all data is a mark, leaders would cross folds as often as data */
        mt_placer_avoid(placer, box,
                        layout->plot.height < LOW_PLOT ? MT_PLACE_TEXT : MT_PLACE_MARK);
    }
}

struct peak_label {
    double x, y;
    const char *head, *line;
    const char *role;
};

static void draw_leader(struct mt_drawing *drawing, struct mt_placer *placer,
                        const struct peak_label *label, const struct mt_box *box)
{
    const struct mt_paint paint = {.stroke = MT_COLOR_TEXT, .stroke_width = 1.1};
    double x = fmin(fmax(label->x, box->x - 3), box->x + box->width + 3);
    double y = fmin(fmax(label->y, box->y - 1), box->y + box->height + 1);
    double distance = hypot(x - label->x, y - label->y);

    if (distance < 9)
        return;
    mt_draw_path(drawing,
                 (const struct mt_point[]){/* the leader starts at the edge of the ring */
                                           {label->x + (x - label->x) * 5 / distance,
                                            label->y + (y - label->y) * 5 / distance},
                                           {x, y}},
                 2, false, false, &paint, NULL, "leader");
    for (double i = 5; i < distance; i += 5)
        mt_placer_avoid(placer,
                        (struct mt_box){label->x + (x - label->x) * i / distance - 3,
                                        label->y + (y - label->y) * i / distance - 3, 6, 6},
                        MT_PLACE_MARK);
}

static void draw_ring(struct mt_drawing *drawing, const struct peak_label *label)
{
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.8};
    const char *title = mt_arena_printf(&drawing->arena, "%s, %s", label->head, label->line);

    mt_draw_circle(drawing, label->x, label->y, 4.4, &ring, title, "ring");
}

/* Draws a head with `words` below it, or the head alone. Returns false if there is no room. */
static bool draw_peak_words(struct mt_drawing *drawing, struct mt_placer *placer,
                            const struct peak_label *label, const char *words)
{
    struct mt_text_style head = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_TEXT, .halo = true};
    struct mt_text_style line = {.size = MT_SIZE_SMALL, .color = MT_COLOR_MUTED, .halo = true};
    double head_width = mt_text_width(label->head, head.size, head.weight);
    double line_width = mt_text_width(words, line.size, line.weight);
    double width = 1.05 * fmax(head_width, line_width);
    double height = *words ? 2 * LINE_HEIGHT : LINE_HEIGHT;
    struct mt_box box;

    if (mt_placer_label(placer, label->x, label->y, width + 2 * PLATE_MARGIN, height, &box) >=
        placer->limit)
        return false;
    mt_chart_frame_plate(drawing, box.x, box.y + 2, box.width, height - 2);
    box.x += PLATE_MARGIN;
    box.width = width;
    draw_leader(drawing, placer, label, &box);
    /* Aligns the text to the side on which the ring is. */
    head.anchor = line.anchor = box.x + width / 2 < label->x ? MT_ANCHOR_END : MT_ANCHOR_START;
    double x = head.anchor == MT_ANCHOR_END ? box.x + width : box.x;
    mt_draw_text(drawing, x, box.y + 13, label->head, &head, label->role);
    if (*words)
        mt_draw_text(drawing, x, box.y + 13 + LINE_HEIGHT - 1, words, &line, "label-line");
    return true;
}

/* Draws two lines next to the ring, or one line if two do not fit or would cover data. */
static bool draw_peak_label(struct mt_drawing *drawing, struct mt_placer *placer,
                            const struct peak_label *label)
{
    static const double limits[] = {MT_PLACE_CLEAR, MT_PLACE_LIMIT};
    const char *words = mt_text_fit(drawing, label->line, MT_SIZE_SMALL, MT_REGULAR,
                                    0.6 * placer->frame.width, false);

    for (size_t i = 0; i < MT_ARRAY_LEN(limits); i++) {
        placer->limit = limits[i];
        if (draw_peak_words(drawing, placer, label, words) ||
            draw_peak_words(drawing, placer, label, ""))
            return true;
    }
    return false;
}

static void draw_peak(struct mt_drawing *drawing, struct mt_placer *placer,
                      const struct peak_label *label, bool is_low)
{
    if (!label->head || !label->line)
        return;
    if (draw_peak_label(drawing, placer, label) || is_low)
        draw_ring(drawing, label);
}

static struct peak_label make_peak_label(const struct mt_timeline_layout *layout,
                                         const struct mt_peak *peak)
{
    struct peak_label label = {.x = mt_time_axis_x(&layout->axis, peak->t_ns, peak->event),
                               .y = mt_timeline_y(layout, peak->bytes)};

    label.x = fmin(label.x, mt_timeline_right(layout));
    return label;
}

static struct peak_label allocated_label(struct mt_drawing *drawing,
                                         const struct mt_timeline_layout *layout)
{
    const struct mt_peak *peak = &layout->device->allocated_peak;
    struct peak_label label = make_peak_label(layout, peak);
    const char *where = mt_chart_frame_where(drawing, layout->report, peak->phase, peak->step);
    const char *when = mt_chart_frame_when(drawing, layout->report, peak->t_ns);
    char bytes[MT_UNITS_TEXT], event[MT_UNITS_TEXT];

    label.role = "label:peak-allocated";
    label.head =
        mt_arena_printf(&drawing->arena, "peak allocated %s", mt_format_bytes(bytes, peak->bytes));
    mt_format_count(event, peak->event);
    label.line = mt_arena_printf(
        &drawing->arena, "%s%s%s%s", where, *where ? ", " : "",
        layout->axis.by_event ? "event " : "t = ", layout->axis.by_event ? event : when);
    return label;
}

static struct peak_label reserved_label(struct mt_drawing *drawing,
                                        const struct mt_timeline_layout *layout)
{
    const struct mt_peak *peak = &layout->device->reserved_peak;
    struct peak_label label = make_peak_label(layout, peak);
    const char *where = mt_chart_frame_where(drawing, layout->report, peak->phase, peak->step);
    char bytes[MT_UNITS_TEXT];

    label.role = "label:peak-reserved";
    label.head =
        mt_arena_printf(&drawing->arena, "peak reserved %s", mt_format_bytes(bytes, peak->bytes));
    label.line = mt_arena_printf(&drawing->arena, "%s%sonly %s allocated", where,
                                 *where ? "; " : "", mt_format_bytes(bytes, peak->then.allocated));
    return label;
}

static void avoid_ring(struct mt_placer *placer, const struct peak_label *label)
{
    mt_placer_avoid(placer, (struct mt_box){label->x - 6, label->y - 6, 12, 12}, MT_PLACE_MARK);
}

struct peaks {
    struct peak_label allocated, reserved; /* a peak without a head has no label */
};

static struct peaks find_peaks(struct mt_drawing *drawing, const struct mt_timeline_layout *layout)
{
    const struct mt_device_report *device = layout->device;
    const struct mt_peak *most = &device->reserved_peak;
    struct peaks peaks = {.allocated = {.head = NULL}};

    if (device->allocated_peak.bytes)
        peaks.allocated = allocated_label(drawing, layout);
    /* Labels unused memory only if it is more than a tenth of the reserved memory at that time. */
    if (most->bytes > most->then.allocated && most->bytes - most->then.allocated > most->bytes / 10)
        peaks.reserved = reserved_label(drawing, layout);
    return peaks;
}

/* Makes the rings obstacles. Call it before any label is placed, so that no label covers a ring. */
static void avoid_peaks(struct mt_placer *placer, const struct mt_timeline_layout *layout,
                        const struct peaks *peaks)
{
    if (peaks->allocated.head) {
        avoid_ring(placer, &peaks->allocated);
        /* report.html draws a line through the selected instant, which is this one at first */
        mt_placer_avoid(
            placer, (struct mt_box){peaks->allocated.x - 3, layout->plot.y, 6, layout->plot.height},
            CURSOR_WEIGHT);
    }
    if (peaks->reserved.head)
        avoid_ring(placer, &peaks->reserved);
}

/* Draws the upper label first, so that leaders do not cross. */
static void draw_peaks(struct mt_drawing *drawing, struct mt_placer *placer,
                       const struct peaks *peaks, bool is_low)
{
    bool reserved_first = peaks->reserved.y < peaks->allocated.y;

    draw_peak(drawing, placer, reserved_first ? &peaks->reserved : &peaks->allocated, is_low);
    draw_peak(drawing, placer, reserved_first ? &peaks->allocated : &peaks->reserved, is_low);
}

/* Finds the place with the most room for a label of `width` between the stack and the line of
 * reserved memory. */
static bool find_unused_room(const struct mt_placer *placer, const struct chunk *chunks,
                             size_t count, double width, double height, struct mt_box *best)
{
    double best_room = height + 10;
    bool found = false;
    size_t j;

    for (size_t i = 0; i < count; i++) {
        double high = 0, low = HUGE_VAL;

        for (j = i; j < count && chunks[j].x < chunks[i].x + width; j++) {
            high = fmax(high, chunks[j].reserved_low);
            low = fmin(low, chunks[j].allocated_high);
        }
        if (j < count && low - high > best_room) {
            struct mt_box box = {chunks[i].x, (high + low - height) / 2, width, height};

            if (mt_placer_cost(placer, &box) > MAX_COVERED)
                continue;
            best_room = low - high;
            *best = box;
            found = true;
        }
    }
    return found;
}

static void draw_unused_label(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                              struct mt_placer *placer, const struct chunk *chunks, size_t count)
{
    struct mt_text_style head = {.size = MT_SIZE_AXIS,
                                 .weight = MT_SEMIBOLD,
                                 .color = MT_COLOR_TEXT,
                                 .anchor = MT_ANCHOR_MIDDLE,
                                 .halo = true};
    struct mt_text_style line = {
        .size = MT_SIZE_SMALL, .color = MT_COLOR_MUTED, .anchor = MT_ANCHOR_MIDDLE, .halo = true};
    const char *text = "reserved by the allocator but not in use";
    double width = 1.05 * mt_text_width(text, head.size, head.weight) + 16;
    char bytes[MT_UNITS_TEXT], worst[MT_UNITS_TEXT + 40];
    struct mt_box box;

    if (!find_unused_room(placer, chunks, count, width, 3 * LINE_HEIGHT, &box))
        return;
    mt_placer_avoid(placer, box, MT_PLACE_TEXT);
    snprintf(worst, sizeof worst, "worst moment: %s unused",
             mt_format_bytes(bytes, layout->device->worst_unused_bytes));
    mt_chart_frame_plate(drawing, box.x + 6, box.y + 0.5 * LINE_HEIGHT, width - 12,
                         2.1 * LINE_HEIGHT);
    mt_draw_text(drawing, box.x + width / 2, box.y + 1.4 * LINE_HEIGHT, text, &head,
                 "label:unused");
    mt_draw_text(drawing, box.x + width / 2, box.y + 2.4 * LINE_HEIGHT, worst, &line, "label-line");
}

void mt_timeline_draw_labels(struct mt_drawing *drawing, const struct mt_timeline_layout *layout)
{
    const struct mt_box frame = {layout->plot.x + 4, layout->plot.y + 2, layout->plot.width - 8,
                                 layout->plot.height - 4};
    struct mt_placer placer;
    struct chunk *chunks =
        mt_arena_array(&drawing->arena, layout->column_count + 1, sizeof *chunks);
    size_t count = make_chunks(layout, chunks);

    mt_placer_init(&placer, &drawing->arena, frame);
    avoid_curves(&placer, layout, chunks, count);
    avoid_folds(&placer, layout);
    struct peaks peaks = find_peaks(drawing, layout);
    avoid_peaks(&placer, layout, &peaks);
    timeline_draw_ooms(drawing, layout, &placer);
    timeline_draw_retries(drawing, layout, &placer);
    timeline_draw_limit(drawing, layout, &placer);
    draw_peaks(drawing, &placer, &peaks, layout->plot.height < LOW_PLOT);
    draw_unused_label(drawing, layout, &placer, chunks, count);
}
