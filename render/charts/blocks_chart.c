/* Draws every large block of a part of a run as a separate shape. */
#include <math.h>

#include "blocks.h"
#include "flamechart_layout.h"
#include "report_query.h"
#include "theme.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

/* The area next to the blocks: the largest groups at the peak, and the peak event by event if it is
 * too narrow in the plot. */

#define GROUPS    5
#define GROUP_ROW 33.0
#define HEAD      30.0
#define MAX_INSET 290.0

static uint32_t group_count(const struct mt_blocks *blocks)
{
    return blocks->group_count < GROUPS ? blocks->group_count : GROUPS;
}

static double blocks_groups_height(const struct mt_blocks *blocks)
{
    return HEAD + GROUP_ROW * group_count(blocks) + 20;
}

static void draw_group(const struct mt_blocks_side *side, const struct mt_block_group *group,
                       double y, double width)
{
    const struct mt_paint dot = {.fill = mt_role_color(group->role)};
    struct mt_drawing *drawing = side->drawing;
    char bytes[MT_UNITS_TEXT], each[MT_UNITS_TEXT], count[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];
    const char *head = group->head ? group->head : "", *note, *title;
    double value;

    title = mt_arena_printf(&drawing->arena, "%s: %s × %s = %s B",
                            mt_chart_frame_short(drawing, group->site ? group->site : "", 160),
                            mt_format_count(count, group->blocks),
                            mt_format_bytes(each, group->block_bytes),
                            mt_format_count(exact, group->bytes));
    mt_draw_circle(drawing, side->x + 5, y - 4.5, 4, &dot, title, "swatch");
    mt_chart_frame_text(drawing, side->x + 16, y,
                        mt_chart_frame_fit_site(drawing, mt_chart_frame_short(drawing, head, 200),
                                                MT_SIZE_AXIS, width - 18),
                        MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "group");
    value = mt_chart_frame_text(drawing, side->x + width, y + 15.5,
                                mt_format_bytes(bytes, group->bytes), MT_SIZE_AXIS, MT_SEMIBOLD,
                                MT_COLOR_TEXT, MT_ANCHOR_END, "group-value");
    note = mt_arena_printf(&drawing->arena, "%s × %s, %s", count, each, mt_role_name(group->role));
    mt_chart_frame_text(
        drawing, side->x + 16, y + 15.5,
        mt_text_fit(drawing, note, MT_SIZE_SMALL, MT_REGULAR, width - 26 - 1.05 * value, false),
        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "group-note");
}

/* Draws the groups. Returns the y below them. */
static double draw_groups(const struct mt_blocks_side *side, double y, double width)
{
    const struct mt_blocks *blocks = side->blocks;
    char more[MT_UNITS_TEXT];

    mt_chart_frame_text(side->drawing, side->x, y + 10, "Largest groups at the peak", 14,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    y += HEAD;
    for (uint32_t i = 0; i < group_count(blocks); i++, y += GROUP_ROW)
        draw_group(side, &blocks->groups[i], y + 4, width);
    if (blocks->groups_in_all <= group_count(blocks))
        return y;
    const char *rest =
        mt_arena_printf(&side->drawing->arena, "and %s more",
                        mt_format_count(more, blocks->groups_in_all - group_count(blocks)));
    mt_chart_frame_text(side->drawing, side->x + 16, y + 4, rest, MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_FAINT, MT_ANCHOR_START, "group-note");
    return y + 16;
}

static void draw_ring(const struct mt_block_stack *stack, const struct mt_blocks *blocks)
{
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.6};
    double x = mt_time_axis_x(&stack->axis, blocks->peak_t_ns, blocks->peak_event);

    mt_draw_circle(stack->drawing, x + 0.5 * stack->plot.width / (double)(2 * MT_BLOCKS_AROUND + 1),
                   mt_block_stack_y(stack, blocks->peak_allocated), 3.6, &ring, NULL, "ring:inset");
}

