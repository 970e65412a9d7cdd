/* The reserved peak of each rank as a bar, with the allocated peak in front of it. If ranks share a
 * column of pixels, the bar shows the largest reserved peak, with the smallest in front of it. */
#include <math.h>
#include <stdio.h>

#include "job_frame.h"
#include "ranks_layout.h"
#include "units.h"
#include "util.h"

/* The parts below the bars: a strip with deaths and gaps, numbers of ranks, groups. */

#define STRIP_Y      3.0 /* distance below the plot */
#define STRIP_HEIGHT 6.0
#define MIN_MARK     3.0 /* minimum pixels of a mark */
#define NUMBER_Y     26.0
#define GROUP_Y      48.0
#define TICK_PITCH   64.0 /* approximate distance of numbers, in pixels */

/* Returns the height of the axis below the plot, in pixels. */
static double ranks_axis_height(const struct mt_job_order *order)
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
        double left = lanes[i].at;

        for (end = i + 1; end < layout->lanes.count && is_marked(&layout->columns[i]) &&
                          is_marked(&layout->columns[end]) &&
                          lanes[end].at == lanes[end - 1].at + lanes[end - 1].size;)
            end++;
        if (!is_marked(&layout->columns[i]))
            continue;
        double width = fmax(lanes[end - 1].at + lanes[end - 1].size - left, MIN_MARK);
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

