#include "heat_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "process_memory.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

#define FRAME_HEIGHT  214.0 /* height of everything except the plot */
#define PLOT_HEIGHT   520.0
#define MAX_LANE      24.0 /* maximum pixels of a rank */
#define SHARED_UNIT   2    /* minimum pixels of a lane of several ranks, and of a column */
#define TICKS_HEIGHT  46.0
#define LEGEND_HEIGHT 40.0
#define GROUP_WIDTH   76.0 /* left of the plot, for names of groups */
#define RANK_WIDTH    62.0 /* left of the plot, for numbers of ranks */
#define SIDE_WIDTH    250.0
#define LEVELS        15 /* levels of color, from 1; 0 = no data */
#define FIRST_TINT    2  /* the tint before it is that of free memory */
#define GAP           (LEVELS + 1)
#define DEATH_PIXELS  4 /* minimum height and width of the mark of a death */
#define LEGEND_CELL   15.0
#define FAR_BELOW     4  /* a level below 1/4 of the largest is far below it */
#define MIN_SPAN      10 /* the scale covers at least 1/10 of its top */

double mt_heat_map_x(const struct mt_heat_map *map, uint32_t column)
{
    return map->plot.x + floor((double)column * map->plot.width / map->columns);
}

double mt_heat_map_height(const struct mt_job_report *report)
{
    double places = (double)mt_max_u64(report->row_count, 1) +
                    (double)mt_min_u64(report->missing_count, mt_max_u64(report->row_count, 8));

    return FRAME_HEIGHT + fmin(PLOT_HEIGHT, fmax(places * MAX_LANE + 40, 120));
}

/* State while cells are made. */
struct work {
    struct mt_drawing *drawing;
    uint64_t *bytes;
    bool *has;
    uint8_t *levels; /* for each lane and column */
};

static void clear(const struct mt_heat_map *map, struct work *work)
{
    memset(work->bytes, 0, map->columns * sizeof *work->bytes);
    memset(work->has, 0, map->columns * sizeof *work->has);
}

/* Finds the range of the scale. It begins at 0, or at the smallest level if that is not far below
 * the largest. */
static void find_scale(struct mt_heat_map *map, struct work *work)
{
    const struct mt_job_report *report = map->report;
    uint64_t low = UINT64_MAX;

    map->high_row = MT_NO_ROW;
    for (uint32_t r = 0; r < report->row_count; r++) {
        clear(map, work);
        map->read(map, report->rows[r].record, work->bytes, work->has);
        for (uint32_t c = 0; c < map->columns; c++) {
            if (!work->has[c])
                continue;
            low = mt_min_u64(low, work->bytes[c]);
            if (map->high_row != MT_NO_ROW && work->bytes[c] <= map->high_bytes)
                continue;
            map->high_bytes = work->bytes[c];
            map->high_row = r;
            map->high_column = c;
        }
    }
    low = mt_min_u64(low, map->high_bytes - map->high_bytes / MIN_SPAN);
    map->low_bytes = low < map->high_bytes / FAR_BELOW ? 0 : low;
}

static uint8_t level_of(const struct mt_heat_map *map, uint64_t bytes)
{
    double span = (double)(map->high_bytes - map->low_bytes);
    double share = span > 0 && bytes > map->low_bytes ? (double)(bytes - map->low_bytes) / span : 0;

    return (uint8_t)(1 + fmin(floor(share * LEVELS), LEVELS - 1));
}

/* Computes the levels of a lane from all its rows. A lane that has only missing ranks is a gap. */
static void fill_lane(struct mt_heat_map *map, struct work *work, uint32_t index)
{
    const struct mt_job_lane *lane = &map->lanes.lanes[index];
    uint8_t *levels = &work->levels[(size_t)index * map->columns];
    bool has_rows = false;

    clear(map, work);
    for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++) {
        uint32_t row = map->order.slots[s].row;

        if (row == MT_NO_ROW)
            continue;
        has_rows = true;
        map->read(map, map->report->rows[row].record, work->bytes, work->has);
    }
    for (uint32_t c = 0; c < map->columns; c++) {
        levels[c] = (uint8_t)(!has_rows ? GAP : work->has[c] ? level_of(map, work->bytes[c]) : 0);
        map->lacks_data |= !levels[c];
    }
}

