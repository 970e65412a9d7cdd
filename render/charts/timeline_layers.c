/* The filled part of the timeline. Each column shows a single instant, so the layers add up to
 * allocated memory. Layers are drawn from the top one down, each down to the base line, so there
 * are no seams between them. */
#include <math.h>
#include <string.h>

#include "layers_model.h"
#include "time_axis.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

/* The byte scale of the plot of a timeline. */

double mt_timeline_y(const struct mt_timeline_layout *layout, uint64_t bytes)
{
    double height = layout->top ? (double)bytes / (double)layout->top * layout->plot.height : 0;

    return layout->plot.y + layout->plot.height - round(fmin(height, layout->plot.height) * 2) / 2;
}

/* The line of reserved memory. If it falls and rises many times within a few pixels, its strokes
 * would fill the plot. In this case, the line follows the maxima, which stay exact, and the edge of
 * the hatched area below the line shows the falls. */

#define NARROW      4.0 /* pixels; a stroke covers narrower falls and rises */
#define MIN_FALLS   4   /* if there are fewer falls, they can be distinguished */
#define FALL_HEIGHT 8   /* falls of less than 1/8 of the plot cover little */

static bool is_deep(const struct mt_timeline_layout *layout, uint64_t top, uint64_t bottom)
{
    return mt_timeline_y(layout, bottom) - mt_timeline_y(layout, top) >
           layout->plot.height / FALL_HEIGHT;
}

/* Returns the column in which the line has recovered from a fall that begins at `first`. Returns
 * `first` if the line does not fall there, falls little, or stays low for more than `narrow`
 * columns. */
static uint32_t end_of_fall(const struct mt_timeline_layout *layout, uint32_t first,
                            uint32_t narrow)
{
    const struct mt_column *columns = layout->columns;
    const uint64_t before = first ? columns[first - 1].reserved : 0;
    uint64_t lowest = columns[first].reserved;

    if (lowest >= before)
        return first;
    for (uint32_t i = first + 1; i < layout->column_count && i - first <= narrow; i++) {
        if (is_deep(layout, mt_min_u64(before, columns[i].reserved), lowest))
            return i;
        lowest = mt_min_u64(lowest, columns[i].reserved);
    }
    return first;
}

/* Removes adjacent falls in columns [first, end) from the line. In each fall, raises the line to
 * the lower of the levels before and after it, so the line never exceeds the recorded maximum. */
static void raise(const struct mt_timeline_layout *layout, uint64_t *line, uint32_t first,
                  uint32_t end, uint32_t narrow)
{
    for (uint32_t i = first, back; i < end; i = (uint32_t)mt_max_u64(back, i + 1)) {
        back = end_of_fall(layout, i, narrow);
        for (uint32_t j = i; j < back; j++)
            line[j] = mt_max_u64(line[j], mt_min_u64(layout->columns[i - 1].reserved,
                                                     layout->columns[back].reserved));
    }
}

/* Sets line[i] to the reserved bytes that the reserved line shows in column i. Where the bytes drop
 * and recover many times within a few pixels, the line ignores the drops, because their strokes
 * would fill the plot. */
static void timeline_reserved_line(const struct mt_timeline_layout *layout, uint64_t *line)
{
    const uint32_t narrow = (uint32_t)(NARROW / layout->column_width);
    uint32_t first = 0, last = 0, falls = 0;

    for (uint32_t i = 0; i < layout->column_count; i++)
        line[i] = layout->columns[i].reserved;
    for (uint32_t i = 0, back; i < layout->column_count; i = (uint32_t)mt_max_u64(back, i + 1)) {
        back = end_of_fall(layout, i, narrow);
        if (back == i)
            continue;
        if (falls && i - last > narrow) {
            if (falls >= MIN_FALLS)
                raise(layout, line, first, last, narrow);
            falls = 0;
        }
        first = falls++ ? first : i;
        last = back;
    }
    if (falls >= MIN_FALLS)
        raise(layout, line, first, last, narrow);
}

#define MANY_CHANGES 5000 /* corners of all outlines; a corner takes about 9 bytes of SVG */

const enum mt_role mt_timeline_stack[] = {
    MT_ROLE_PARAMETERS,  MT_ROLE_OPTIMIZER_STATE, MT_ROLE_WORKSPACE, MT_ROLE_KV_CACHE,
    MT_ROLE_INPUTS,      MT_ROLE_OTHER,           MT_ROLE_GRADIENTS, MT_ROLE_WEIGHT_COPIES,
    MT_ROLE_ACTIVATIONS, MT_ROLE_TEMPORARIES};
_Static_assert(sizeof mt_timeline_stack / sizeof *mt_timeline_stack == MT_ROLE_COUNT,
               "one entry for each");

