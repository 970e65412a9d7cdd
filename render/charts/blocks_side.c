/* The area next to the blocks: the largest groups at the peak, and the peak event by event if it is
 * too narrow in the plot. */
#include "blocks.h"
#include "report_query.h"

#include <math.h>
#include <stdio.h>

#include "units.h"

#define GROUPS    5
#define GROUP_ROW 33.0
#define HEAD      30.0
#define MAX_INSET 290.0

static uint32_t group_count(const struct mt_blocks *blocks)
{
    return blocks->group_count < GROUPS ? blocks->group_count : GROUPS;
}

double mt_blocks_groups_height(const struct mt_blocks *blocks)
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
    const char *rest;

    mt_chart_frame_text(side->drawing, side->x, y + 10, "Largest groups at the peak", 14,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    y += HEAD;
    for (uint32_t i = 0; i < group_count(blocks); i++, y += GROUP_ROW)
        draw_group(side, &blocks->groups[i], y + 4, width);
    if (blocks->groups_in_all <= group_count(blocks))
        return y;
    rest = mt_arena_printf(&side->drawing->arena, "and %s more",
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
    const char *note;

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
    mt_format_count(count, set->end_event - set->begin_event + 1);
    note = mt_report_has_times(side->report)
               ? mt_arena_printf(&side->drawing->arena, "%s events in %s", count,
                                 mt_format_duration(span, set->bins[set->bin_count - 1].last_t_ns -
                                                              set->bins[0].t_ns))
               : mt_arena_printf(&side->drawing->arena, "%s events", count);
    mt_chart_frame_text(side->drawing, x, stack.plot.y + stack.plot.height + 16,
                        mt_text_fit(side->drawing, note, MT_SIZE_SMALL, MT_REGULAR, width, false),
                        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "inset-note");
}

void mt_blocks_side(const struct mt_blocks_side *side)
{
    double y = side->y, width = side->beside ? (side->width - 36) / 2 : side->width;

    if (group_count(side->blocks) && y + mt_blocks_groups_height(side->blocks) <= side->bottom + 20)
        y = draw_groups(side, y, width);
    if (!side->has_inset)
        return;
    if (side->beside)
        draw_inset(side, side->x + width + 36, side->y, width, MT_BLOCKS_INSET_HEIGHT);
    else if (y + 14 + MT_BLOCKS_INSET_HEIGHT <= side->bottom)
        draw_inset(side, side->x, y + 14, width, fmin(side->bottom - y - 14, MAX_INSET));
}