static void draw_inset(const struct mt_blocks_side *side, double x, double y, double width,
                       double height)
{
    const struct mt_block_set *set = &side->blocks->around;
    const struct mt_paint frame = {.stroke = MT_COLOR_GRID};
    struct mt_timeline events = {.first_event = set->begin_event, .last_event = set->end_event};
    struct mt_block_stack stack = {.drawing = side->drawing,
                                   .keyed = side->keyed,
                                   .report = side->report,
                                   .set = set,
                                   .plot = {x, y + 20, width, height - 20 - 22},
                                   .most_corners = 3000};
    char span[MT_UNITS_TEXT], count[MT_UNITS_TEXT];

    mt_time_axis_init(&stack.axis, side->report, &events, true);
    stack.axis.left = x;
    stack.axis.width = width;
    stack.top = side->blocks->peak_allocated + side->blocks->peak_allocated / 12 + 1;
    mt_chart_frame_text(side->drawing, x, y + 10, "The peak, event by event", 14, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    mt_block_stack_build(&stack);
    mt_block_stack_draw(&stack);
    mt_block_stack_outline(&stack);
    mt_draw_rect(side->drawing, x, stack.plot.y, width, stack.plot.height, &frame, NULL, "inset");
    draw_ring(&stack, side->blocks);
    mt_format_counted(count, set->end_event - set->begin_event + 1, "event");
    const char *note =
        mt_report_has_times(side->report)
            ? mt_arena_printf(&side->drawing->arena, "%s in %s", count,
                              mt_format_duration(span, set->bins[set->bin_count - 1].last_t_ns -
                                                           set->bins[0].t_ns))
            : mt_arena_printf(&side->drawing->arena, "%s", count);
    mt_chart_frame_text(side->drawing, x, stack.plot.y + stack.plot.height + 16,
                        mt_text_fit(side->drawing, note, MT_SIZE_SMALL, MT_REGULAR, width, false),
                        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "inset-note");
}

static void draw_side(const struct mt_blocks_side *side)
{
    double y = side->y, width = side->beside ? (side->width - 36) / 2 : side->width;

    if (group_count(side->blocks) && y + blocks_groups_height(side->blocks) <= side->bottom + 20)
        y = draw_groups(side, y, width);
    if (!side->has_inset)
        return;
    if (side->beside)
        draw_inset(side, side->x + width + 36, side->y, width, MT_BLOCKS_INSET_HEIGHT);
    else if (y + 14 + MT_BLOCKS_INSET_HEIGHT <= side->bottom)
        draw_inset(side, side->x, y + 14, width, fmin(side->bottom - y - 14, MAX_INSET));
}

#define SIDE_WIDTH       258.0
#define STANDARD_HEIGHT  700.0
#define MIN_PLOT         120.0
#define ONE_LINE         1150.0 /* in wider pictures, the facts fit on one line */
#define SPIKE            7.0    /* pixels; a narrower peak gets an inset */
#define MAX_CORNERS      14000
#define LEAST_SEEN       4.0 /* square pixels; the color of smaller shapes is not visible */
#define MIN_LABEL_HEIGHT 14.0
#define MIN_FLAME_ROWS   3
#define MAX_FLAME_ROWS   14    /* unless the user set a height */
#define OVER_FLAME       280.0 /* pixels; the least height of a plot with calls below it */
#define LABEL_SLACK      1.06  /* other fonts may be wider than the built-in one */

struct layout {
    struct mt_drawing *drawing;
    const struct mt_report *report; /* cut to the window; times are relative to its start */
    const struct mt_device_report *device;
    const struct mt_blocks *blocks;
    struct mt_block_stack stack;
    struct mt_blocks_side side;
    struct mt_ticks ticks;
    struct mt_flame_layout flame; /* the calls below the plot, on its axis */
    bool has_flame;
    bool has_side, has_rows, has_tail; /* has_tail: there are names of phases and small print */
};

static const struct mt_block_set *set_of(const struct mt_blocks *blocks, bool by_event)
{
    return by_event ? &blocks->event : &blocks->time;
}

/* Makes a copy of the report that is cut to the window. */
static void cut_report(const struct layout *layout, const struct mt_report *report,
                       struct mt_report *out)
{
    const struct mt_block_set *set = &layout->blocks->time;
    struct mt_arena *arena = &layout->drawing->arena;
    bool *main_phase = mt_arena_array(arena, (size_t)report->phase_count + 1, sizeof *main_phase);

    *out = *report;
    for (uint32_t i = 0; i < report->phase_count; i++)
        main_phase[i] = report->main_phase[i] && report->phases[i].end_event > set->begin_event &&
                        report->phases[i].begin_event < set->end_event;
    out->main_phase = main_phase;
    if (layout->blocks->phase != MT_NO_PHASE)
        out->first_t_ns = set->begin_t_ns;
}

static bool is_whole(const struct mt_blocks *blocks)
{
    return blocks->phase == MT_NO_PHASE;
}

/* Returns "step " for the peak of a step, otherwise "". */
static const char *kind_of_peak(const struct layout *layout)
{
    int32_t phase = layout->blocks->phase;

    return phase >= 0 && (uint32_t)phase < layout->report->phase_count &&
                   layout->report->phases[phase].is_step
               ? "step "
               : "";
}

static const char *chart_name(struct mt_drawing *drawing, const struct mt_report *report,
                              const struct mt_blocks *blocks)
{
    const char *where = blocks && !is_whole(blocks)
                            ? mt_chart_frame_where(drawing, report, blocks->phase, blocks->step)
                            : "";
    return mt_arena_printf(&drawing->arena, "every large block%s%s", *where ? " of " : "", where);
}

static const char *facts_of(const struct layout *layout)
{
    const struct mt_block_stack *stack = &layout->stack;
    char drawn[MT_UNITS_TEXT], count[MT_UNITS_TEXT], most[MT_UNITS_TEXT], peak[MT_UNITS_TEXT];
    char exact[MT_UNITS_TEXT];
    const char *rest = "";

    if (stack->rest_count)
        rest = mt_arena_printf(
            &layout->drawing->arena, " · %s smaller ones (by bytes × %s) summed, at most %s",
            mt_format_count(count, stack->rest_count), stack->axis.by_event ? "events" : "time",
            mt_format_bytes(most, stack->rest_most));
    return mt_arena_printf(&layout->drawing->arena, "%s drawn one by one%s · %speak %s (%s B)",
                           mt_format_counted(drawn, stack->band_count, "block"), rest,
                           kind_of_peak(layout),
                           mt_format_bytes(peak, layout->blocks->peak_allocated),
                           mt_format_count(exact, layout->blocks->peak_allocated));
}

static const char *small_print(const struct layout *layout)
{
    const struct mt_block_stack *stack = &layout->stack;
    char thin[MT_UNITS_TEXT], rows[MT_UNITS_TEXT];

    return mt_arena_printf(
        &layout->drawing->arena,
        "each column shows its fullest instant · a block slides down when one below it is freed%s "
        "· color = role, shade = block%s%s%s%s",
        layout->report->roles_inferred ? " · roles are inferred" : "",
        stack->rest_roles ? ", fainter on top = small blocks" : "",
        stack->thin
            ? mt_arena_printf(&layout->drawing->arena, " · %s more are smaller than half a pixel",
                              mt_format_count(thin, stack->thin))
            : "",
        stack->column_width > 0.5 ? " · columns are wider than a pixel: too many corners" : "",
        layout->has_flame && layout->flame.rows_cut
            ? mt_arena_printf(&layout->drawing->arena, " · %s %s further in not drawn",
                              mt_format_count(rows, layout->flame.rows_cut),
                              layout->flame.rows_cut == 1 ? "row" : "rows")
            : "");
}

static double rows_height(const struct layout *layout)
{
    bool steps = is_whole(layout->blocks) && layout->device->step_count;

    return mt_time_axis_height(&layout->stack.axis, steps);
}

/* Leaves room for the labels of the byte axis left of the plot. */
static void place_axes(struct layout *layout)
{
    struct mt_block_stack *stack = &layout->stack;
    uint64_t largest = layout->blocks->peak_allocated;

    stack->top = (uint64_t)fmin((double)largest * 1.1, 1.8e19);
    stack->top = mt_max_u64(stack->top, 1);
    mt_byte_ticks(&layout->ticks, largest, largest ? stack->top : 0,
                  (size_t)fmin(fmax(stack->plot.height / 36, 2), 7));
    stack->plot.x = mt_chart_frame_plot_x(&layout->ticks, "");
    stack->plot.width -= stack->plot.x;
    stack->axis.left = stack->plot.x;
    stack->axis.width = stack->plot.width;
}

/* Returns true if the flame chart has the calls of the same step or phase. The calls of a whole run
 * are too many to see any. */
static bool has_calls(const struct layout *layout)
{
    const struct mt_flamechart *chart = layout->device->flamechart;

    return chart && chart->events && !is_whole(layout->blocks) &&
           chart->step == layout->blocks->step &&
           chart->begin_event == layout->blocks->time.begin_event &&
           chart->end_event == layout->blocks->time.end_event;
}

static double flame_height(const struct layout *layout)
{
    return 6 + MT_FLAME_PITCH * layout->flame.row_count;
}

static void lay_out_flame(struct layout *layout, const struct mt_report *report, uint32_t most)
{
    layout->has_flame = has_calls(layout);
    if (!layout->has_flame)
        return;
    layout->flame = (struct mt_flame_layout){.drawing = layout->drawing,
                                             .report = report,
                                             .device = layout->device,
                                             .chart = layout->device->flamechart,
                                             .zero_t_ns = layout->device->flamechart->begin_t_ns};
    mt_flame_layout_rows(&layout->flame);
    if (layout->flame.row_count > most) {
        layout->flame.rows_cut = layout->flame.row_count - most;
        layout->flame.row_count = most;
    }
}

/* Takes room for calls from the plot. Omits the innermost rows, or all, if there is too little. */
static void place_flame(struct layout *layout)
{
    struct mt_flame_layout *flame = &layout->flame;

    while (flame->row_count && layout->stack.plot.height - flame_height(layout) < OVER_FLAME) {
        flame->row_count--;
        flame->rows_cut++;
    }
    layout->has_flame = flame->row_count >= MIN_FLAME_ROWS;
    if (layout->has_flame) /* with its key, instead of the row of phases and their legend */
        layout->stack.plot.height -= flame_height(layout) - 10;
}

/* Places everything between `y` and the bottom edge. */
static void place_plot(struct layout *layout, double y)
{
    struct mt_drawing *drawing = layout->drawing;
    bool narrow = drawing->width < MT_NARROW_WIDTH;
    double bottom = drawing->height - 10, below = rows_height(layout);
    double side = fmax(blocks_groups_height(layout->blocks), MT_BLOCKS_INSET_HEIGHT) + 14;

    layout->has_tail = bottom - y - below - 26 - 34 >= MIN_PLOT;
    if (layout->has_tail)
        bottom -= 36;
    layout->side = (struct mt_blocks_side){.drawing = drawing,
                                           .report = layout->report,
                                           .blocks = layout->blocks,
                                           .keyed = layout->stack.keyed,
                                           .x = drawing->width - MT_MARGIN - SIDE_WIDTH,
                                           .y = y,
                                           .width = SIDE_WIDTH,
                                           .bottom = bottom};
    layout->stack.plot = (struct mt_box){0, y, layout->side.x - 26, 0};
    layout->has_side = true;
    if (narrow) {
        layout->stack.plot.width = drawing->width - MT_MARGIN - 8;
        layout->has_side = bottom - y - below - (layout->has_tail ? 26 : 0) - side >= MIN_PLOT;
        layout->side.x = MT_MARGIN;
        layout->side.width = drawing->width - 2 * MT_MARGIN;
        layout->side.beside = true;
        if (layout->has_side) {
            bottom -= side;
            layout->side.y = bottom + 14;
        }
    }
    layout->stack.plot.height = bottom - y - below - (layout->has_tail ? 26 : 0);
    if (layout->has_flame)
        place_flame(layout);
}

/* Draws the swatches in one row, or in two rows if they do not fit into one and there is room. */
static void draw_swatches(struct mt_drawing *drawing, double y, const struct mt_swatch *swatches,
                          size_t count)
{
    double right = drawing->width - MT_MARGIN;
    size_t fit = mt_chart_frame_swatches_fit(swatches, count, right - MT_MARGIN);

    if (drawing->width >= ONE_LINE)
        fit = count;
    mt_chart_frame_swatches(drawing, MT_MARGIN, y, right, swatches, fit);
    if (fit < count)
        mt_chart_frame_swatches(drawing, MT_MARGIN, y + 20, right, swatches + fit, count - fit);
}

/* Sets present[role] for roles that are visible in the plot or in the inset. */
static void note_roles(const struct layout *layout, bool present[MT_ROLE_COUNT])
{
    const struct mt_block_set *around = &layout->blocks->around;

    for (uint32_t i = 0; i < layout->stack.band_count; i++) {
        const struct mt_block_band *band = &layout->stack.bands[i];

        present[band->shape->life.role] |= band->flat.width * band->flat.height >= LEAST_SEEN;
    }
    for (uint32_t i = 0; i < layout->stack.rest_roles; i++)
        present[layout->stack.rests[i].role] = true;
    for (uint32_t i = 0; i < around->block_count && layout->side.has_inset; i++)
        present[around->blocks[i].life.role] = true;
}

static void draw_legend(const struct layout *layout, double y)
{
    struct mt_swatch swatches[MT_ROLE_COUNT + 1];
    bool present[MT_ROLE_COUNT] = {false};
    size_t count = 0;

    note_roles(layout, present);
    if (layout->stack.grey_most)
        swatches[count++] = (struct mt_swatch){
            layout->stack.rest_roles ? "small blocks of other roles" : "small blocks, summed",
            MT_COLOR_UNUSED};
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        if (present[mt_timeline_stack[i]])
            swatches[count++] = (struct mt_swatch){mt_role_title(mt_timeline_stack[i]),
                                                   mt_role_color(mt_timeline_stack[i])};
    draw_swatches(layout->drawing, y + 12, swatches, count);
}

static void draw_peak(const struct layout *layout)
{
    const struct mt_block_stack *stack = &layout->stack;
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.8};
    struct mt_text_style style = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_TEXT, .halo = true};
    double x =
        fmin(mt_time_axis_x(&stack->axis, layout->blocks->peak_t_ns, layout->blocks->peak_event),
             stack->plot.x + stack->plot.width);
    double y = mt_block_stack_y(stack, layout->blocks->peak_allocated), width;
    char size[MT_UNITS_TEXT];
    const char *label = mt_arena_printf(&layout->drawing->arena, "%speak %s", kind_of_peak(layout),
                                        mt_format_bytes(size, layout->blocks->peak_allocated));

    mt_zoom_begin_point(layout->drawing, "point", x, y);
    mt_draw_circle(layout->drawing, x, y, 4.4, &ring, label, "ring:peak");
    width = 1.06 * mt_text_width(label, style.size, style.weight) + 10;
    style.anchor = x + width > stack->plot.x + stack->plot.width ? MT_ANCHOR_END : MT_ANCHOR_START;
    /* above all other spikes, with its halo */
    mt_draw_text(layout->drawing, style.anchor == MT_ANCHOR_END ? x - 9 : x + 9, y - 8, label,
                 &style, "label:peak");
    mt_draw_group_end(layout->drawing);
}

