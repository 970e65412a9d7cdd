/* The filled part of the timeline. Each column shows one instant in full, so
 * layers add up to allocated. Layers are drawn from the top one down, each to
 * the base line: no seams between them. */
#include "timeline.h"

#include <math.h>

#include "units.h"
#include "util.h"

#define MANY_CHANGES 5000 /* corners of all outlines: about 9 bytes each in SVG */

const enum mt_role mt_timeline_stack[MT_ROLE_COUNT] = {
    MT_ROLE_PARAMETERS, MT_ROLE_OPTIMIZER_STATE, MT_ROLE_WORKSPACE,
    MT_ROLE_KV_CACHE,   MT_ROLE_INPUTS,          MT_ROLE_OTHER,
    MT_ROLE_GRADIENTS,  MT_ROLE_ACTIVATIONS,     MT_ROLE_TEMPORARIES};

/* What tests look for, by role. */
static const char *const layer_names[MT_ROLE_COUNT] = {
    "layer:parameters",  "layer:optimizer state", "layer:gradients",
    "layer:activations", "layer:temporaries",     "layer:workspace",
    "layer:inputs",      "layer:KV cache",        "layer:other"};

double mt_timeline_y(const struct mt_timeline_plan *plan, uint64_t bytes)
{
    double height = plan->top ? (double)bytes / (double)plan->top * plan->plot.height : 0;

    return plan->plot.y + plan->plot.height - round(fmin(height, plan->plot.height) * 2) / 2;
}

/* ---- columns ---- */

/* Bytes below the upper edge of the first `layers` layers. */
static uint64_t stacked(const struct mt_bin *bin, int layers)
{
    uint64_t sum = 0;
    int i;

    for (i = 0; i < layers; i++)
        sum += bin->role_bytes[mt_timeline_stack[i]];
    return sum;
}

/* The fullest of the bins whose middle lies in [from, to), all 0..1; the bin
 * around the middle if there is none. */
static struct mt_column summarize(const struct mt_timeline_plan *plan, double x, double from,
                                  double to)
{
    const struct mt_timeline *timeline = plan->axis.timeline;
    const struct mt_bin *bins = plan->axis.by_event ? timeline->event_bins : timeline->time_bins;
    double count = timeline->bin_count;
    double first = ceil(from * count - 0.5), end = ceil(to * count - 0.5);
    struct mt_column column = {x, NULL, 0, UINT64_MAX};
    uint32_t i;

    if (end <= first) {
        first = floor((from + to) / 2 * count);
        end = first + 1;
    }
    first = fmin(fmax(first, 0), count - 1);
    end = fmin(fmax(end, first + 1), count);
    for (i = (uint32_t)first; i < (uint32_t)end; i++) {
        if (!column.bin || bins[i].allocated > column.bin->allocated)
            column.bin = &bins[i];
        column.reserved = mt_max_u64(column.reserved, bins[i].reserved_max);
        column.lowest = mt_min_u64(column.lowest, bins[i].allocated_min);
    }
    return column;
}

/* Position 0..1 on the axis of where a span begins (end: of the next). */
static double span_position(const struct mt_timeline_plan *plan, uint32_t span)
{
    if (span >= mt_time_axis_spans(&plan->axis))
        return 1;
    if (span == 0)
        return 0;
    return mt_timeline_position(plan->axis.timeline, plan->axis.timeline->spans[span].begin_t_ns);
}

static void fill_columns(struct mt_timeline_plan *plan)
{
    uint32_t span, i;

    plan->column_count = 0;
    for (span = 0; span < mt_time_axis_spans(&plan->axis); span++) {
        double left = round(mt_time_axis_span_left(&plan->axis, span) * 2) / 2;
        double right = mt_time_axis_span_right(&plan->axis, span);
        double from = span_position(plan, span), to = span_position(plan, span + 1);
        uint32_t count = (uint32_t)fmax(1, round((right - left) / plan->column_width));

        for (i = 0; i < count; i++)
            plan->columns[plan->column_count++] =
                summarize(plan, left + i * plan->column_width, from + (to - from) * i / count,
                          from + (to - from) * (i + 1) / count);
    }
}

/* Corners that the outlines of all layers will have. */
static uint32_t count_changes(const struct mt_timeline_plan *plan)
{
    uint32_t changes = 0, i;
    int layer;

    for (i = 1; i < plan->column_count; i++) {
        const struct mt_column *a = &plan->columns[i - 1], *b = &plan->columns[i];

        if (a->bin == b->bin && a->reserved == b->reserved)
            continue;
        for (layer = 1; layer <= MT_ROLE_COUNT; layer++) {
            if (!b->bin->role_bytes[mt_timeline_stack[layer - 1]])
                continue;
            changes += mt_timeline_y(plan, stacked(a->bin, layer)) !=
                       mt_timeline_y(plan, stacked(b->bin, layer));
        }
        if (mt_timeline_y(plan, a->reserved) != mt_timeline_y(plan, b->reserved))
            changes += 2; /* the line and the area below it */
    }
    return changes;
}

/* In a third of the columns allocated moved by more than an eighth of the plot:
 * many steps share a column, and the fullest instant is not all there is. */
static bool hides_much(const struct mt_timeline_plan *plan)
{
    double much = plan->plot.height / 8;
    uint32_t count = 0, i;

    for (i = 0; i < plan->column_count; i++)
        count += mt_timeline_y(plan, plan->columns[i].lowest) -
                     mt_timeline_y(plan, plan->columns[i].bin->allocated) >
                 much;
    return count * 3 > plan->column_count;
}