/* Cells of one level. */
struct cells {
    struct mt_grid_cell *cells;
    size_t count, capacity;
    size_t *open; /* for each column: 1 + the cell that begins there in the previous lane */
};

static void add_cell(struct work *work, struct cells *cells, const struct mt_grid_cell *cell)
{
    if (cells->count == cells->capacity) {
        size_t capacity = cells->capacity ? 2 * cells->capacity : 256;
        struct mt_grid_cell *more = mt_arena_array(&work->drawing->arena, capacity, sizeof *more);

        if (cells->count)
            memcpy(more, cells->cells, cells->count * sizeof *more);
        cells->cells = more;
        cells->capacity = capacity;
    }
    cells->cells[cells->count++] = *cell;
}

/* Adds a run of columns with one level. The run extends the cell of the previous lane if both have
 * the same columns. */
static void add_run(const struct mt_heat_map *map, struct work *work, struct cells *cells,
                    const struct mt_job_lane *lane, const uint32_t columns[2])
{
    double left = mt_heat_map_x(map, columns[0]) - map->plot.x;
    double right = mt_heat_map_x(map, columns[1]) - map->plot.x;
    struct mt_grid_cell cell = {(uint16_t)left, (uint16_t)lane->at, (uint16_t)(right - left),
                                (uint16_t)lane->size};
    struct mt_grid_cell *above =
        cells->open[columns[0]] ? &cells->cells[cells->open[columns[0]] - 1] : NULL;

    if (above && above->width == cell.width && above->y + above->height == cell.y) {
        above->height = (uint16_t)(above->height + cell.height);
        return;
    }
    add_cell(work, cells, &cell);
    cells->open[columns[0]] = cells->count;
}

static void collect_level(const struct mt_heat_map *map, struct work *work, uint8_t level,
                          struct cells *cells)
{
    memset(cells->open, 0, map->columns * sizeof *cells->open);
    for (uint32_t l = 0; l < map->lanes.count; l++) {
        const uint8_t *levels = &work->levels[(size_t)l * map->columns];

        for (uint32_t c = 0, end; c < map->columns; c = end) {
            for (end = c + 1; end < map->columns && levels[end] == levels[c];)
                end++;
            if (levels[c] == level)
                add_run(map, work, cells, &map->lanes.lanes[l], (const uint32_t[]){c, end});
        }
    }
}

static struct mt_grid grid_of(const struct mt_heat_map *map)
{
    return (struct mt_grid){map->plot.x, map->plot.y, map->plot.width, map->plot.height, 1};
}

static void draw_levels(const struct mt_heat_map *map, struct work *work)
{
    const struct mt_grid grid = grid_of(map);
    size_t *open = mt_arena_array(&work->drawing->arena, map->columns, sizeof *open);

    for (uint8_t level = 1; level <= LEVELS; level++) {
        const struct mt_paint paint = {.fill = MT_COLOR_HEAT,
                                       .tint = (uint8_t)(level + FIRST_TINT - 1)};
        struct cells cells = {.open = open};

        collect_level(map, work, level, &cells);
        if (cells.count)
            mt_draw_cells(work->drawing, &grid, cells.cells, cells.count, &paint, "level");
    }
}

static bool is_gap(const struct mt_heat_map *map, const struct work *work, uint32_t lane)
{
    return work->levels[(size_t)lane * map->columns] == GAP;
}

