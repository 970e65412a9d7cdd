/* The reserved memory of each rank as a heat map: in each step, and over time. */
#include <math.h>
#include <string.h>

#include "heat_map.h"
#include "phase.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

/* The reserved peak of each rank in each step. A column is a bucket of steps of the report, or
 * several buckets if there are too many for the plot. */

#define STEPS_CHART_TICK_PITCH 56.0 /* approximate distance of ticks, in pixels */

/* Returns the last bucket that begins at or before `step`; MT_NO_ROW = there is none. */
static uint32_t bucket_of(const struct mt_job_report *report, int64_t step)
{
    uint32_t low = 0;

    MT_BISECT(low, report->step_count, middle, report->steps[middle].first <= step);
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

static void read_steps_chart(const struct mt_heat_map *map, const struct mt_rank_record *record,
                             uint64_t *bytes, bool *has)
{
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct mt_record_step step = mt_step_at(record, i);
        uint32_t first = bucket_of(map->report, step.first);
        uint32_t last = bucket_of(map->report, step.last);

        if (first == MT_NO_ROW || last == MT_NO_ROW)
            continue;
        for (uint32_t c = column_of(map, first); c <= column_of(map, last); c++) {
            bytes[c] = mt_max_u64(bytes[c], step.reserved_peak_bytes);
            has[c] = true;
        }
    }
}

/* Finds the column of a death. A rank dies in the last step that began. */
static bool steps_chart_find_death(const struct mt_heat_map *map,
                                   const struct mt_rank_record *record, uint32_t *column)
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

static const char *steps_chart_name_column(const struct mt_heat_map *map,
                                           struct mt_drawing *drawing, uint32_t column)
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