static void draw_number(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                        const struct mt_job_lane *lane, int32_t rank, double *end)
{
    const struct mt_paint tick = {.stroke = MT_COLOR_AXIS};
    double x = layout->plot.x + lane->at + lane->size / 2.0;
    double y = layout->plot.y + layout->plot.height;
    char text[MT_UNITS_TEXT];

    snprintf(text, sizeof text, "%d", (int)rank);
    double half = mt_text_room(text, MT_SIZE_SMALL, MT_REGULAR) / 2;
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
    uint64_t step = least < 2 ? 1 : mt_scale_count_step(least);
    int32_t last = -1;

    mt_chart_frame_text(drawing, layout->plot.x - 26,
                        layout->plot.y + layout->plot.height + NUMBER_Y, "rank", MT_SIZE_SMALL,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "axis-name");
    for (uint32_t i = 0; i < layout->lanes.count; i++) {
        int32_t rank = mt_job_lane_round_rank(&layout->order, &layout->lanes.lanes[i], step);

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

/* Draws marks of deaths and gaps, numbers of ranks, and groups. */
static void ranks_draw_axis(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    const struct mt_paint missing = {.fill = MT_COLOR_WARN}, death = {.fill = MT_COLOR_BAD};

    draw_strip(drawing, layout, is_missing, &missing, "strip:missing");
    draw_strip(drawing, layout, is_dead, &death, "strip:oom");
    draw_numbers(drawing, layout);
    if (layout->order.axis)
        draw_groups(drawing, layout);
}

#define HEIGHT          640.0
#define AXIS_WIDTH      84.0 /* room left of the plot for bytes */
#define LIMIT_GAPS      24.0 /* distances on both sides of the words next to a dashed line */
#define MAX_LIMIT_SHARE 0.25 /* words with their distances take at most this share of the width */
#define LEGEND_HEIGHT   30.0
#define LOW             440.0 /* pixels; lower pictures have no tiles */
#define MAX_BAR         72.0
#define BAR_GAP         4.0  /* pixels; in wider lanes, bars have a gap */
#define NEAR_LIMIT      1.6  /* the axis includes a limit up to this multiple of the peaks */
#define MAX_ROWS        6    /* maximum number of rows of labels */
#define FOOT_HEIGHT     48.0 /* room for two lines of footnote */
#define LEAST_PLOT      130.0

/* A limit: the smallest value of all rows, and whether rows differ. */
struct limit {
    const char *name;
    uint64_t bytes; /* 0 = not known */
    bool differs;
};

static void add_limit(struct limit *limit, uint64_t bytes)
{
    if (!bytes)
        return;
    limit->differs |= limit->bytes && limit->bytes != bytes;
    limit->bytes = limit->bytes ? mt_min_u64(limit->bytes, bytes) : bytes;
}

static void find_limits(const struct mt_job_report *report, struct limit limits[2])
{
    limits[0] = (struct limit){.name = "limit"};
    limits[1] = (struct limit){.name = "device"};
    for (uint32_t i = 0; i < report->row_count; i++) {
        add_limit(&limits[0], report->rows[i].record->identity.memory_limit_bytes);
        add_limit(&limits[1], report->rows[i].record->device_bytes);
    }
}

static uint64_t tallest(const struct mt_job_report *report)
{
    return mt_max_u64(mt_max_u64(report->reserved.max, report->allocated.max), 1);
}

static bool is_near(const struct mt_ranks_layout *layout, uint64_t bytes)
{
    return bytes && (double)bytes <= NEAR_LIMIT * (double)tallest(layout->report);
}

static void find_top(struct mt_ranks_layout *layout, const struct limit limits[2])
{
    uint64_t top = tallest(layout->report);

    for (int i = 0; i < 2; i++)
        if (is_near(layout, limits[i].bytes))
            top = mt_max_u64(top, limits[i].bytes);
    layout->top = (uint64_t)fmin((double)top * 1.03 + 1, 1.8e19);
}

static void add_row(struct mt_ranks_column *column, const struct mt_job_report *report,
                    uint32_t row)
{
    const struct mt_rank_record *record = report->rows[row].record;
    uint64_t bytes = record->reserved_peak.bytes;

    if (!column->row_count || bytes > column->reserved_max_bytes) {
        column->reserved_max_bytes = bytes;
        column->max_row = row;
    }
    if (!column->row_count || bytes < column->reserved_min_bytes)
        column->reserved_min_bytes = bytes;
    column->allocated_max_bytes =
        mt_max_u64(column->allocated_max_bytes, record->allocated_peak.bytes);
    column->death_count += record->outcome == MT_OUTCOME_OOM;
    column->row_count++;
}

static void fill_columns(struct mt_ranks_layout *layout)
{
    for (uint32_t i = 0; i < layout->lanes.count; i++) {
        const struct mt_job_lane *lane = &layout->lanes.lanes[i];
        struct mt_ranks_column *column = &layout->columns[i];
        double gap = lane->size >= BAR_GAP ? fmax(1, 0.16 * lane->size) : 0;
        double width = fmin(lane->size - gap, MAX_BAR);

        for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++) {
            const struct mt_job_slot *slot = &layout->order.slots[s];

            if (slot->count)
                column->missing_count += slot->count;
            else
                add_row(column, layout->report, slot->row);
        }
        column->left = layout->plot.x + lane->at + (lane->size - width) / 2;
        column->right = column->left + width;
    }
}

enum series { RESERVED_MAX, RESERVED_MIN, ALLOCATED };

static uint64_t value_of(const struct mt_ranks_column *column, enum series series)
{
    switch (series) {
    case RESERVED_MAX: return column->reserved_max_bytes;
    case RESERVED_MIN: return column->reserved_min_bytes;
    case ALLOCATED: break;
    }
    return column->allocated_max_bytes;
}

/* Draws bars. Adjacent bars are one shape, which touches the axis between bars that are not
 * adjacent. */
static void draw_area(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                      enum series series, enum mt_color color, const char *role)
{
    const struct mt_paint paint = {.fill = color};
    uint32_t lanes = layout->lanes.count;
    struct mt_point *points =
        mt_arena_array(&drawing->arena, 4 * (size_t)lanes + 1, sizeof *points);
    double bottom = layout->plot.y + layout->plot.height;
    size_t count = 0;

    for (uint32_t i = 0; i < lanes; i++) {
        const struct mt_ranks_column *column = &layout->columns[i];
        double y = mt_ranks_y(layout, value_of(column, series));

        if (!column->row_count)
            continue;
        if (!count || column->left > points[count - 1].x)
            points[count++] = (struct mt_point){column->left, bottom};
        else
            count--;
        points[count++] = (struct mt_point){column->left, y};
        points[count++] = (struct mt_point){column->right, y};
        points[count++] = (struct mt_point){column->right, bottom};
    }
    if (count)
        mt_draw_path(drawing, points, count, true, true, &paint, NULL, role);
}

/* Draws a line along the upper edge of adjacent bars, so that a bar of one pixel is also
 * visible. */
static void draw_edge(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    const struct mt_paint paint = {.stroke = MT_COLOR_RESERVED, .stroke_width = 1.2};
    uint32_t lanes = layout->lanes.count;
    struct mt_point *points =
        mt_arena_array(&drawing->arena, 2 * (size_t)lanes + 1, sizeof *points);
    size_t count = 0;

    for (uint32_t i = 0; i < lanes; i++) {
        const struct mt_ranks_column *column = &layout->columns[i];
        double y = mt_ranks_y(layout, column->reserved_max_bytes);

        if (count && (!column->row_count || column->left > points[count - 1].x)) {
            mt_draw_path(drawing, points, count, false, true, &paint, NULL, "edge");
            count = 0;
        }
        if (!column->row_count)
            continue;
        points[count++] = (struct mt_point){column->left, y};
        points[count++] = (struct mt_point){column->right, y};
    }
    if (count)
        mt_draw_path(drawing, points, count, false, true, &paint, NULL, "edge");
}

static const char *one_row_title(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                                 const struct mt_ranks_column *column)
{
    const struct mt_rank_record *record = layout->report->rows[column->max_row].record;
    char n[2][MT_UNITS_TEXT];

    return mt_arena_printf(&drawing->arena, "%s: reserved peak %s B, allocated peak %s B, %s",
                           mt_job_frame_row(drawing, layout->report, column->max_row),
                           mt_format_count(n[0], record->reserved_peak.bytes),
                           mt_format_count(n[1], record->allocated_peak.bytes),
                           mt_outcome_name(record->outcome));
}

static const char *column_title(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                                uint32_t lane)
{
    const struct mt_ranks_column *column = &layout->columns[lane];
    char n[3][MT_UNITS_TEXT];

    if (!column->row_count)
        return mt_job_frame_gap(drawing,
                                &layout->order.slots[layout->lanes.lanes[lane].first_slot]);
    if (column->row_count == 1)
        return one_row_title(drawing, layout, column);
    return mt_arena_printf(
        &drawing->arena, "%s ranks: reserved peak %s B to %s B, the largest is %s",
        mt_format_count(n[0], column->row_count), mt_format_count(n[1], column->reserved_min_bytes),
        mt_format_count(n[2], column->reserved_max_bytes),
        mt_job_frame_row(drawing, layout->report, column->max_row));
}

/* Draws invisible shapes with hover text, which cover the whole height of a lane. */
static void draw_titles(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    const struct mt_paint unseen = {.fill = MT_COLOR_PANEL, .unseen = true};

    for (uint32_t i = 0; i < layout->lanes.count; i++) {
        const struct mt_job_lane *lane = &layout->lanes.lanes[i];

        mt_draw_rect(drawing, layout->plot.x + lane->at, layout->plot.y, lane->size,
                     layout->plot.height, &unseen, column_title(drawing, layout, i), "lane");
    }
}

/* Draws the gaps. Adjacent gaps are drawn as one. */
static void draw_gaps(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    const struct mt_paint hatch = {.fill = MT_COLOR_UNUSED, .hatched = true};
    const struct mt_job_lane *lanes = layout->lanes.lanes;

    for (uint32_t i = 0, end; i < layout->lanes.count; i = end) {
        end = i + 1;
        if (layout->columns[i].row_count)
            continue;
        while (end < layout->lanes.count && !layout->columns[end].row_count &&
               lanes[end].at == lanes[end - 1].at + lanes[end - 1].size)
            end++;
        mt_draw_rect(drawing, layout->plot.x + lanes[i].at, layout->plot.y,
                     lanes[end - 1].at + lanes[end - 1].size - lanes[i].at, layout->plot.height,
                     &hatch, NULL, "gap");
    }
}

static const char *limit_words(struct mt_drawing *drawing, const struct limit *limit)
{
    return mt_arena_printf(&drawing->arena, "%s%s %s", limit->differs ? "smallest " : "",
                           limit->name, mt_job_frame_bytes(drawing, limit->bytes));
}

/* Draws lines at the limits. If two limits are close, the words of the larger one are above those
 * of the smaller one. */
static void draw_limits(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                        const struct limit limits[2])
{
    const struct mt_paint dashes = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.4, .dashed = true};
    double right = layout->plot.x + layout->plot.width, last = HUGE_VAL;

    for (int i = 0; i < 2; i++) {
        double y = mt_ranks_y(layout, limits[i].bytes), at = y + 4;
        const struct mt_point points[2] = {{layout->plot.x, y}, {right, y}};

        if (!is_near(layout, limits[i].bytes))
            continue;
        const char *words = mt_text_fit(drawing, limit_words(drawing, &limits[i]), MT_SIZE_SMALL,
                                        MT_REGULAR, drawing->width - right - 12, false);
        mt_draw_path(drawing, points, 2, false, false, &dashes, limit_words(drawing, &limits[i]),
                     "limit");
        if (fabs(at - last) < 16)
            at = limits[1].bytes > limits[0].bytes ? last - 16 : last + 16;
        mt_chart_frame_text(drawing, right + 8, at, words, MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_LIMIT, MT_ANCHOR_START, "label:limit");
        last = at;
    }
}