/* Draws the scale of the colors of calls, beside the name of the axis. */
static void draw_flame_key(const struct layout *layout, double y)
{
    const struct mt_box *plot = &layout->stack.plot;
    double x = plot->x + plot->width - MT_FLAME_KEY;

    const struct mt_time_axis *axis = &layout->stack.axis;
    const char *words =
        mt_arena_printf(&layout->drawing->arena, "net change during a call%s%s",
                        axis->by_event ? "event number" : axis->name, axis->rest ? axis->rest : "");

    mt_flame_draw_key(&layout->flame, x, y);
    if (plot->x + mt_text_room(words, 12.5, MT_REGULAR) + 40 >
        x) /* the name of the axis is there */
        return;
    mt_chart_frame_text(layout->drawing, x - 10, y + 10, "net change during a call", MT_SIZE_SMALL,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "key-name");
}

/* Draws the step, its phases and their calls. Returns the y below them. */
static double draw_flame(struct layout *layout, double y)
{
    struct mt_flame_layout *flame = &layout->flame;

    flame->axis = layout->stack.axis;
    flame->plot = layout->stack.plot;
    flame->rows_top = y;
    mt_flame_layout_cells(flame);
    mt_zoom_begin(
        layout->drawing, "x",
        &(struct mt_box){flame->plot.x, y, flame->plot.width, MT_FLAME_PITCH * flame->row_count});
    mt_flame_draw_rows(flame);
    mt_draw_group_end(layout->drawing);
    mt_flame_draw_row_names(flame);
    return y + MT_FLAME_PITCH * flame->row_count;
}

