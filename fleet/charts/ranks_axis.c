/* The parts below the bars: a strip with deaths and gaps, numbers of ranks, groups. */
#include <math.h>
#include <stdio.h>

#include "ranks_layout.h"
#include "units.h"
#include "util.h"

#define STRIP_Y      3.0 /* distance below the plot */
#define STRIP_HEIGHT 6.0
#define MIN_MARK     3.0 /* minimum pixels of a mark */
#define NUMBER_Y     26.0
#define GROUP_Y      48.0
#define TICK_PITCH   64.0 /* approximate distance of numbers, in pixels */

double mt_ranks_axis_height(const struct mt_job_order *order)
{
    return order->axis ? GROUP_Y + 6 : NUMBER_Y + 6;
}

/* Draws the strip. Adjacent lanes with the same state have one mark, which is wide enough to be
 * visible. */
static void draw_strip(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                       bool (*is_marked)(const struct mt_ranks_column *column),
                       const struct mt_paint *paint, const char *role)
{
    const struct mt_job_lane *lanes = layout->lanes.lanes;
    double y = layout->plot.y + layout->plot.height + STRIP_Y;

    for (uint32_t i = 0, end; i < layout->lanes.count; i = end) {
        double width, left = lanes[i].at;

        for (end = i + 1; end < layout->lanes.count && is_marked(&layout->columns[i]) &&
                          is_marked(&layout->columns[end]) &&
                          lanes[end].at == lanes[end - 1].at + lanes[end - 1].size;)
            end++;
        if (!is_marked(&layout->columns[i]))
            continue;
        width = fmax(lanes[end - 1].at + lanes[end - 1].size - left, MIN_MARK);
        left = fmax(fmin(left, layout->plot.width - width), 0);
        mt_draw_rect(drawing, layout->plot.x + left, y, width, STRIP_HEIGHT, paint, NULL, role);
    }
}

static bool is_missing(const struct mt_ranks_column *column)
{
    return column->missing_count > 0;
}

static bool is_dead(const struct mt_ranks_column *column)
{
    return column->death_count > 0;
}

/* Returns the lowest rank of a lane that is a multiple of `step`; -1 = there is none. */
static int32_t round_rank(const struct mt_ranks_layout *layout, const struct mt_job_lane *lane,
                          uint64_t step)
{
    for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++) {
        const struct mt_job_slot *slot = &layout->order.slots[s];

        if (!slot->count && slot->rank >= 0 && (uint64_t)slot->rank % step == 0)
            return slot->rank;
    }
    return -1;
}

static void draw_number(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                        const struct mt_job_lane *lane, int32_t rank, double *end)
{
    const struct mt_paint tick = {.stroke = MT_COLOR_AXIS};
    double x = layout->plot.x + lane->at + lane->size / 2.0;
    double y = layout->plot.y + layout->plot.height;
    char text[MT_UNITS_TEXT];
    double half;

    snprintf(text, sizeof text, "%d", (int)rank);
    half = mt_text_room(text, MT_SIZE_SMALL, MT_REGULAR) / 2;
    if (x - half < *end || x + half > drawing->width - 4)
        return;
    *end = x + half + 6;
    mt_draw_line(drawing, x, y + STRIP_Y + STRIP_HEIGHT, x, y + STRIP_Y + STRIP_HEIGHT + 4, &tick);
    mt_chart_frame_text(drawing, x, y + NUMBER_Y, text, MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_MIDDLE, "tick-x");
}

/* Draws numbers of ranks. The number of a rank with several devices is drawn once. */
static void draw_numbers(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    double end = layout->plot.x - 20;
    double least = (double)layout->order.place_count * TICK_PITCH / fmax(layout->plot.width, 1);
    uint64_t step = least < 2 ? 1 : mt_count_step(least);
    int32_t last = -1;

    mt_chart_frame_text(drawing, layout->plot.x - 26,
                        layout->plot.y + layout->plot.height + NUMBER_Y, "rank", MT_SIZE_SMALL,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "axis-name");
    for (uint32_t i = 0; i < layout->lanes.count; i++) {
        int32_t rank = round_rank(layout, &layout->lanes.lanes[i], step);

        if (rank >= 0 && rank != last)
            draw_number(drawing, layout, &layout->lanes.lanes[i], rank, &end);
        last = rank >= 0 ? rank : last;
    }
}

static void draw_groups(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    double y = layout->plot.y + layout->plot.height;

    for (uint32_t g = 0; layout->lanes.groups && g < layout->order.group_count; g++) {
        const struct mt_job_span *span = &layout->lanes.groups[g];
        double left = layout->plot.x + span->at;
        const char *label = mt_job_frame_fit_group(drawing, &layout->order, g, span->size);

        mt_draw_line(drawing, left, y + NUMBER_Y + 6.5, left + span->size, y + NUMBER_Y + 6.5,
                     &line);
        if (*label)
            mt_chart_frame_text(drawing, left + span->size / 2.0, y + GROUP_Y, label, MT_SIZE_SMALL,
                                MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_MIDDLE, "group");
    }
}

void mt_ranks_draw_axis(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    const struct mt_paint missing = {.fill = MT_COLOR_WARN}, death = {.fill = MT_COLOR_BAD};

    draw_strip(drawing, layout, is_missing, &missing, "strip:missing");
    draw_strip(drawing, layout, is_dead, &death, "strip:oom");
    draw_numbers(drawing, layout);
    if (layout->order.axis)
        draw_groups(drawing, layout);
}