/* Draws the gaps. Adjacent gaps are drawn as one. */
static void draw_gaps(const struct mt_heat_map *map, const struct work *work)
{
    const struct mt_paint hatch = {.fill = MT_COLOR_UNUSED, .hatched = true};
    const struct mt_job_lane *lanes = map->lanes.lanes;

    for (uint32_t i = 0, end; i < map->lanes.count; i = end) {
        for (end = i + 1; end < map->lanes.count && is_gap(map, work, end) &&
                          lanes[end].at == lanes[end - 1].at + lanes[end - 1].size;)
            end++;
        if (is_gap(map, work, i))
            mt_draw_rect(work->drawing, map->plot.x, map->plot.y + lanes[i].at, map->plot.width,
                         lanes[end - 1].at + lanes[end - 1].size - lanes[i].at, &hatch, NULL,
                         "gap");
        else
            end = i + 1;
    }
}

/* Returns the cell of a death, which is inside the plot and large enough to be visible. */
static struct mt_grid_cell death_cell(const struct mt_heat_map *map, const struct mt_job_lane *lane,
                                      uint32_t column)
{
    double left = mt_heat_map_x(map, column) - map->plot.x;
    double width = fmax(mt_heat_map_x(map, column + 1) - map->plot.x - left, DEATH_PIXELS);
    double height = fmax(lane->size, DEATH_PIXELS);

    return (struct mt_grid_cell){(uint16_t)fmax(fmin(left, map->plot.width - width), 0),
                                 (uint16_t)fmax(fmin(lane->at, map->plot.height - height), 0),
                                 (uint16_t)fmin(width, map->plot.width),
                                 (uint16_t)fmin(height, map->plot.height)};
}

static void mark_deaths(const struct mt_heat_map *map, const struct mt_job_lane *lane, bool *has)
{
    for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++) {
        uint32_t row = map->order.slots[s].row, column;

        if (row != MT_NO_ROW && map->report->rows[row].record->outcome == MT_OUTCOME_OOM &&
            map->find_death(map, map->report->rows[row].record, &column))
            has[column] = true;
    }
}

MT_DEFINE_ORDER(compare_cells, struct mt_grid_cell, MT_ASCENDING(y) || MT_ASCENDING(x))

static void draw_deaths(const struct mt_heat_map *map, struct work *work)
{
    const struct mt_paint paint = {.fill = MT_COLOR_BAD};
    const struct mt_grid grid = grid_of(map);
    struct cells cells = {.count = 0};

    for (uint32_t l = 0; l < map->lanes.count; l++) {
        clear(map, work);
        mark_deaths(map, &map->lanes.lanes[l], work->has);
        for (uint32_t c = 0; c < map->columns; c++) {
            struct mt_grid_cell cell = death_cell(map, &map->lanes.lanes[l], c);

            if (work->has[c])
                add_cell(work, &cells, &cell);
        }
    }
    if (!cells.count)
        return;
    qsort(cells.cells, cells.count, sizeof *cells.cells, compare_cells);
    mt_draw_cells(work->drawing, &grid, cells.cells, cells.count, &paint, "death");
}

static const char *lane_title(const struct mt_heat_map *map, struct mt_drawing *drawing,
                              const struct mt_job_lane *lane)
{
    const struct mt_job_slot *slot = &map->order.slots[lane->first_slot];
    const struct mt_rank_record *most = NULL;
    uint32_t rows = 0, most_row = MT_NO_ROW;
    char n[MT_UNITS_TEXT], count[MT_UNITS_TEXT];

    for (uint32_t s = 0; s < lane->slot_count; s++) {
        if (slot[s].row == MT_NO_ROW)
            continue;
        rows++;
        const struct mt_rank_record *record = map->report->rows[slot[s].row].record;
        if (most && record->reserved_peak.bytes <= most->reserved_peak.bytes)
            continue;
        most = record;
        most_row = slot[s].row;
    }
    if (!most)
        return mt_job_frame_gap(drawing, slot);
    return mt_arena_printf(
        &drawing->arena, "%s%s%s%s: reserved peak %s B, %s", rows > 1 ? "the largest of " : "",
        rows > 1 ? mt_format_count(count, rows) : "", rows > 1 ? ", " : "",
        mt_job_frame_row(drawing, map->report, most_row),
        mt_format_count(n, most->reserved_peak.bytes), mt_outcome_name(most->outcome));
}