void mt_timeline_make_columns(struct mt_drawing *drawing, struct mt_timeline_plan *plan)
{
    size_t most = (size_t)(plan->plot.width * 2) + 2 * mt_time_axis_spans(&plan->axis) + 2;

    plan->columns = mt_arena_array(&drawing->arena, most, sizeof *plan->columns);
    if (!plan->columns) {
        drawing->failed = true;
        return;
    }
    /* Device pixels of a picture at scale 2; wider only if the outlines would
     * make a large SVG. */
    for (plan->column_width = 0.5; plan->column_width < 8; plan->column_width *= 2) {
        fill_columns(plan);
        if (count_changes(plan) <= MANY_CHANGES)
            break;
    }
    plan->has_lowest = hides_much(plan);
}

/* ---- outlines ---- */

/* A stepped line through the columns, growing point by point. */
struct outline {
    struct mt_point *points;
    size_t count;
};

static void step_to(struct outline *outline, double x, double y)
{
    if (outline->count && outline->points[outline->count - 1].y == y)
        return;
    if (outline->count) {
        outline->points[outline->count] =
            (struct mt_point){x, outline->points[outline->count - 1].y};
        outline->count++;
    }
    outline->points[outline->count++] = (struct mt_point){x, y};
}

static void end_line(struct outline *outline, double x)
{
    outline->points[outline->count] = (struct mt_point){x, outline->points[outline->count - 1].y};
    outline->count++;
}

static double right_edge(const struct mt_timeline_plan *plan)
{
    return plan->plot.x + plan->plot.width;
}

/* Closes the line down to the base and draws it filled, unless it is flat. */
static void draw_area(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                      struct outline *outline, const struct mt_paint *paint, const char *title,
                      const char *role)
{
    double base = plan->plot.y + plan->plot.height;

    if (outline->count == 1 && outline->points[0].y == base)
        return;
    end_line(outline, right_edge(plan));
    outline->points[outline->count++] = (struct mt_point){right_edge(plan), base};
    outline->points[outline->count++] = (struct mt_point){plan->columns[0].x, base};
    mt_draw_path(drawing, outline->points, outline->count, true, true, paint, title, role);
}

static void draw_unused(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                        struct outline *outline)
{
    const struct mt_paint paint = {.fill = MT_COLOR_UNUSED, .hatched = true};
    uint32_t i;

    outline->count = 0;
    for (i = 0; i < plan->column_count; i++)
        step_to(outline, plan->columns[i].x, mt_timeline_y(plan, plan->columns[i].reserved));
    draw_area(drawing, plan, outline, &paint, "reserved by the allocator but not in use",
              "area:unused");
}

/* The layer's upper edge; where it is too thin to be seen, the base line: what
 * is below then shows itself. */
static void draw_layer(struct mt_drawing *drawing, const struct mt_timeline_plan *plan, int layer,
                       struct outline *outline)
{
    enum mt_role role = mt_timeline_stack[layer];
    struct mt_paint paint = {.fill = mt_role_color(role)};
    double base = plan->plot.y + plan->plot.height;
    char bytes[MT_UNITS_TEXT];
    const char *title;
    uint32_t i;

    outline->count = 0;
    for (i = 0; i < plan->column_count; i++) {
        double upper = mt_timeline_y(plan, stacked(plan->columns[i].bin, layer + 1));
        double lower = mt_timeline_y(plan, stacked(plan->columns[i].bin, layer));

        step_to(outline, plan->columns[i].x, upper < lower ? upper : base);
    }
    mt_format_bytes(bytes, plan->device->peak_role_bytes[role]);
    title = mt_arena_printf(&drawing->arena, "%s: %s at the peak", mt_role_title(role), bytes);
    draw_area(drawing, plan, outline, &paint, title, layer_names[role]);
}

static void draw_curve(struct mt_drawing *drawing, const struct mt_timeline_plan *plan,
                       struct outline *outline, bool lowest)
{
    const struct mt_paint reserved = {.stroke = MT_COLOR_RESERVED, .stroke_width = 1.6};
    const struct mt_paint white = {.stroke = MT_COLOR_ON_DARK};
    uint32_t i;

    outline->count = 0;
    for (i = 0; i < plan->column_count; i++) {
        const struct mt_column *column = &plan->columns[i];

        step_to(outline, column->x,
                mt_timeline_y(plan, lowest ? column->lowest : column->reserved));
    }
    end_line(outline, right_edge(plan));
    mt_draw_path(drawing, outline->points, outline->count, false, true, lowest ? &white : &reserved,
                 NULL, lowest ? "curve:lowest" : "curve:reserved");
}

void mt_timeline_draw_layers(struct mt_drawing *drawing, const struct mt_timeline_plan *plan)
{
    struct outline outline = {NULL, 0};
    int layer;

    if (!plan->column_count)
        return;
    outline.points =
        mt_arena_array(&drawing->arena, 2 * (size_t)plan->column_count + 4, sizeof *outline.points);
    if (!outline.points) {
        drawing->failed = true;
        return;
    }
    if (plan->device->reserved_peak.bytes)
        draw_unused(drawing, plan, &outline);
    for (layer = MT_ROLE_COUNT - 1; layer >= 0; layer--)
        draw_layer(drawing, plan, layer, &outline);
    if (plan->has_lowest)
        draw_curve(drawing, plan, &outline, true);
    if (plan->device->reserved_peak.bytes)
        draw_curve(drawing, plan, &outline, false);
}