static const char *rank_note(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                             uint32_t row)
{
    const char *name = row == MT_NO_ROW ? "" : mt_job_frame_row(drawing, layout->report, row);

    return mt_text_fit(drawing, name, MT_SIZE_SMALL, MT_REGULAR, 150, false);
}

static const char *deaths_note(struct mt_drawing *drawing, const struct mt_job_report *report)
{
    uint32_t count = report->outcome_counts[MT_OUTCOME_OOM];
    char n[MT_UNITS_TEXT];

    return mt_arena_printf(&drawing->arena, "%s ran out of memory",
                           count ? mt_format_count(n, count) : "none");
}

static const char *seen_value(struct mt_drawing *drawing, const struct mt_job_report *report)
{
    char n[2][MT_UNITS_TEXT];

    mt_format_count(n[0], report->seen_count ? report->seen_count : report->row_count);
    mt_format_count(n[1], report->world);
    return report->missing_count ? mt_arena_printf(&drawing->arena, "%s of %s", n[0], n[1])
                                 : mt_arena_printf(&drawing->arena, "%s", n[0]);
}

static double draw_tiles(struct mt_drawing *drawing, const struct mt_ranks_layout *layout, double y)
{
    const struct mt_job_report *report = layout->report;
    const struct mt_job_spread *reserved = &report->reserved;
    bool is_whole = !report->missing_count, has_deaths = report->outcome_counts[MT_OUTCOME_OOM];
    const struct mt_tile tiles[] = {
        {"Highest reserved peak", mt_job_frame_bytes(drawing, reserved->max),
         rank_note(drawing, layout, reserved->max_row), MT_COLOR_LEVEL, "Highest"},
        {"Median", mt_job_frame_bytes(drawing, reserved->median),
         rank_note(drawing, layout, reserved->median_row), MT_COLOR_LEVEL, NULL},
        {"Lowest", mt_job_frame_bytes(drawing, reserved->min),
         rank_note(drawing, layout, reserved->min_row), MT_COLOR_LEVEL, NULL},
        {"Ranks", seen_value(drawing, report), deaths_note(drawing, report),
         has_deaths  ? MT_COLOR_BAD
         : !is_whole ? MT_COLOR_WARN
                     : MT_COLOR_GOOD,
         NULL}};

    return mt_chart_frame_tiles(drawing, y, tiles, MT_ARRAY_LEN(tiles)) + 10;
}

