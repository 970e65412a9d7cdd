/* What stands out in the timeline, and its words: limit, OOMs, peaks. Labels
 * are placed where they cover least. */
#include "timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define CHUNK        8.0  /* pixels of a curve that are one obstacle */
#define FLAG_GAP     18.0 /* OOM flags closer than that become one */
#define LINE_HEIGHT  17.0
#define MOST_COVERED 4000 /* cost of what the label of unused memory may cover */

static double base_y(const struct mt_timeline_plan *plan)
{
    return plan->plot.y + plan->plot.height;
}

static double right_x(const struct mt_timeline_plan *plan)
{
    return plan->plot.x + plan->plot.width;
}

/* ---- obstacles ---- */

/* Extremes of the curves over CHUNK pixels. */
struct chunk {
    double x, width;
    double reserved_high, reserved_low;   /* y of the line: high is less */
    double allocated_high, allocated_low; /* y of the stack's upper edge */
};

static struct chunk make_chunk(const struct mt_timeline_plan *plan, uint32_t first, uint32_t end)
{
    struct chunk chunk = {plan->columns[first].x, 0, HUGE_VAL, 0, HUGE_VAL, 0};
    uint32_t i;

    for (i = first; i < end; i++) {
        double reserved = mt_timeline_y(plan, plan->columns[i].reserved);
        double allocated = mt_timeline_y(plan, plan->columns[i].bin->allocated);

        chunk.reserved_high = fmin(chunk.reserved_high, reserved);
        chunk.reserved_low = fmax(chunk.reserved_low, reserved);
        chunk.allocated_high = fmin(chunk.allocated_high, allocated);
        chunk.allocated_low = fmax(chunk.allocated_low, allocated);
    }
    chunk.width = plan->columns[end - 1].x + plan->column_width - chunk.x;
    return chunk;
}

static size_t make_chunks(const struct mt_timeline_plan *plan, struct chunk *chunks)
{
    uint32_t first = 0, end;
    size_t count = 0;

    for (; first < plan->column_count; first = end) {
        for (end = first + 1;
             end < plan->column_count && plan->columns[end].x - plan->columns[first].x < CHUNK;
             end++)
            ;
        chunks[count++] = make_chunk(plan, first, end);
    }
    return count;
}

static void avoid_curves(struct mt_placer *placer, const struct mt_timeline_plan *plan,
                         const struct chunk *chunks, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        const struct chunk *c = &chunks[i];
        struct mt_box line = {c->x, c->reserved_high - 3, c->width,
                              c->reserved_low - c->reserved_high + 6};
        struct mt_box stack = {c->x, c->allocated_high, c->width, base_y(plan) - c->allocated_high};

        if (plan->device->reserved_peak.bytes)
            mt_placer_avoid(placer, line, MT_PLACE_LINE);
        mt_placer_avoid(placer, stack, 0.5);
    }
}

static void avoid_folds(struct mt_placer *placer, const struct mt_timeline_plan *plan)
{
    uint32_t i;

    for (i = 0; i + 1 < mt_time_axis_spans(&plan->axis); i++) {
        double left = mt_time_axis_span_right(&plan->axis, i);
        struct mt_box box = {left, plan->plot.y, MT_FOLD_WIDTH, plan->plot.height};

        mt_placer_avoid(placer, box, MT_PLACE_TEXT);
    }
}

/* ---- limit ---- */

static void draw_limit(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                       struct mt_placer *placer)
{
    const struct mt_paint line = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.5, .dashed = true};
    const struct mt_text_style style = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_LIMIT, .halo = true};
    double y = mt_timeline_y(plan, plan->limit_bytes), width, least = MT_PLACE_LIMIT;
    char bytes[MT_LIMIT_TEXT];
    const char *text;
    struct mt_box box, best;
    int i;

    if (!plan->limit_bytes)
        return;
    mt_draw_line(drawing, plan->plot.x, y, right_x(plan), y, &line);
    mt_placer_avoid(placer, (struct mt_box){plan->plot.x, y - 3, plan->plot.width, 6},
                    MT_PLACE_LINE);
    text = mt_arena_printf(&drawing->arena, "memory limit %s",
                           mt_timeline_limit_text(bytes, plan->device));
    if (!text)
        return;
    width = 1.05 * mt_text_width(text, style.size, style.weight);
    for (i = 0; i < 2; i++) { /* above the line, below */
        box = (struct mt_box){plan->plot.x + 8, i ? y + 5 : y - 19, width, 15};
        for (; box.x + width + 8 < right_x(plan); box.x += 10) {
            double cost = mt_placer_cost(placer, &box) + 0.1 * (box.x - plan->plot.x) + 20 * i;

            if (cost < least && box.y + box.height < base_y(plan)) {
                least = cost;
                best = box;
            }
        }
    }
    if (least >= MT_PLACE_LIMIT)
        return;
    mt_draw_text(drawing, best.x, best.y + 12.5, text, &style, "label:limit");
    mt_placer_avoid(placer, best, MT_PLACE_TEXT);
}