/* Tags for tests, by role. */
static const char *const role_tags[] = {
    "layer:parameters",  "layer:optimizer state", "layer:gradients", "layer:activations",
    "layer:temporaries", "layer:workspace",       "layer:inputs",    "layer:KV cache",
    "layer:other",       "layer:weight copies"};
_Static_assert(sizeof role_tags / sizeof *role_tags == MT_ROLE_COUNT, "one entry for each");

static const char *const tags[MT_MAX_LAYERS] = {"layer:0", "layer:1", "layer:2", "layer:3",
                                                "layer:4", "layer:5", "layer:6", "layer:7"};

uint64_t mt_timeline_layer_bytes(const struct mt_timeline_layout *layout, const struct mt_bin *bin,
                                 int layer)
{
    const struct mt_timeline *timeline = layout->device->timeline;
    const struct mt_layers *layers = timeline->layers;

    if (!layers)
        return bin->role_bytes[mt_timeline_stack[layer]];
    if (bin >= timeline->time_bins && bin < timeline->time_bins + timeline->bin_count)
        return layers
            ->time_bytes[(size_t)(bin - timeline->time_bins) * layers->count + (size_t)layer];
    return layers
        ->event_bytes[(size_t)(bin - timeline->event_bins) * layers->count + (size_t)layer];
}

static void make_roles(struct mt_timeline_layout *layout)
{
    layout->layer_count = MT_ROLE_COUNT;
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        layout->layers[i] =
            (struct mt_timeline_layer){mt_role_title(mt_timeline_stack[i]),
                                       role_tags[mt_timeline_stack[i]],
                                       {.fill = mt_role_color(mt_timeline_stack[i])},
                                       layout->device->peak_role_bytes[mt_timeline_stack[i]]};
}

/* Returns the color that the phase has in the row of phases below the plot. */
static enum mt_color phase_color(struct mt_timeline_layout *layout, const char *name,
                                 unsigned *greys, uint8_t *shade)
{
    const struct mt_report *report = layout->report;

    for (uint32_t i = 0; i < report->phase_count; i++) {
        if (!report->main_phase[i] || strcmp(report->phases[i].name, name) != 0)
            continue;
        const struct mt_axis_name *known = mt_time_axis_name(&layout->axis, name);
        return known ? known->color : mt_phase_color(name, 0);
    }
    *shade = (uint8_t)((*greys)++ % 4);
    return MT_COLOR_ROOT;
}

/* Sets the colors of layers. Adjacent layers of one role have different shades. */
static void paint_layers(struct mt_timeline_layout *layout, const struct mt_layers *layers)
{
    unsigned roles[MT_ROLE_COUNT] = {0}, greys = 0;

    for (uint32_t i = 0; i < layout->report->phase_count; i++)
        if (layout->report->main_phase[i]) /* colors in order of first use, as in the row */
            (void)mt_time_axis_name(&layout->axis, layout->report->phases[i].name);
    for (uint32_t i = 0; i < layers->count; i++) {
        const struct mt_layer *layer = &layers->layers[i];
        struct mt_paint *paint = &layout->layers[i].paint;
        bool is_rest = layers->other_groups && i + 1 == layers->count;

        if (is_rest || layers->by == MT_LAYERS_BY_ROLE || layers->by == MT_LAYERS_BY_SITE) {
            paint->fill = mt_role_color(layer->role);
            paint->shade = (uint8_t)(roles[layer->role]++ % 4);
        } else if (layers->by == MT_LAYERS_BY_PHASE) {
            paint->fill = phase_color(layout, layer->name, &greys, &paint->shade);
        } else {
            paint->fill = MT_COLOR_STREAM_0 + i % 7;
        }
    }
}

void mt_timeline_make_layers(struct mt_timeline_layout *layout)
{
    const struct mt_layers *layers = layout->device->timeline->layers;

    if (!layers) {
        make_roles(layout);
        return;
    }
    layout->layer_count = (int)layers->count;
    for (uint32_t i = 0; i < layers->count; i++) {
        layout->layers[i].name = layers->layers[i].name;
        layout->layers[i].tag = tags[i];
        layout->layers[i].peak_bytes = layers->layers[i].peak_bytes;
    }
    paint_layers(layout, layers);
}