/* Draws invisible shapes with hover text. */
static void draw_titles(const struct mt_heat_map *map, struct mt_drawing *drawing)
{
    const struct mt_paint unseen = {.fill = MT_COLOR_PANEL, .unseen = true};

    for (uint32_t l = 0; l < map->lanes.count; l++) {
        const struct mt_job_lane *lane = &map->lanes.lanes[l];

        mt_draw_rect(drawing, map->plot.x, map->plot.y + lane->at, map->plot.width, lane->size,
                     &unseen, lane_title(map, drawing, lane), "lane");
    }
}

static double legend_text(struct mt_drawing *drawing, double x, double y, const char *text)
{
    double width = mt_text_room(text, MT_SIZE_SMALL, MT_REGULAR);

    if (x + width > drawing->width - MT_MARGIN)
        return x;
    mt_chart_frame_text(drawing, x, y, text, MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_START, "legend");
    return x + width;
}

/* Draws a swatch and its words, or nothing if they do not fit. */
static double legend_mark(struct mt_drawing *drawing, double x, double y, const char *text,
                          const struct mt_paint *paint)
{
    double end = x + 18 + mt_text_room(text, MT_SIZE_SMALL, MT_REGULAR);

    if (end > drawing->width - MT_MARGIN)
        return x;
    mt_draw_rect(drawing, x, y - 10, 12, 12, paint, NULL, "swatch");
    legend_text(drawing, x + 18, y, text);
    return end + 20;
}

/* Draws the scale of colors, and below it the bytes at both ends and in the middle. */
static double draw_scale(const struct mt_heat_map *map, struct mt_drawing *drawing, double y)
{
    const uint64_t span = map->high_bytes - map->low_bytes;
    const uint64_t ends[] = {map->low_bytes, map->low_bytes + span / 2, map->high_bytes};
    double width = LEVELS * LEGEND_CELL;

    for (uint32_t i = 0; i < LEVELS; i++) {
        const struct mt_paint paint = {.fill = MT_COLOR_HEAT, .tint = (uint8_t)(i + FIRST_TINT)};

        mt_draw_rect(drawing, MT_MARGIN + i * LEGEND_CELL, y - 10, LEGEND_CELL, 12, &paint, NULL,
                     "scale");
    }
    for (int i = 0; i < 3; i++)
        mt_chart_frame_text(drawing, MT_MARGIN + i * width / 2, y + 16,
                            mt_job_frame_bytes(drawing, ends[i]), MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_MUTED, (enum mt_anchor)(MT_ANCHOR_START + i), "scale-bytes");
    return MT_MARGIN + width + 24;
}

static void draw_legend(const struct mt_heat_map *map, struct mt_drawing *drawing, double y)
{
    const struct mt_paint death = {.fill = MT_COLOR_BAD};
    const struct mt_paint gap = {.fill = MT_COLOR_WARN};
    const struct mt_paint none = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_AXIS, .stroke_width = 1};
    double x = draw_scale(map, drawing, y);

    if (map->lacks_data)
        x = legend_mark(drawing, x, y, "No data", &none);
    if (map->report->missing_count)
        x = legend_mark(drawing, x, y, "Missing ranks", &gap);
    if (map->report->outcome_counts[MT_OUTCOME_OOM])
        legend_mark(drawing, x, y, "Out of memory", &death);
}

static double side_width(const struct mt_drawing *drawing)
{
    return drawing->width >= MT_NARROW_WIDTH ? SIDE_WIDTH : drawing->width >= 700 ? 170 : 110;
}

