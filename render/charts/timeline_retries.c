/* Marks of retries, for which the allocator emptied its cache. They are triangles at the upper edge
 * of the plot. */
#include "timeline_layout.h"

#include "place.h"
#include "units.h"

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

void mt_timeline_draw_retries(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                              struct mt_placer *placer)
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
    double width;

    if (!layout->device->retry_mark_count)
        return right;
    width = mt_chart_frame_text(drawing, right, y, "retry", 12.5, MT_REGULAR, MT_COLOR_MUTED,
                                MT_ANCHOR_END, "legend");
    draw_triangle(drawing, right - 1.05 * width - 9, y - 1.5, NULL, "swatch");
    return right - 1.05 * width - 9 - HALF_WIDTH - 20;
}