const char *mt_timeline_layers_text(struct mt_drawing *drawing,
                                    const struct mt_timeline_layout *layout)
{
    static const char *const words[] = {
        [MT_LAYERS_BY_ROLE] = "layers: roles",
        [MT_LAYERS_BY_PHASE] = "layers: the phase in which blocks were allocated",
        [MT_LAYERS_BY_SITE] = "layers: call sites, in the color of their main role",
        [MT_LAYERS_BY_STREAM] = "layers: streams",
        [MT_LAYERS_BY_TAG] = "layers: the program's tags"};
    _Static_assert(sizeof words / sizeof *words == MT_LAYER_BY_COUNT, "one entry for each");
    const struct mt_layers *layers = layout->device->timeline->layers;

    if (!layers)
        return layout->report->roles_inferred ? "roles are inferred" : NULL;
    if (!layers->other_groups)
        return words[layers->by];
    return mt_arena_printf(&drawing->arena, "%s, %u more together", words[layers->by],
                           layers->other_groups);
}

/* Returns the sum of the first `layers` layers in bytes. */
static uint64_t stacked(const struct mt_timeline_layout *layout, const struct mt_bin *bin,
                        int layers)
{
    uint64_t sum = 0;

    for (int i = 0; i < layers; i++)
        sum += mt_timeline_layer_bytes(layout, bin, i);
    return sum;
}

/* Returns a column with the fullest bin whose middle is in [from, to), where 0..1 is the whole
 * axis. If there is none, takes the bin that contains the middle of the range. */
static struct mt_column summarize(const struct mt_timeline_layout *layout, double x, double from,
                                  double to)
{
    const struct mt_timeline *timeline = layout->axis.timeline;
    const struct mt_bin *bins = layout->axis.by_event ? timeline->event_bins : timeline->time_bins;
    double count = timeline->bin_count;
    double first = ceil(from * count - 0.5), end = ceil(to * count - 0.5);
    struct mt_column column = {x, NULL, 0, UINT64_MAX};

    if (end <= first) {
        first = floor((from + to) / 2 * count);
        end = first + 1;
    }
    first = fmin(fmax(first, 0), count - 1);
    end = fmin(fmax(end, first + 1), count);
    for (uint32_t i = (uint32_t)first; i < (uint32_t)end; i++) {
        if (!column.bin || bins[i].allocated > column.bin->allocated)
            column.bin = &bins[i];
        column.reserved = mt_max_u64(column.reserved, bins[i].reserved_max);
        column.lowest = mt_min_u64(column.lowest, bins[i].allocated_min);
    }
    return column;
}

/* Returns the position 0..1 on the axis at which a span starts. For the span after the last,
 * returns the end of the axis. */
static double span_position(const struct mt_timeline_layout *layout, uint32_t span)
{
    if (span >= mt_time_axis_spans(&layout->axis))
        return 1;
    if (span == 0)
        return 0;
    return mt_timeline_position(layout->axis.timeline,
                                layout->axis.timeline->spans[span].begin_t_ns);
}

static void fill_columns(struct mt_timeline_layout *layout)
{
    layout->column_count = 0;
    for (uint32_t span = 0; span < mt_time_axis_spans(&layout->axis); span++) {
        double left = round(mt_time_axis_span_left(&layout->axis, span) * 2) / 2;
        double right = mt_time_axis_span_right(&layout->axis, span);
        double from = span_position(layout, span), to = span_position(layout, span + 1);
        uint32_t count = (uint32_t)fmax(1, round((right - left) / layout->column_width));

        for (uint32_t i = 0; i < count; i++)
            layout->columns[layout->column_count++] =
                summarize(layout, left + i * layout->column_width, from + (to - from) * i / count,
                          from + (to - from) * (i + 1) / count);
    }
}

/* Returns the number of corners that the outlines of all layers will have. */
static uint32_t count_changes(const struct mt_timeline_layout *layout)
{
    uint32_t changes = 0;

    for (uint32_t i = 1; i < layout->column_count; i++) {
        const struct mt_column *a = &layout->columns[i - 1], *b = &layout->columns[i];

        if (a->bin == b->bin && a->reserved == b->reserved)
            continue;
        for (int layer = 1; layer <= layout->layer_count; layer++) {
            if (!mt_timeline_layer_bytes(layout, b->bin, layer - 1))
                continue;
            changes += mt_timeline_y(layout, stacked(layout, a->bin, layer)) !=
                       mt_timeline_y(layout, stacked(layout, b->bin, layer));
        }
        if (mt_timeline_y(layout, a->reserved) != mt_timeline_y(layout, b->reserved))
            changes += 2; /* one for the line, and one for the area below it */
    }
    return changes;
}

/* Returns true if in a third of the columns, allocated memory varies by more than an eighth of the
 * plot within the column. Then many steps share a column, and its fullest instant hides the
 * others. */
static bool hides_much(const struct mt_timeline_layout *layout)
{
    double much = layout->plot.height / 8;
    uint32_t count = 0;

    for (uint32_t i = 0; i < layout->column_count; i++)
        count += mt_timeline_y(layout, layout->columns[i].lowest) -
                     mt_timeline_y(layout, layout->columns[i].bin->allocated) >
                 much;
    return count * 3 > layout->column_count;
}

