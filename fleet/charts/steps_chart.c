/* The reserved peak of each rank in each step. A column is a bucket of steps of the report, or
 * several buckets if there are too many for the plot. */
#include <math.h>

#include "heat_map.h"
#include "phase.h"
#include "units.h"
#include "util.h"

#define TICK_PITCH 56.0 /* approximate distance of ticks, in pixels */

/* Returns the last bucket that begins at or before `step`; MT_NO_ROW = there is none. */
static uint32_t bucket_of(const struct mt_job_report *report, int64_t step)
{
    uint32_t low = 0, high = report->step_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (report->steps[middle].first <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : MT_NO_ROW;
}

static uint32_t column_of(const struct mt_heat_map *map, uint32_t bucket)
{
    return (uint32_t)((uint64_t)bucket * map->columns / map->report->step_count);
}

/* Returns the first bucket of a column. For the column after the last, returns the number of
 * buckets. */
static uint32_t first_bucket(const struct mt_heat_map *map, uint32_t column)
{
    uint64_t buckets = map->report->step_count;

    return (uint32_t)((column * buckets + map->columns - 1) / map->columns);
}

static void read(const struct mt_heat_map *map, const struct mt_rank_record *record,
                 uint64_t *bytes, bool *has)
{
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct mt_record_step *step = &record->steps[i];
        uint32_t first = bucket_of(map->report, step->first);
        uint32_t last = bucket_of(map->report, step->last);

        if (first == MT_NO_ROW || last == MT_NO_ROW)
            continue;
        for (uint32_t c = column_of(map, first); c <= column_of(map, last); c++) {
            bytes[c] = mt_max_u64(bytes[c], step->reserved_peak_bytes);
            has[c] = true;
        }
    }
}

/* Finds the column of a death. A rank dies in the last step that began. */
static bool find_death(const struct mt_heat_map *map, const struct mt_rank_record *record,
                       uint32_t *column)
{
    uint32_t bucket =
        record->last_step == MT_NO_STEP ? MT_NO_ROW : bucket_of(map->report, record->last_step);

    if (bucket == MT_NO_ROW)
        return false;
    *column = column_of(map, bucket);
    return true;
}

static const char *step_text(struct mt_drawing *drawing, int64_t step)
{
    char n[MT_UNITS_TEXT];

    mt_format_count(n, mt_magnitude(step));
    return mt_arena_printf(&drawing->arena, "%s%s", step < 0 ? "\xE2\x88\x92" : "", n);
}

static const char *name_column(const struct mt_heat_map *map, struct mt_drawing *drawing,
                               uint32_t column)
{
    const struct mt_job_step *steps = map->report->steps;
    int64_t first = steps[first_bucket(map, column)].first;
    int64_t last = steps[first_bucket(map, column + 1) - 1].last;
    const char *text;

    if (first == last)
        text = mt_arena_printf(&drawing->arena, "step %s", step_text(drawing, first));
    else
        text = mt_arena_printf(&drawing->arena, "steps %s to %s", step_text(drawing, first),
                               step_text(drawing, last));
    return text;
}

static const char *name_death(const struct mt_heat_map *map, struct mt_drawing *drawing,
                              const struct mt_rank_record *record)
{
    const char *text =
        mt_arena_printf(&drawing->arena, "step %s", step_text(drawing, record->last_step));

    (void)map;
    return text;
}

/* Returns true if a column contains a round step, at which it has a tick. */
static bool has_round(const struct mt_heat_map *map, uint32_t column, uint64_t round, int64_t *step)
{
    const struct mt_job_step *steps = map->report->steps;
    int64_t first = steps[first_bucket(map, column)].first;
    int64_t last = steps[first_bucket(map, column + 1) - 1].last;
    uint64_t rest = mt_magnitude(first) % round;

    rest = first < 0 || !rest ? rest : round - rest;
    *step = first;
    if (rest > (uint64_t)last - (uint64_t)first)
        return false;
    *step = (int64_t)((uint64_t)first + rest);
    return true;
}

static void draw_ticks(const struct mt_heat_map *map, struct mt_drawing *drawing, double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    const struct mt_job_step *steps = map->report->steps;
    double numbers =
        (double)((uint64_t)steps[map->report->step_count - 1].last - (uint64_t)steps[0].first) + 1;
    uint64_t round = mt_scale_count_step(numbers * TICK_PITCH / map->plot.width);
    double end = map->plot.x - 22;

    for (uint32_t c = 0; c < map->columns; c++) {
        double x = (mt_heat_map_x(map, c) + mt_heat_map_x(map, c + 1)) / 2, half;
        const char *text;
        int64_t step;

        if (!has_round(map, c, round, &step))
            continue;
        text = step_text(drawing, step);
        half = mt_text_room(text, MT_SIZE_AXIS, MT_REGULAR) / 2;
        if (x - half < end || x + half > drawing->width - 4)
            continue;
        end = x + half + 8;
        mt_draw_line(drawing, x, y + 1, x, y + 5, &line);
        mt_chart_frame_text(drawing, x, y + 18, text, MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_MUTED,
                            MT_ANCHOR_MIDDLE, "tick-x");
    }
    mt_chart_frame_text(drawing, map->plot.x, y + 36, map->axis_name, MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_START, "axis-name");
}

static bool has_steps(const struct mt_job_report *report)
{
    return report->step_count > 0;
}

static void draw(const struct mt_job_report *report, const struct mt_job_chart_options *options,
                 struct mt_drawing *drawing)
{
    struct mt_heat_map map = {.report = report,
                              .read = read,
                              .find_death = find_death,
                              .name_column = name_column,
                              .name_death = name_death,
                              .draw_ticks = draw_ticks,
                              .axis_name = "step",
                              .rule = "a cell: the largest reserved memory in the step, or in the "
                                      "steps that share a column; none: no step was recorded",
                              .most_columns = report->step_count};
    double y = mt_job_frame_begin(drawing, report, options, mt_heat_map_height(report), "steps",
                                  "reserved peak by rank and step");

    if (!has_steps(report))
        mt_chart_frame_nothing(drawing, y + 10, "No steps were recorded",
                               "the program names no steps, or the recording covers none");
    else
        mt_heat_map_draw(&map, drawing, y);
}

const struct mt_job_chart mt_job_chart_steps = {.name = "steps",
                                                .summary =
                                                    "reserved peak of each rank in each step",
                                                .called_for = has_steps,
                                                .draw = draw};