static void draw_rows(struct layout *layout)
{
    const struct mt_box *plot = &layout->stack.plot;
    struct mt_time_axis axis = layout->stack.axis;
    double y = plot->y + plot->height + 6;

    if (layout->has_flame)
        y = draw_flame(layout, y);
    mt_zoom_begin(layout->drawing, "x", &(struct mt_box){plot->x, y, plot->width, 36});
    if (is_whole(layout->blocks) && layout->device->step_count) {
        mt_time_axis_draw_steps(layout->drawing, &axis, layout->device, y);
        y += 18;
    }
    if (axis.row_count && !layout->has_flame) {
        mt_time_axis_draw_phases(layout->drawing, &axis, y);
        y += 18;
    }
    mt_draw_group_end(layout->drawing);
    mt_zoom_begin_ticks(layout->drawing, &axis, y + 2);
    mt_time_axis_draw_ticks(layout->drawing, &axis, y + 2);
    mt_draw_group_end(layout->drawing);
    if (layout->has_tail)
        mt_time_axis_draw_legend(layout->drawing, &axis, y + 44, plot->x + plot->width);
    if (layout->has_tail && layout->has_flame)
        draw_flame_key(layout, y + 34);
}

/* Returns true if the peak is too narrow to show details. Measures the width at nine tenths of the
 * height of the peak above its surroundings. */