void mt_timeline_make_columns(struct mt_drawing *drawing, struct mt_timeline_layout *layout)
{
    size_t most = (size_t)(layout->plot.width * 2) + 2 * mt_time_axis_spans(&layout->axis) + 2;

    layout->columns = mt_arena_array(&drawing->arena, most, sizeof *layout->columns);
    /* Begins with columns of a device pixel at scale 2, and widens them while the outlines would
     * make the SVG large. */
    for (layout->column_width = 0.5; layout->column_width < 8; layout->column_width *= 2) {
        fill_columns(layout);
        if (count_changes(layout) <= MANY_CHANGES)
            break;
    }
    layout->has_lowest = hides_much(layout);
}

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

/* Closes the line at the base and draws it filled, unless it is flat. */
static void draw_area(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                      struct outline *outline, const struct mt_paint *paint, const char *title,
                      const char *role)
{
    double base = layout->plot.y + layout->plot.height;

    if (outline->count == 1 && outline->points[0].y == base)
        return;
    end_line(outline, mt_timeline_right(layout));
    outline->points[outline->count++] = (struct mt_point){mt_timeline_right(layout), base};
    outline->points[outline->count++] = (struct mt_point){layout->columns[0].x, base};
    mt_draw_path(drawing, outline->points, outline->count, true, true, paint, title, role);
}

static void draw_unused(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                        struct outline *outline)
{
    const struct mt_paint paint = {.fill = MT_COLOR_UNUSED, .hatched = true};

    outline->count = 0;
    for (uint32_t i = 0; i < layout->column_count; i++)
        step_to(outline, layout->columns[i].x, mt_timeline_y(layout, layout->columns[i].reserved));
    draw_area(drawing, layout, outline, &paint, "reserved by the allocator but not in use",
              "area:unused");
}

/* Draws a layer up to its upper edge. Where the layer is too thin to be visible, its line follows
 * the base line, so that the layers below remain visible. */
static void draw_layer(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                       int layer, struct outline *outline)
{
    const struct mt_timeline_layer *of = &layout->layers[layer];
    double base = layout->plot.y + layout->plot.height;
    char bytes[MT_UNITS_TEXT];

    outline->count = 0;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        double upper = mt_timeline_y(layout, stacked(layout, layout->columns[i].bin, layer + 1));
        double lower = mt_timeline_y(layout, stacked(layout, layout->columns[i].bin, layer));

        step_to(outline, layout->columns[i].x, upper < lower ? upper : base);
    }
    mt_format_bytes(bytes, of->peak_bytes);
    const char *title = mt_arena_printf(&drawing->arena, "%s: %s at the peak", of->name, bytes);
    draw_area(drawing, layout, outline, &of->paint, title, of->tag);
}

/* Draws a line along the columns. `bytes` has a value for each column. */
static void draw_curve(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                       struct outline *outline, const uint64_t *bytes, const struct mt_paint *paint,
                       const char *role)
{
    outline->count = 0;
    for (uint32_t i = 0; i < layout->column_count; i++)
        step_to(outline, layout->columns[i].x, mt_timeline_y(layout, bytes[i]));
    end_line(outline, mt_timeline_right(layout));
    mt_draw_path(drawing, outline->points, outline->count, false, true, paint, NULL, role);
}

static void draw_curves(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                        struct outline *outline)
{
    const struct mt_paint reserved = {.stroke = MT_COLOR_RESERVED, .stroke_width = 1.6};
    const struct mt_paint white = {.stroke = MT_COLOR_ON_DARK};
    uint64_t *bytes = mt_arena_array(&drawing->arena, layout->column_count, sizeof *bytes);

    for (uint32_t i = 0; i < layout->column_count; i++)
        bytes[i] = layout->columns[i].lowest;
    if (layout->has_lowest)
        draw_curve(drawing, layout, outline, bytes, &white, "curve:lowest");
    timeline_reserved_line(layout, bytes);
    if (layout->device->reserved_peak.bytes)
        draw_curve(drawing, layout, outline, bytes, &reserved, "curve:reserved");
}

void mt_timeline_draw_layers(struct mt_drawing *drawing, const struct mt_timeline_layout *layout)
{
    struct outline outline = {NULL, 0};

    if (!layout->column_count)
        return;
    outline.points = mt_arena_array(&drawing->arena, 2 * (size_t)layout->column_count + 4,
                                    sizeof *outline.points);
    if (layout->device->reserved_peak.bytes)
        draw_unused(drawing, layout, &outline);
    for (int layer = layout->layer_count - 1; layer >= 0; layer--)
        draw_layer(drawing, layout, layer, &outline);
    draw_curves(drawing, layout, &outline);
}