/* ---- OOMs ---- */

/* OOMs that are drawn as one flag. */
struct flag {
    double x;
    uint32_t first, count;
};

static const char *oom_title(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                             const struct flag *flag)
{
    const struct mt_oom *oom = &plan->device->oom_list[flag->first];
    const char *where = mt_frame_where(drawing, plan->report, oom->phase, oom->step);
    char wanted[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], free_bytes[MT_UNITS_TEXT];

    mt_format_bytes(wanted, oom->request_bytes);
    mt_format_bytes(reserved, oom->then.reserved);
    mt_format_bytes(free_bytes, oom->device_free_bytes);
    return mt_arena_printf(&drawing->arena,
                           "%s%s out of memory%s%s: wanted %s, reserved %s, free on the device %s",
                           flag->count > 1 ? "several times"
                           : oom->fatal    ? "fatal"
                                           : "caught",
                           flag->count > 1 ? ", first:" : ":", *where ? " in " : "", where, wanted,
                           reserved, free_bytes);
}

static void draw_flag(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                      const struct flag *flag)
{
    const struct mt_paint line = {.stroke = MT_COLOR_BAD, .stroke_width = 1.2};
    const struct mt_paint box = {.fill = MT_COLOR_BAD, .radius = 2.5};
    double y = plan->plot.y;

    mt_draw_line(drawing, flag->x, y - 4, flag->x, base_y(plan), &line);
    mt_draw_rect(drawing, flag->x - 7, y - 18, 14, 14, &box, oom_title(drawing, plan, flag),
                 "flag:oom");
    mt_frame_text(drawing, flag->x, y - 6.5, "!", 12.5, MT_SEMIBOLD, MT_COLOR_BACKGROUND,
                  MT_ANCHOR_MIDDLE, "flag-text");
}

/* "4 × OOM, caught: wanted 2.00 GiB, reserved 948 MiB"; detail 0..2 says how
 * much of it. */
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
        detail > 0 ? ": wanted " : "", detail > 0 && !same ? "up to " : "",
        detail > 0 ? wanted : "", detail > 1 ? ", reserved " : "", detail > 1 ? reserved : "");
}

/* Left edge of room for `width` beside the flags: before them, after them or
 * between two; -1 if there is none. */
static double find_room(const struct mt_timeline_plan *plan, const struct flag *flags, size_t count,
                        double width)
{
    size_t i;

    if (flags[0].x - 12 - width >= plan->plot.x)
        return flags[0].x - 12 - width;
    if (flags[count - 1].x + 12 + width <= right_x(plan))
        return flags[count - 1].x + 12;
    for (i = 1; i < count; i++) {
        if (flags[i].x - flags[i - 1].x >= width + 24)
            return flags[i - 1].x + 12;
    }
    return -1;
}

static void draw_oom_label(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                           struct mt_placer *placer, const struct flag *flags, size_t count)
{
    const struct mt_text_style style = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_BAD};
    int detail;

    for (detail = 2; detail >= 0; detail--) {
        const char *text = oom_label(drawing, plan->device, detail);
        double width = text ? 1.05 * mt_text_width(text, style.size, style.weight) : 0;
        double x = find_room(plan, flags, count, width);

        if (!text || x < 0)
            continue;
        mt_draw_text(drawing, x, plan->plot.y - 6.5, text, &style, "label:oom");
        mt_placer_avoid(placer, (struct mt_box){x, plan->plot.y - 19, width, 16}, MT_PLACE_TEXT);
        return;
    }
}

