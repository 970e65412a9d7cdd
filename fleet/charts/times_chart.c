/* The reserved memory of each rank over time. The chart shows which rank died first, and how long
 * each ran. A record divides its run into 512 equal parts. Each part raises all columns with which
 * it overlaps. */
#include <math.h>
#include <string.h>

#include "heat_map.h"
#include "util.h"

#define TICK_PITCH  90.0 /* approximate distance of ticks, in pixels */
#define MAX_COLUMNS 4096 /* more than a picture has */

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

static void read(const struct mt_heat_map *map, const struct mt_rank_record *record,
                 uint64_t *bytes, bool *has)
{
    const struct course *course = map->context;
    double begin, length;

    if (!has_times(record))
        return;
    begin = (double)(record->begin_t_ns - course->begin_t_ns);
    length = (double)(record->end_t_ns - record->begin_t_ns) / record->column_count;
    for (uint32_t i = 0; i < record->column_count; i++) {
        uint32_t first = column_at(map, position(map, begin + i * length));
        uint32_t last = column_at(map, ceil(position(map, begin + (i + 1) * length) - 1e-6) - 1);

        for (uint32_t c = first; c <= last || c == first; c++) {
            bytes[c] = mt_max_u64(bytes[c], record->columns[i].reserved_bytes);
            has[c] = true;
        }
    }
}

static bool find_death(const struct mt_heat_map *map, const struct mt_rank_record *record,
                       uint32_t *column)
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

static const char *name_column(const struct mt_heat_map *map, struct mt_drawing *drawing,
                               uint32_t column)
{
    const struct course *course = map->context;
    double length = (double)(course->end_t_ns - course->begin_t_ns);

    return instant_text(map, drawing, (uint64_t)(length / map->columns * column));
}

static const char *name_death(const struct mt_heat_map *map, struct mt_drawing *drawing,
                              const struct mt_rank_record *record)
{
    const struct course *course = map->context;

    return instant_text(map, drawing, record->death_t_ns - course->begin_t_ns);
}

static void draw_ticks(const struct mt_heat_map *map, struct mt_drawing *drawing, double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    const struct course *course = map->context;
    uint64_t length = course->end_t_ns - course->begin_t_ns;
    uint64_t step = mt_scale_time_step((double)length * TICK_PITCH / map->plot.width);
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

static void draw(const struct mt_job_report *report, const struct mt_job_chart_options *options,
                 struct mt_drawing *drawing)
{
    struct course course;
    struct mt_heat_map map = {.report = report,
                              .context = &course,
                              .read = read,
                              .find_death = find_death,
                              .name_column = name_column,
                              .name_death = name_death,
                              .draw_ticks = draw_ticks,
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
                                                .draw = draw};