static bool is_spike(const struct mt_block_stack *stack, const struct mt_blocks *blocks)
{
    double near = (double)blocks->peak_allocated * 0.97;
    uint32_t columns = 0;

    for (uint32_t i = 0; i < stack->column_count; i++)
        columns += (double)stack->columns[i].allocated >= near;
    return columns * stack->column_width < SPIKE;
}

/* Returns the widest part of a box that no fold of the axis covers. */
static struct mt_box between_folds(const struct mt_time_axis *axis, const struct mt_box *box)
{
    struct mt_box widest = {.y = box->y, .height = box->height};

    for (uint32_t i = 0; i < mt_time_axis_spans(axis); i++) {
        double left = fmax(box->x, mt_time_axis_span_left(axis, i));
        double right = fmin(box->x + box->width, mt_time_axis_span_right(axis, i));

        if (right - left > widest.width) {
            widest.x = left;
            widest.width = right - left;
        }
    }
    return widest;
}

/* Draws the size and the site in a band if both fit, otherwise the size if that fits. */
static void write_label(const struct mt_block_stack *stack, const struct mt_block_band *band)
{
    struct mt_drawing *drawing = stack->drawing;
    const struct mt_box flat = between_folds(&stack->axis, &band->flat);
    enum mt_color ink =
        mt_theme_text_on_shade(mt_role_color(band->shape->life.role), mt_block_shade(band->shape));
    const char *site =
        mt_chart_frame_short(drawing, band->shape->head ? band->shape->head : "", 80);
    double room = flat.width - 12, y = flat.y + flat.height / 2 + 4.2, size, whole;
    char bytes[MT_UNITS_TEXT];

    mt_format_bytes(bytes, band->shape->life.block_bytes);
    size = LABEL_SLACK * mt_text_width(bytes, MT_SIZE_CELL, MT_SEMIBOLD);
    whole = size + 8 + LABEL_SLACK * mt_text_width(site, MT_SIZE_CELL, MT_REGULAR);
    if (flat.height < MIN_LABEL_HEIGHT || size > room)
        return;
    mt_chart_frame_text(drawing, flat.x + 6, y, bytes, MT_SIZE_CELL, MT_SEMIBOLD, ink,
                        MT_ANCHOR_START, "block-label");
    if (*site && whole <= room)
        mt_chart_frame_text(drawing, flat.x + 14 + size, y, site, MT_SIZE_CELL, MT_REGULAR, ink,
                            MT_ANCHOR_START, "block-label");
}