/* Flags from left to right; neighbours that would overlap become one. */
static size_t gather_flags(const struct mt_timeline_plan *plan, struct flag *flags, size_t most)
{
    const struct mt_oom *ooms = plan->device->oom_list;
    size_t count = 0;
    uint32_t i;

    for (i = 0; i < plan->device->oom_count; i++) {
        double x = mt_time_axis_x(&plan->axis, ooms[i].t_ns, ooms[i].event);

        if (count && (x - flags[count - 1].x < FLAG_GAP || count == most))
            flags[count - 1].count++;
        else
            flags[count++] = (struct flag){x, i, 1};
    }
    return count;
}

static void draw_ooms(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                      struct mt_placer *placer)
{
    size_t most = (size_t)(plan->plot.width / FLAG_GAP) + 2, count, i;
    struct flag *flags = mt_arena_array(&drawing->arena, most, sizeof *flags);

    if (!flags)
        drawing->failed = true;
    if (!flags || !plan->device->oom_count)
        return;
    count = gather_flags(plan, flags, most);
    for (i = 0; i < count; i++) {
        draw_flag(drawing, plan, &flags[i]);
        mt_placer_avoid(placer, (struct mt_box){flags[i].x - 2, plan->plot.y, 4, plan->plot.height},
                        4 * MT_PLACE_LINE);
        mt_placer_avoid(placer, (struct mt_box){flags[i].x - 9, plan->plot.y - 20, 18, 18},
                        MT_PLACE_TEXT);
    }
    draw_oom_label(drawing, plan, placer, flags, count);
}

/* ---- peaks ---- */

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
    double distance = hypot(x - label->x, y - label->y), i;

    if (distance < 9)
        return;
    /* From the edge of the ring on. */
    mt_draw_line(drawing, label->x + (x - label->x) * 5 / distance,
                 label->y + (y - label->y) * 5 / distance, x, y, &paint);
    for (i = 5; i < distance; i += 5)
        mt_placer_avoid(placer,
                        (struct mt_box){label->x + (x - label->x) * i / distance - 3,
                                        label->y + (y - label->y) * i / distance - 3, 6, 6},
                        4 * MT_PLACE_LINE);
}

static void draw_ring(struct mt_drawing *drawing, const struct peak_label *label)
{
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.8};
    const char *title = mt_arena_printf(&drawing->arena, "%s, %s", label->head, label->line);

    mt_draw_circle(drawing, label->x, label->y, 4.4, &ring, title, "ring");
}

/* Two lines beside the ring; false if there is no room anywhere. */
static bool draw_peak_label(struct mt_drawing *drawing, struct mt_placer *placer,
                            const struct peak_label *label)
{
    struct mt_text_style head = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_TEXT, .halo = true};
    struct mt_text_style line = {.size = MT_SIZE_SMALL, .color = MT_COLOR_MUTED, .halo = true};
    double head_width = mt_text_width(label->head, head.size, head.weight);
    const char *words =
        mt_text_fit(drawing, label->line, line.size, line.weight, 0.6 * placer->frame.width, false);
    double line_width = mt_text_width(words, line.size, line.weight);
    double width = 1.05 * fmax(head_width, line_width), x;
    double height = *words ? 2 * LINE_HEIGHT : LINE_HEIGHT;
    struct mt_box box;

    if (mt_placer_label(placer, label->x, label->y, width, height, &box) >= MT_PLACE_LIMIT)
        return false;
    draw_leader(drawing, placer, label, &box);
    /* The text leans on the side of its ring. */
    head.anchor = line.anchor = box.x + width / 2 < label->x ? MT_ANCHOR_END : MT_ANCHOR_START;
    x = head.anchor == MT_ANCHOR_END ? box.x + width : box.x;
    mt_draw_text(drawing, x, box.y + 13, label->head, &head, label->role);
    if (*words)
        mt_draw_text(drawing, x, box.y + 13 + LINE_HEIGHT - 1, words, &line, "label-line");
    return true;
}

static void draw_peak(struct mt_drawing *drawing, struct mt_placer *placer,
                      const struct peak_label *label)
{
    if (label->head && label->line && draw_peak_label(drawing, placer, label))
        draw_ring(drawing, label);
}

static struct peak_label make_peak_label(const struct mt_timeline_plan *plan,
                                         const struct mt_peak *peak)
{
    struct peak_label label = {.x = mt_time_axis_x(&plan->axis, peak->t_ns, peak->event),
                               .y = mt_timeline_y(plan, peak->bytes)};

    label.x = fmin(label.x, right_x(plan));
    return label;
}