static const char *steps_chart_name_death(const struct mt_heat_map *map, struct mt_drawing *drawing,
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

static void steps_chart_draw_ticks(const struct mt_heat_map *map, struct mt_drawing *drawing,
                                   double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    const struct mt_job_step *steps = map->report->steps;
    double numbers =
        (double)((uint64_t)steps[map->report->step_count - 1].last - (uint64_t)steps[0].first) + 1;
    uint64_t round = mt_scale_count_step(numbers * STEPS_CHART_TICK_PITCH / map->plot.width);
    double end = map->plot.x - 22;

    for (uint32_t c = 0; c < map->columns; c++) {
        double x = (mt_heat_map_x(map, c) + mt_heat_map_x(map, c + 1)) / 2;
        int64_t step;

        if (!has_round(map, c, round, &step))
            continue;
        const char *text = step_text(drawing, step);
        double half = mt_text_room(text, MT_SIZE_AXIS, MT_REGULAR) / 2;
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

static void draw_steps_chart(const struct mt_job_report *report,
                             const struct mt_job_chart_options *options, struct mt_drawing *drawing)
{
    struct mt_heat_map map = {.report = report,
                              .read = read_steps_chart,
                              .find_death = steps_chart_find_death,
                              .name_column = steps_chart_name_column,
                              .name_death = steps_chart_name_death,
                              .draw_ticks = steps_chart_draw_ticks,
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
                                                .draw = draw_steps_chart};

/* The reserved memory of each rank over time. The chart shows which rank died first, and how long
 * each ran. A record divides its run into 512 equal parts. Each part raises all columns with which
 * it overlaps. */

#define TIMES_CHART_TICK_PITCH 90.0 /* approximate distance of ticks, in pixels */
#define MAX_COLUMNS            4096 /* more than a picture has */

struct course {
    uint64_t begin_t_ns, end_t_ns; /* range of all records that have columns or a death */
};

/* Returns true if the record has times. The times of a dry run do not count, because they are those
 * of the machine that planned it. */
static bool has_times(const struct mt_rank_record *record)
{
    return !record->is_dry_run && record->column_count && record->end_t_ns > record->begin_t_ns;
}

static bool find_course(const struct mt_job_report *report, struct course *course)
{
    *course = (struct course){UINT64_MAX, 0};
    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct mt_rank_record *record = report->rows[i].record;

        if (!has_times(record))
            continue;
        course->begin_t_ns = mt_min_u64(course->begin_t_ns, record->begin_t_ns);
        course->end_t_ns = mt_max_u64(course->end_t_ns, record->end_t_ns);
    }
    return course->begin_t_ns < course->end_t_ns;
}

static bool is_called_for(const struct mt_job_report *report)
{
    struct course course;

    return find_course(report, &course);
}

/* Returns the position of an instant, in columns. */
static double position(const struct mt_heat_map *map, double t_ns)
{
    const struct course *course = map->context;
    double length = (double)(course->end_t_ns - course->begin_t_ns);

    return fmin(fmax(t_ns / length, 0), 1) * map->columns;
}

static uint32_t column_at(const struct mt_heat_map *map, double at)
{
    return (uint32_t)fmin(fmax(floor(at), 0), map->columns - 1.0);
}

static void read_times_chart(const struct mt_heat_map *map, const struct mt_rank_record *record,
                             uint64_t *bytes, bool *has)
{
    const struct course *course = map->context;

    if (!has_times(record))
        return;
    double begin = (double)(record->begin_t_ns - course->begin_t_ns);
    double length = (double)(record->end_t_ns - record->begin_t_ns) / record->column_count;
    for (uint32_t i = 0; i < record->column_count; i++) {
        uint32_t first = column_at(map, position(map, begin + i * length));
        uint32_t last = column_at(map, ceil(position(map, begin + (i + 1) * length) - 1e-6) - 1);

        for (uint32_t c = first; c <= last || c == first; c++) {
            bytes[c] = mt_max_u64(bytes[c], mt_column_at(record, i).reserved_bytes);
            has[c] = true;
        }
    }
}

static bool times_chart_find_death(const struct mt_heat_map *map,
                                   const struct mt_rank_record *record, uint32_t *column)
{
    const struct course *course = map->context;

    if (!record->has_death || !has_times(record) || record->death_t_ns < course->begin_t_ns)
        return false;
    *column = column_at(map, position(map, (double)(record->death_t_ns - course->begin_t_ns)));
    return true;
}

static const char *time_text(struct mt_drawing *drawing, const struct course *course, uint64_t t_ns,
                             uint64_t step_ns)
{
    char label[MT_TICK_TEXT];

    mt_scale_time_label(label, t_ns, step_ns, course->end_t_ns - course->begin_t_ns);
    return mt_arena_text(&drawing->arena, label, strlen(label));
}

/* Returns an instant as text, with the precision of a column. */
static const char *instant_text(const struct mt_heat_map *map, struct mt_drawing *drawing,
                                uint64_t t_ns)
{
    const struct course *course = map->context;
    double length = (double)(course->end_t_ns - course->begin_t_ns);
    uint64_t step = mt_scale_time_step(length / map->columns);

    t_ns = mt_add_most_u64(t_ns, step / 2) / step * step;
    return mt_arena_printf(&drawing->arena, "at %s", time_text(drawing, course, t_ns, step));
}

static const char *times_chart_name_column(const struct mt_heat_map *map,
                                           struct mt_drawing *drawing, uint32_t column)
{
    const struct course *course = map->context;
    double length = (double)(course->end_t_ns - course->begin_t_ns);

    return instant_text(map, drawing, (uint64_t)(length / map->columns * column));
}

static const char *times_chart_name_death(const struct mt_heat_map *map, struct mt_drawing *drawing,
                                          const struct mt_rank_record *record)
{
    const struct course *course = map->context;

    return instant_text(map, drawing, record->death_t_ns - course->begin_t_ns);
}

static void times_chart_draw_ticks(const struct mt_heat_map *map, struct mt_drawing *drawing,
                                   double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    const struct course *course = map->context;
    uint64_t length = course->end_t_ns - course->begin_t_ns;
    uint64_t step = mt_scale_time_step((double)length * TIMES_CHART_TICK_PITCH / map->plot.width);
    double end = map->plot.x - 22;

    for (uint64_t t = 0; t <= length; t += step) {
        double x = map->plot.x + (double)t / (double)length * map->plot.width;
        const char *text = time_text(drawing, course, t, step);
        double half = mt_text_room(text, MT_SIZE_AXIS, MT_REGULAR) / 2;

        if (x - half >= end && x + half < drawing->width - 4) {
            mt_draw_line(drawing, x, y + 1, x, y + 5, &line);
            mt_chart_frame_text(drawing, x, y + 18, text, MT_SIZE_AXIS, MT_REGULAR, MT_COLOR_MUTED,
                                MT_ANCHOR_MIDDLE, "tick-x");
            end = x + half + 8;
        }
        if (length - t < step)
            break;
    }
    mt_chart_frame_text(drawing, map->plot.x, y + 36, map->axis_name, MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_START, "axis-name");
}

static void draw_times_chart(const struct mt_job_report *report,
                             const struct mt_job_chart_options *options, struct mt_drawing *drawing)
{
    struct course course;
    struct mt_heat_map map = {.report = report,
                              .context = &course,
                              .read = read_times_chart,
                              .find_death = times_chart_find_death,
                              .name_column = times_chart_name_column,
                              .name_death = times_chart_name_death,
                              .draw_ticks = times_chart_draw_ticks,
                              .axis_name = "time since the first event of the job",
                              .rule = "a cell: the largest reserved memory in that time; none: the "
                                      "rank did not run; clocks of hosts may differ",
                              .most_columns = MAX_COLUMNS};
    double y = mt_job_frame_begin(drawing, report, options, mt_heat_map_height(report), "times",
                                  "reserved memory by rank over time");

    if (!find_course(report, &course))
        mt_chart_frame_nothing(drawing, y + 10, "No times were recorded",
                               "dry runs have no times, or no time passed");
    else
        mt_heat_map_draw(&map, drawing, y);
}

const struct mt_job_chart mt_job_chart_times = {.name = "times",
                                                .summary = "reserved memory of each rank over time",
                                                .called_for = is_called_for,
                                                .draw = draw_times_chart};