static void draw_legend(struct mt_drawing *drawing, const struct mt_ranks_layout *layout, double y)
{
    const struct mt_job_report *report = layout->report;
    struct mt_swatch swatches[5] = {{"Allocated peak", MT_COLOR_LEVEL}};
    size_t count = 1;

    swatches[count++] =
        (struct mt_swatch){layout->lanes.is_shared ? "Reserved peak, smallest" : "Reserved peak",
                           MT_COLOR_LEVEL_RANGE};
    if (layout->lanes.is_shared)
        swatches[count++] = (struct mt_swatch){"Reserved peak, largest", MT_COLOR_LEVEL_PEAK};
    if (report->outcome_counts[MT_OUTCOME_OOM])
        swatches[count++] = (struct mt_swatch){"Out of memory", MT_COLOR_BAD};
    if (report->missing_count)
        swatches[count++] = (struct mt_swatch){"Missing", MT_COLOR_WARN};
    mt_chart_frame_swatches(drawing, MT_MARGIN, y + 12, drawing->width - MT_MARGIN, swatches,
                            count);
}

static const char *footnote_of(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                               const struct limit limits[2])
{
    struct mt_buf note = {0};

    if (layout->lanes.is_shared)
        mt_job_frame_add(&note, "ranks that share a column of pixels: the largest and the smallest "
                                "of them; out of memory is shown before a gap");
    if (layout->order.axis)
        mt_job_frame_add(&note, "ranks in the order of %s",
                         mt_chart_frame_short(
                             drawing, mt_job_frame_name(drawing, layout->order.axis->name), 40));
    if (layout->order.is_shortened)
        mt_job_frame_add(&note, "a gap is narrower than its missing ranks");
    for (int i = 0; i < 2; i++)
        if (limits[i].bytes && !is_near(layout, limits[i].bytes))
            mt_job_frame_add(&note, "off the scale: %s", limit_words(drawing, &limits[i]));
    if (layout->unnamed_outliers)
        mt_job_frame_add(&note, "%u more %s from the replicas", (unsigned)layout->unnamed_outliers,
                         layout->unnamed_outliers == 1 ? "rank differs" : "ranks differ");
    if (layout->report->incomplete_count)
        mt_job_frame_add(&note, "peaks of an incomplete recording are lower bounds");
    mt_job_frame_add(&note, "peaks of one rank need not be at one time");
    return mt_buf_take(&note, &drawing->arena);
}