static double left_width(const struct mt_heat_map *map)
{
    return RANK_WIDTH + (map->order.axis ? GROUP_WIDTH : 0);
}

static uint32_t lane_unit(const struct mt_heat_map *map)
{
    return map->order.place_count + map->order.group_count * 8.0 <= map->plot.height ? 1
                                                                                     : SHARED_UNIT;
}

static void place(struct mt_heat_map *map, struct mt_drawing *drawing, double y)
{
    double least = (double)map->order.place_count * MAX_LANE + map->order.group_count * 8.0;

    map->plot.x = MT_MARGIN + left_width(map);
    map->plot.y = ceil(y);
    map->plot.width = floor(drawing->width - side_width(drawing) - map->plot.x);
    map->plot.height =
        fmax(floor(fmin(drawing->height - 48 - TICKS_HEIGHT - map->plot.y, least)), SHARED_UNIT);
    map->columns = (uint32_t)fmin(map->most_columns, map->plot.width / SHARED_UNIT);
    mt_job_lanes_make(&map->order, &drawing->arena, (uint32_t)map->plot.height, lane_unit(map),
                      &map->lanes);
}

static void draw_frame(const struct mt_heat_map *map, struct mt_drawing *drawing)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS};
    double right = map->plot.x + map->plot.width, bottom = map->plot.y + map->plot.height;

    mt_draw_line(drawing, map->plot.x, bottom + 0.5, right, bottom + 0.5, &line);
    mt_draw_line(drawing, map->plot.x - 0.5, map->plot.y, map->plot.x - 0.5, bottom, &line);
}

static const char *footnote_of(const struct mt_heat_map *map, struct mt_drawing *drawing)
{
    struct mt_buf note = {0};

    mt_job_frame_add(&note, "%s", map->rule);
    if (map->lanes.is_shared)
        mt_job_frame_add(&note, "ranks that share a row of pixels: the largest of them");
    if (map->order.axis)
        mt_job_frame_add(
            &note, "ranks in the order of %s",
            mt_chart_frame_short(drawing, mt_job_frame_name(drawing, map->order.axis->name), 40));
    if (map->order.is_shortened)
        mt_job_frame_add(&note, "a gap is lower than its missing ranks");
    return mt_buf_take(&note, &drawing->arena);
}

static void make_work(const struct mt_heat_map *map, struct mt_drawing *drawing, struct work *work)
{
    size_t cells;

    if (!mt_mul_ok(map->lanes.count + (size_t)1, map->columns, &cells))
        mt_memory_end();
    *work =
        (struct work){drawing, mt_arena_array(&drawing->arena, map->columns, sizeof *work->bytes),
                      mt_arena_array(&drawing->arena, map->columns, sizeof *work->has),
                      mt_arena_array(&drawing->arena, cells, 1)};
}

static void draw_cells(struct mt_heat_map *map, struct mt_drawing *drawing)
{
    struct work work;

    make_work(map, drawing, &work);
    find_scale(map, &work);
    for (uint32_t l = 0; l < map->lanes.count; l++)
        fill_lane(map, &work, l);
    draw_gaps(map, &work);
    draw_levels(map, &work);
    draw_deaths(map, &work);
}

void mt_heat_map_draw(struct mt_heat_map *map, struct mt_drawing *drawing, double y)
{
    mt_job_order_make(map->report, &drawing->arena, &map->order);
    place(map, drawing, y + LEGEND_HEIGHT);
    draw_cells(map, drawing);
    draw_legend(map, drawing, y + 10);
    draw_frame(map, drawing);
    map->draw_ticks(map, drawing, map->plot.y + map->plot.height);
    mt_heat_map_draw_sides(map, drawing, left_width(map), side_width(drawing));
    draw_titles(map, drawing);
    mt_chart_frame_footnote(drawing, footnote_of(map, drawing));
}