static void draw_labels(const struct mt_block_stack *stack)
{
    for (uint32_t i = 0; i < stack->band_count; i++)
        write_label(stack, &stack->bands[i]);
}

static void draw_plot(struct layout *layout)
{
    struct mt_block_stack *stack = &layout->stack;
    const struct mt_paint base = {.stroke = MT_COLOR_AXIS};
    const struct mt_box *plot = &stack->plot;

    mt_zoom_begin_bytes(layout->drawing, stack->top);
    mt_chart_frame_byte_axis(layout->drawing, plot, &layout->ticks, stack->top);
    mt_draw_group_end(layout->drawing);
    mt_zoom_begin(layout->drawing, "xy", plot);
    mt_block_stack_draw(stack);
    mt_block_stack_outline(stack);
    mt_draw_group_end(layout->drawing);
    mt_draw_line(layout->drawing, plot->x, plot->y + plot->height, plot->x + plot->width,
                 plot->y + plot->height, &base);
    mt_zoom_begin(layout->drawing, "xy", plot);
    draw_labels(stack);
    mt_time_axis_draw_folds(layout->drawing, &stack->axis, plot->y, plot->height);
    mt_draw_group_end(layout->drawing);
    draw_peak(layout);
}

static void draw_picture(struct layout *layout, const struct mt_report *report, const char *title,
                         const struct mt_chart_options *options)
{
    const struct mt_block_set *set = set_of(layout->blocks, options->event_axis);
    const struct mt_axis_window window = {set->begin_t_ns, set->end_t_ns, set->begin_event,
                                          set->end_event, is_whole(layout->blocks)};
    struct mt_report cut;
    struct mt_timeline timeline;

    cut_report(layout, report, &cut);
    mt_time_axis_window(layout->drawing, layout->device, &window, &timeline);
    layout->report = &cut;
    lay_out_flame(layout, report, options->height > 0 ? UINT32_MAX : MAX_FLAME_ROWS);
    if (options->height <= 0)
        layout->drawing->height += MT_FLAME_PITCH * layout->flame.row_count;
    layout->stack = (struct mt_block_stack){.keyed = options->keyed,
                                            .drawing = layout->drawing,
                                            .report = &cut,
                                            .set = set,
                                            .most_corners = MAX_CORNERS};
    mt_time_axis_init(&layout->stack.axis, &cut, &timeline, options->event_axis);
    if (window.end_event == mt_device_shown_end(layout->device).event)
        layout->stack.axis.rest =
            mt_chart_frame_teardown(layout->drawing, layout->report, layout->device);
    layout->stack.axis.name = window.is_whole         ? NULL
                              : *kind_of_peak(layout) ? "time since the step began"
                                                      : "time since the phase began";
    /* Reserves room for the facts, which are drawn later: they depend on the stack, and the stack
     * on the plot. */
    double y = layout->drawing->width < ONE_LINE ? 97 : 78;
    place_plot(layout, y + 18 + (layout->drawing->width < ONE_LINE ? 38 : 18));
    place_axes(layout);
    mt_block_stack_build(&layout->stack);
    mt_chart_frame_header(layout->drawing, title, facts_of(layout));
    layout->side.has_inset = layout->has_side && is_spike(&layout->stack, layout->blocks);
    draw_legend(layout, y);
    draw_plot(layout);
    draw_rows(layout);
    if (layout->has_side)
        draw_side(&layout->side);
    if (layout->has_tail)
        mt_chart_frame_footnote(layout->drawing, small_print(layout));
}