static struct peak_label allocated_label(struct mt_drawing *drawing,
                                         const struct mt_timeline_plan *plan)
{
    const struct mt_peak *peak = &plan->device->allocated_peak;
    struct peak_label label = make_peak_label(plan, peak);
    const char *where = mt_frame_where(drawing, plan->report, peak->phase, peak->step);
    const char *when = mt_frame_when(drawing, plan->report, peak->t_ns);
    char bytes[MT_UNITS_TEXT], event[MT_UNITS_TEXT];

    label.role = "label:peak-allocated";
    label.head =
        mt_arena_printf(&drawing->arena, "peak allocated %s", mt_format_bytes(bytes, peak->bytes));
    mt_format_count(event, peak->event);
    label.line = mt_arena_printf(
        &drawing->arena, "%s%s%s%s", where, *where ? ", " : "",
        plan->axis.by_event ? "event " : "t = ", plan->axis.by_event ? event : when);
    return label;
}

static struct peak_label reserved_label(struct mt_drawing *drawing,
                                        const struct mt_timeline_plan *plan)
{
    const struct mt_peak *peak = &plan->device->reserved_peak;
    struct peak_label label = make_peak_label(plan, peak);
    const char *where = mt_frame_where(drawing, plan->report, peak->phase, peak->step);
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
    mt_placer_avoid(placer, (struct mt_box){label->x - 6, label->y - 6, 12, 12}, MT_PLACE_TEXT);
}

static void draw_peaks(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                       struct mt_placer *placer)
{
    const struct mt_device_report *device = plan->device;
    const struct mt_peak *most = &device->reserved_peak;
    struct peak_label allocated = {0}, reserved = {0};

    if (device->allocated_peak.bytes) {
        allocated = allocated_label(drawing, plan);
        avoid_ring(placer, &allocated);
    }
    /* Worth a label if much of what is reserved then is not in use. */
    if (most->bytes > most->then.allocated &&
        most->bytes - most->then.allocated > most->bytes / 10) {
        reserved = reserved_label(drawing, plan);
        avoid_ring(placer, &reserved);
    }
    /* The upper one first: leaders then do not cross. */
    draw_peak(drawing, placer, reserved.y < allocated.y ? &reserved : &allocated);
    draw_peak(drawing, placer, reserved.y < allocated.y ? &allocated : &reserved);
}

/* ---- unused ---- */

/* The roomiest place for a label of `width` between stack and reserved line. */
static bool find_unused_room(const struct mt_placer *placer, const struct chunk *chunks,
                             size_t count, double width, double height, struct mt_box *best)
{
    double best_room = height + 10;
    bool found = false;
    size_t i, j;

    for (i = 0; i < count; i++) {
        double high = 0, low = HUGE_VAL;

        for (j = i; j < count && chunks[j].x < chunks[i].x + width; j++) {
            high = fmax(high, chunks[j].reserved_low);
            low = fmin(low, chunks[j].allocated_high);
        }
        if (j < count && low - high > best_room) {
            struct mt_box box = {chunks[i].x, (high + low - height) / 2, width, height};

            if (mt_placer_cost(placer, &box) > MOST_COVERED)
                continue;
            best_room = low - high;
            *best = box;
            found = true;
        }
    }
    return found;
}

static void draw_unused_label(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
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
             mt_format_bytes(bytes, plan->device->worst_unused_bytes));
    mt_draw_text(drawing, box.x + width / 2, box.y + 1.4 * LINE_HEIGHT, text, &head,
                 "label:unused");
    mt_draw_text(drawing, box.x + width / 2, box.y + 2.4 * LINE_HEIGHT, worst, &line, "label-line");
}

void mt_timeline_draw_labels(struct mt_drawing *drawing, const struct mt_timeline_plan *plan)
{
    const struct mt_box frame = {plan->plot.x + 4, plan->plot.y + 2, plan->plot.width - 8,
                                 plan->plot.height - 4};
    struct mt_placer placer;
    struct chunk *chunks = mt_arena_array(&drawing->arena, plan->column_count + 1, sizeof *chunks);
    size_t count;

    if (!chunks) {
        drawing->failed = true;
        return;
    }
    count = make_chunks(plan, chunks);
    mt_placer_init(&placer, &drawing->arena, frame);
    avoid_curves(&placer, plan, chunks, count);
    avoid_folds(&placer, plan);
    draw_ooms(drawing, plan, &placer);
    draw_limit(drawing, plan, &placer);
    draw_peaks(drawing, plan, &placer);
    draw_unused_label(drawing, plan, &placer, chunks, count);
}
