/* Labels in the plot of the timeline: peaks with their rings, and unused memory. A label is placed
 * where it covers the least. */
#include "timeline_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define CHUNK        8.0 /* pixels of a curve that form one obstacle */
#define LINE_HEIGHT  17.0
#define PLATE_MARGIN 4.0  /* margin around the text of a label */
#define MAX_COVERED  4000 /* maximum cost of the label of unused memory */
/* Weight per square pixel of the cursor of report.html. Labels move a little to avoid it. */
#define CURSOR_WEIGHT 0.25

static double base_y(const struct mt_timeline_layout *layout)
{
    return layout->plot.y + layout->plot.height;
}

static double right_x(const struct mt_timeline_layout *layout)
{
    return layout->plot.x + layout->plot.width;
}

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
    uint32_t i;

    for (i = first; i < end; i++) {
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

static void avoid_curves(struct mt_placer *placer, const struct mt_timeline_layout *layout,
                         const struct chunk *chunks, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        const struct chunk *c = &chunks[i];
        struct mt_box line = {c->x, c->reserved_high - 3, c->width,
                              c->reserved_low - c->reserved_high + 6};
        struct mt_box stack = {c->x, c->allocated_high, c->width,
                               base_y(layout) - c->allocated_high};

        if (layout->device->reserved_peak.bytes)
            mt_placer_avoid(placer, line, MT_PLACE_LINE);
        mt_placer_avoid(placer, stack, 0.5);
    }
}

static void avoid_folds(struct mt_placer *placer, const struct mt_timeline_layout *layout)
{
    uint32_t i;

    for (i = 0; i + 1 < mt_time_axis_spans(&layout->axis); i++) {
        double left = mt_time_axis_span_right(&layout->axis, i);
        struct mt_box box = {left, layout->plot.y, MT_FOLD_WIDTH, layout->plot.height};

        mt_placer_avoid(placer, box, MT_PLACE_MARK);
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
    double distance = hypot(x - label->x, y - label->y), i;

    if (distance < 9)
        return;
    mt_draw_path(drawing,
                 (const struct mt_point[]){/* the leader starts at the edge of the ring */
                                           {label->x + (x - label->x) * 5 / distance,
                                            label->y + (y - label->y) * 5 / distance},
                                           {x, y}},
                 2, false, false, &paint, NULL, "leader");
    for (i = 5; i < distance; i += 5)
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

/* Dims everything behind a label: layers, stripes and the line of reserved memory. */
static void draw_plate(struct mt_drawing *drawing, double x, double y, double width, double height)
{
    const struct mt_paint paint = {.fill = MT_COLOR_BACKGROUND, .opacity = 0.85};

    mt_draw_rect(drawing, x, y, width, height, &paint, NULL, "plate");
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
    double width = 1.05 * fmax(head_width, line_width), x;
    double height = *words ? 2 * LINE_HEIGHT : LINE_HEIGHT;
    struct mt_box box;

    if (mt_placer_label(placer, label->x, label->y, width, height, &box) >= MT_PLACE_LIMIT)
        return false;
    draw_leader(drawing, placer, label, &box);
    /* Aligns the text to the side on which the ring is. */
    head.anchor = line.anchor = box.x + width / 2 < label->x ? MT_ANCHOR_END : MT_ANCHOR_START;
    x = head.anchor == MT_ANCHOR_END ? box.x + width : box.x;
    draw_plate(drawing, box.x - PLATE_MARGIN, box.y + 2, width + 2 * PLATE_MARGIN, height - 2);
    mt_draw_text(drawing, x, box.y + 13, label->head, &head, label->role);
    if (*words)
        mt_draw_text(drawing, x, box.y + 13 + LINE_HEIGHT - 1, words, &line, "label-line");
    return true;
}

/* Draws two lines next to the ring, or one line if two do not fit. */
static bool draw_peak_label(struct mt_drawing *drawing, struct mt_placer *placer,
                            const struct peak_label *label)
{
    const char *words = mt_text_fit(drawing, label->line, MT_SIZE_SMALL, MT_REGULAR,
                                    0.6 * placer->frame.width, false);

    return draw_peak_words(drawing, placer, label, words) ||
           draw_peak_words(drawing, placer, label, "");
}

static void draw_peak(struct mt_drawing *drawing, struct mt_placer *placer,
                      const struct peak_label *label)
{
    if (label->head && label->line && draw_peak_label(drawing, placer, label))
        draw_ring(drawing, label);
}

static struct peak_label make_peak_label(const struct mt_timeline_layout *layout,
                                         const struct mt_peak *peak)
{
    struct peak_label label = {.x = mt_time_axis_x(&layout->axis, peak->t_ns, peak->event),
                               .y = mt_timeline_y(layout, peak->bytes)};

    label.x = fmin(label.x, right_x(layout));
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
                       const struct peaks *peaks)
{
    bool reserved_first = peaks->reserved.y < peaks->allocated.y;

    draw_peak(drawing, placer, reserved_first ? &peaks->reserved : &peaks->allocated);
    draw_peak(drawing, placer, reserved_first ? &peaks->allocated : &peaks->reserved);
}

/* Finds the place with the most room for a label of `width` between the stack and the line of
 * reserved memory. */
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
    draw_plate(drawing, box.x + 6, box.y + 0.5 * LINE_HEIGHT, width - 12, 2.1 * LINE_HEIGHT);
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
    struct peaks peaks;
    size_t count;

    count = make_chunks(layout, chunks);
    mt_placer_init(&placer, &drawing->arena, frame);
    avoid_curves(&placer, layout, chunks, count);
    avoid_folds(&placer, layout);
    peaks = find_peaks(drawing, layout);
    avoid_peaks(&placer, layout, &peaks);
    mt_timeline_draw_ooms(drawing, layout, &placer);
    mt_timeline_draw_retries(drawing, layout, &placer);
    mt_timeline_draw_limit(drawing, layout, &placer);
    draw_peaks(drawing, &placer, &peaks);
    draw_unused_label(drawing, layout, &placer, chunks, count);
}