static bool has_steps(const struct mt_report *report, const struct mt_device_report *device)
{
    (void)report;
    return device && device->step_count;
}

static void draw_chart(const struct mt_report *report, const struct mt_device_report *device,
                       const struct mt_chart_options *options, struct mt_drawing *drawing)
{
    struct layout layout = {
        .drawing = drawing, .device = device, .blocks = device ? device->blocks : NULL};
    double width = mt_chart_frame_width(options->width);
    double standard = STANDARD_HEIGHT + (width < MT_NARROW_WIDTH ? 140 : 0);
    const char *title;

    mt_drawing_init(drawing, width, mt_chart_frame_height(options->height, standard), "blocks");
    title =
        mt_chart_frame_title(drawing, report, device, chart_name(drawing, report, layout.blocks));
    mt_chart_frame_describe(drawing, report, device, title);
    if (layout.blocks && layout.blocks->peak_allocated)
        draw_picture(&layout, report, title, options);
    else
        mt_chart_frame_empty(drawing, report, device, title,
                             device ? "Nothing was allocated or freed" : "No allocator events",
                             "There are no blocks to show.");
}

const struct mt_chart mt_chart_blocks = {
    .name = "blocks",
    .summary = "every large block of one step, and the calls below",
    .needs_history = true,
    .models = MT_MODEL_TIMELINE | MT_MODEL_BLOCKS | MT_MODEL_FLAMECHART,
    .is_enlarged = true,
    .called_for = has_steps,
    .draw = draw_chart,
};