/* Returns the width of the words for dashed lines, right of the plot. */
static double limit_width(struct mt_drawing *drawing, const struct mt_ranks_layout *layout,
                          const struct limit limits[2])
{
    double width = MT_MARGIN;

    for (int i = 0; i < 2; i++)
        if (is_near(layout, limits[i].bytes))
            width = fmax(width, LIMIT_GAPS + mt_text_room(limit_words(drawing, &limits[i]),
                                                          MT_SIZE_SMALL, MT_REGULAR));
    return fmin(width, drawing->width * MAX_LIMIT_SHARE);
}

/* Places left and right edges, and sets the maximum number of rows of labels. */
static void place_across(struct mt_drawing *drawing, struct mt_ranks_layout *layout, double y,
                         const struct limit limits[2])
{
    double right = limit_width(drawing, layout, limits);
    double height = drawing->height - FOOT_HEIGHT - ranks_axis_height(&layout->order) - y;

    layout->label_rows =
        (uint32_t)fmin(fmax(floor((height - LEAST_PLOT) / MT_RANKS_LABEL_PITCH), 1), MAX_ROWS);
    layout->plot.x = MT_MARGIN + AXIS_WIDTH - 12;
    layout->plot.width = floor(drawing->width - right - layout->plot.x);
}

static void place_down(const struct mt_drawing *drawing, struct mt_ranks_layout *layout, double y)
{
    double bottom = drawing->height - FOOT_HEIGHT - ranks_axis_height(&layout->order);

    layout->plot.y = round(y + layout->label_rows * MT_RANKS_LABEL_PITCH + 10);
    layout->plot.height = bottom - layout->plot.y;
}

static void draw_bars(struct mt_drawing *drawing, const struct mt_ranks_layout *layout)
{
    struct mt_ticks ticks;

    mt_byte_ticks(&ticks, tallest(layout->report), layout->top,
                  (size_t)fmin(fmax(layout->plot.height / 44, 2), 10));
    mt_chart_frame_byte_axis(drawing, &layout->plot, &ticks, layout->top);
    draw_gaps(drawing, layout);
    if (layout->lanes.is_shared)
        draw_area(drawing, layout, RESERVED_MAX, MT_COLOR_LEVEL_PEAK, "reserved");
    draw_area(drawing, layout, RESERVED_MIN, MT_COLOR_LEVEL_RANGE,
              layout->lanes.is_shared ? "reserved-least" : "reserved");
    draw_area(drawing, layout, ALLOCATED, MT_COLOR_LEVEL, "allocated");
    draw_edge(drawing, layout);
}

static void make_columns(struct mt_drawing *drawing, struct mt_ranks_layout *layout)
{
    mt_job_lanes_make(&layout->order, &drawing->arena, (uint32_t)layout->plot.width, 1,
                      &layout->lanes);
    layout->columns =
        mt_arena_array(&drawing->arena, layout->lanes.count + (size_t)1, sizeof *layout->columns);
    fill_columns(layout);
}

static void draw_all(struct mt_drawing *drawing, struct mt_ranks_layout *layout, double y)
{
    struct limit limits[2];

    mt_job_order_make(layout->report, &drawing->arena, &layout->order);
    find_limits(layout->report, limits);
    find_top(layout, limits);
    if (drawing->height >= LOW)
        y = draw_tiles(drawing, layout, y);
    place_across(drawing, layout, y + LEGEND_HEIGHT, limits);
    make_columns(drawing, layout);
    mt_ranks_place_labels(drawing, layout);
    place_down(drawing, layout, y + LEGEND_HEIGHT);
    draw_legend(drawing, layout, y);
    draw_bars(drawing, layout);
    draw_limits(drawing, layout, limits);
    ranks_draw_axis(drawing, layout);
    mt_ranks_draw_labels(drawing, layout);
    draw_titles(drawing, layout);
    mt_chart_frame_footnote(drawing, footnote_of(drawing, layout, limits));
}

static void draw(const struct mt_job_report *report, const struct mt_job_chart_options *options,
                 struct mt_drawing *drawing)
{
    struct mt_ranks_layout layout = {.report = report};
    double y =
        mt_job_frame_begin(drawing, report, options, HEIGHT, "ranks", "reserved peak by rank");

    if (!report->row_count)
        mt_chart_frame_nothing(drawing, y + 10, "No rank was recorded", "the job has no records");
    else
        draw_all(drawing, &layout, y);
}

const struct mt_job_chart mt_job_chart_ranks = {
    .name = "ranks", .summary = "reserved peak of each rank, by group", .draw = draw};
