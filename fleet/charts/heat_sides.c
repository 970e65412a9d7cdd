/* The parts next to a heat map: groups and numbers of ranks on the left, labels of single ranks on
 * the right. Labels are in the order of the ranks, so their lines do not cross. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cell_label.h"
#include "heat_layout.h"
#include "job_frame.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

#define PITCH       15.0 /* distance of lines of text */
#define MAX_LINES   2
#define ITEM_GAP    3.0  /* distance below a label */
#define LEADER      26.0 /* distance between the plot and the labels */
#define NUMBER_EDGE 10.0
#define MIN_MARK    3.0  /* minimum pixels of a mark */
#define RANK_WIDTH  62.0 /* room for the numbers */

static double middle_of(const struct mt_heat_map *map, const struct mt_job_lane *lane)
{
    return map->plot.y + lane->at + lane->size / 2.0;
}

static void draw_numbers(const struct mt_heat_map *map, struct mt_drawing *drawing)
{
    double least = (double)map->order.place_count * 2 * PITCH / map->plot.height, last = -HUGE_VAL;
    uint64_t step = least < 3 ? 1 : mt_scale_count_step(least);
    double right = map->plot.x - NUMBER_EDGE;
    int32_t before = -1;

    for (uint32_t i = 0; i < map->lanes.count; i++) {
        double y = middle_of(map, &map->lanes.lanes[i]) + 4;
        int32_t rank = mt_job_lane_round_rank(&map->order, &map->lanes.lanes[i], step);
        char n[MT_UNITS_TEXT];

        if (rank < 0 || rank == before || y - last < PITCH)
            continue;
        snprintf(n, sizeof n, "%d", (int)rank);
        mt_chart_frame_text(drawing, right, y, n, MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED,
                            MT_ANCHOR_END, "tick-y");
        before = rank;
        last = y;
    }
    mt_chart_frame_text(drawing, map->plot.x - 26, map->plot.y + map->plot.height + 18, "rank",
                        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "axis-name");
}

static bool has_missing(const struct mt_heat_map *map, const struct mt_job_lane *lane)
{
    for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++)
        if (map->order.slots[s].count)
            return true;
    return false;
}

/* Marks lanes with missing ranks. A lane that also has other ranks is not hatched, so it needs the
 * mark. */
static void draw_strip(const struct mt_heat_map *map, struct mt_drawing *drawing)
{
    const struct mt_paint paint = {.fill = MT_COLOR_WARN};
    const struct mt_job_lane *lanes = map->lanes.lanes;

    for (uint32_t i = 0, end; i < map->lanes.count; i = end) {
        double top = lanes[i].at;
        bool is_marked = has_missing(map, &lanes[i]);

        for (end = i + 1; end < map->lanes.count && is_marked && has_missing(map, &lanes[end]) &&
                          lanes[end].at == lanes[end - 1].at + lanes[end - 1].size;)
            end++;
        if (!is_marked)
            continue;
        double height = fmax(lanes[end - 1].at + lanes[end - 1].size - top, MIN_MARK);
        top = fmax(fmin(top, map->plot.height - height), 0);
        mt_draw_rect(drawing, map->plot.x - 6, map->plot.y + top, 5, height, &paint, NULL,
                     "strip:missing");
    }
}

static void draw_groups(const struct mt_heat_map *map, struct mt_drawing *drawing, double left)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    double x = map->plot.x - RANK_WIDTH + 4, last = -HUGE_VAL;

    for (uint32_t g = 0; map->lanes.groups && g < map->order.group_count; g++) {
        double y = map->plot.y + map->lanes.groups[g].at, height = map->lanes.groups[g].size;
        double text_y = y + height / 2 + 4;

        mt_draw_line(drawing, x, y, x, y + height, &line);
        if (text_y - last < PITCH)
            continue;
        last = text_y;
        mt_chart_frame_text(drawing, MT_MARGIN, text_y,
                            mt_job_frame_fit_group(drawing, &map->order, g, left - RANK_WIDTH - 2),
                            MT_SIZE_SMALL, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "group");
    }
}

struct item {
    double target, y, height; /* target: middle of the labeled lane */
    const char *text;
    bool is_death;
};

static struct mt_paragraph paragraph_of(double x, double width, bool is_death)
{
    return (struct mt_paragraph){.x = x,
                                 .width = width,
                                 .size = MT_SIZE_SMALL,
                                 .pitch = PITCH,
                                 .weight = MT_REGULAR,
                                 .color = is_death ? MT_COLOR_BAD : MT_COLOR_TEXT,
                                 .most_lines = MAX_LINES,
                                 .role = "label"};
}

MT_DEFINE_ORDER(compare_items, struct item, MT_ASCENDING(target))

/* Makes labels until the height of the plot is used up. */
static uint32_t make_items(const struct mt_heat_map *map, struct mt_drawing *drawing,
                           const struct mt_job_labels *labels, double width, struct item *items)
{
    const struct mt_paragraph paragraph = paragraph_of(0, width, false);
    double used = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < labels->count; i++) {
        const struct mt_job_label *label = &labels->labels[i];
        const struct mt_job_lane *lane = mt_job_label_lane(&map->order, &map->lanes, label);
        const char *text = mt_job_frame_fit(
            drawing, mt_job_label_text(drawing, map->report, label, false), width * MAX_LINES);
        double height = PITCH * mt_paragraph_lines(drawing, &paragraph, text) + ITEM_GAP;

        if (!lane || !*text || used + height > fmax(map->plot.height, PITCH + ITEM_GAP))
            continue;
        used += height;
        items[count++] = (struct item){middle_of(map, lane), 0, height, text,
                                       mt_job_label_is_death(map->report, label)};
    }
    return count;
}

/* Places labels as close to their targets as their heights and the plot allow. The first line of a
 * label is next to its target. */
static void spread(const struct mt_heat_map *map, struct item *items, uint32_t count)
{
    double bottom = map->plot.y + map->plot.height;

    for (uint32_t i = 0; i < count; i++)
        items[i].y = fmax(items[i].target - PITCH / 2,
                          i ? items[i - 1].y + items[i - 1].height : map->plot.y);
    for (uint32_t i = count; i-- > 0;)
        items[i].y = fmin(items[i].y, (i + 1 < count ? items[i + 1].y : bottom) - items[i].height);
}

static void draw_item(const struct mt_heat_map *map, struct mt_drawing *drawing,
                      const struct item *item, double width)
{
    const struct mt_paint line = {.stroke = item->is_death ? MT_COLOR_BAD : MT_COLOR_MUTED};
    double right = map->plot.x + map->plot.width, middle = item->y + PITCH / 2;
    const struct mt_paragraph paragraph = paragraph_of(right + LEADER, width, item->is_death);
    const struct mt_point points[] = {{right + 2, item->target},
                                      {right + 7, item->target},
                                      {right + LEADER - 9, middle},
                                      {right + LEADER - 4, middle}};

    mt_draw_path(drawing, points, MT_ARRAY_LEN(points), false, false, &line, NULL, "side-line");
    mt_paragraph_draw(drawing, &paragraph, middle + 4, item->text);
}

/* Returns the remark about the first death: "first out of memory, step 12". */
static const char *death_words(const struct mt_heat_map *map, struct mt_drawing *drawing)
{
    const struct mt_job_death *death = map->report->death;
    const char *order = death->count > 1 ? "first out of memory" : "out of memory";
    const struct mt_rank_record *record = map->report->rows[death->row].record;
    uint32_t column;

    if (!map->find_death(map, record, &column))
        return order;
    const char *words =
        mt_arena_printf(&drawing->arena, "%s, %s", order, map->name_death(map, drawing, record));
    return words;
}

static void collect(const struct mt_heat_map *map, struct mt_drawing *drawing,
                    struct mt_job_labels *labels)
{
    const char *words = mt_arena_printf(&drawing->arena, "highest, %s, %s",
                                        mt_job_frame_bytes(drawing, map->high_bytes),
                                        map->name_column(map, drawing, map->high_column));

    mt_job_labels_add(drawing, labels, map->high_row, words);
    if (map->report->death)
        mt_job_labels_add(drawing, labels, map->report->death->row, death_words(map, drawing));
    mt_job_labels_add_outliers(drawing, map->report, labels);
    mt_job_labels_add_gaps(&map->order, labels);
}

static void draw_labels(const struct mt_heat_map *map, struct mt_drawing *drawing, double width)
{
    struct mt_job_labels labels = {.count = 0};
    struct item items[MT_JOB_LABELS];

    collect(map, drawing, &labels);
    uint32_t count = make_items(map, drawing, &labels, width, items);
    qsort(items, count, sizeof *items, compare_items);
    spread(map, items, count);
    for (uint32_t i = 0; i < count; i++)
        draw_item(map, drawing, &items[i], width);
}

void mt_heat_map_draw_sides(const struct mt_heat_map *map, struct mt_drawing *drawing, double left,
                            double right)
{
    draw_strip(map, drawing);
    draw_numbers(map, drawing);
    if (map->order.axis)
        draw_groups(map, drawing, left);
    draw_labels(map, drawing, right - LEADER - 10);
}
