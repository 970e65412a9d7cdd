/* The chart of a comparison: the levels of two runs, the sites that changed, and what falls away.
 *
 * The difference in memory between two runs at the same instant. In the waterfall and in the table,
 * the bytes of A plus all changes are the bytes of B. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chart.h"
#include "chart_frame.h"
#include "diff.h"
#include "diff_chart.h"
#include "question.h"
#include "report_query.h"
#include "units.h"
#include "util.h"

struct diff_layout {
    const struct mt_diff_view *view;
    struct mt_box falls; /* the waterfall, including its text */
    /* width 0: there is no room for the table */
    double table_x, table_y, table_width, table_bottom;
    uint32_t changed_sites;
};

/* Returns the paint of a change. Growth is solid and shrinkage is hatched, because some readers
 * cannot distinguish the colors. */
static inline struct mt_paint diff_paint(enum mt_color color, bool grew)
{
    return (struct mt_paint){
        .fill = color, .hatched = !grew, .stroke = grew ? MT_COLOR_NONE : color};
}

/* Returns the number of rows that differ. They come before the others. */
static inline uint32_t diff_changed_rows(const struct mt_diff_rows *rows)
{
    uint32_t count = 0;

    while (count < rows->count && mt_diff_size(&rows->rows[count]))
        count++;
    return count;
}

/* Returns "12,345 B in 3 blocks, then 23,456 B in 5 (+11,111 B)". */
static inline const char *diff_exact(struct mt_drawing *drawing, const struct mt_diff_row *row)
{
    char n[5][MT_UNITS_TEXT];

    return mt_arena_printf(
        &drawing->arena, "%s B in %s, then %s B in %s (%s%s B)",
        mt_format_count(n[0], row->a_bytes), mt_format_counted(n[1], row->a_blocks, "block"),
        mt_format_count(n[2], row->b_bytes), mt_format_count(n[3], row->b_blocks),
        row->b_bytes > row->a_bytes   ? "+"
        : row->b_bytes < row->a_bytes ? "\xE2\x88\x92"
                                      : "",
        mt_format_count(n[4], mt_diff_size(row)));
}

/* Sites by their change, which is a bar to the left or right of a line. */

#define ROW        29.0
#define HEAD       34.0
#define FOOT       26.0
#define BAR_HEIGHT 11.0
#define CHANGE     80.0 /* widths of columns, from the right */
#define NEW        104.0

static const char *site_title(struct mt_drawing *drawing, const struct mt_diff_row *row)
{
    return mt_arena_printf(
        &drawing->arena, "%s%s%s%s%s: %s", mt_chart_frame_short(drawing, row->label, 200),
        *row->phase ? ", allocated in " : "", mt_chart_frame_short(drawing, row->phase, 60),
        row->label_a ? ", was " : "",
        row->label_a ? mt_chart_frame_short(drawing, row->label_a, 200) : "",
        diff_exact(drawing, row));
}

/* Shortens a site such as "forward train.py:47" but keeps its end. */
static const char *fit_label(struct mt_drawing *drawing, const char *label, double width)
{
    return mt_chart_frame_fit_site(drawing, mt_chart_frame_short(drawing, label, 300), MT_SIZE_BODY,
                                   width);
}

struct columns {
    double label_x, label_width, zero_x, side; /* side: width of the largest change, in pixels */
    double change_right, new_right;
};

static struct columns columns_of(const struct diff_layout *layout)
{
    struct columns columns = {.label_x = layout->table_x + 17,
                              .new_right = layout->table_x + layout->table_width};
    const struct mt_diff_rows *rows = &layout->view->device->sites;
    uint64_t up = 0, down = 0;
    double bars = layout->table_width > 600 ? 130 : 90;

    for (uint32_t i = 0; i < rows->count; i++)
        if (mt_diff_change(&rows->rows[i]) > 0)
            up = mt_max_u64(up, mt_diff_size(&rows->rows[i]));
        else
            down = mt_max_u64(down, mt_diff_size(&rows->rows[i]));
    double whole = fmax((double)up + (double)down, 1);
    columns.change_right = columns.new_right - NEW;
    columns.zero_x = round(columns.change_right - CHANGE - 8 - bars * ((double)up / whole));
    columns.side = bars / whole;
    columns.label_width = columns.zero_x - bars * ((double)down / whole) - 10 - columns.label_x;
    return columns;
}

static const char *new_words(char text[MT_UNITS_TEXT + 8], const struct mt_diff_row *row)
{
    char bytes[MT_UNITS_TEXT];

    if (!row->b_blocks)
        return "gone";
    snprintf(text, MT_UNITS_TEXT + 8, "%s%s", row->a_blocks ? "" : "new \xC2\xB7 ",
             mt_format_bytes(bytes, row->b_bytes));
    return text;
}

static void draw_row(struct mt_drawing *drawing, const struct columns *columns,
                     const struct mt_diff_row *row, double y)
{
    bool grew = row->b_bytes > row->a_bytes;
    struct mt_paint paint = diff_paint(grew ? MT_COLOR_CHANGE_LAST : MT_COLOR_CHANGE_0, grew);
    const struct mt_paint dot = {.fill = mt_role_color(row->role)};
    double width = fmax(columns->side * (double)mt_diff_size(row), 1);
    char change[MT_UNITS_TEXT], text[MT_UNITS_TEXT + 8];

    mt_draw_group_begin(drawing, site_title(drawing, row), "site");
    mt_draw_circle(drawing, columns->label_x - 11, y - 4.5, 4, &dot, NULL, "swatch");
    mt_chart_frame_text(drawing, columns->label_x, y,
                        fit_label(drawing, row->label, columns->label_width), MT_SIZE_BODY,
                        MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "site-name");
    mt_draw_rect(drawing, grew ? columns->zero_x : columns->zero_x - width,
                 y - 4.5 - BAR_HEIGHT / 2, width, BAR_HEIGHT, &paint, NULL, "site-bar");
    mt_chart_frame_text(drawing, columns->change_right, y,
                        mt_format_change(change, mt_diff_change(row)), MT_SIZE_BODY, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_END, "site-change");
    mt_chart_frame_text(drawing, columns->new_right, y, new_words(text, row), MT_SIZE_AXIS,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "site-new");
    mt_draw_group_end(drawing);
}

static void draw_sites_heading(struct mt_drawing *drawing, const struct diff_layout *layout,
                               const struct columns *columns)
{
    double y = layout->table_y + 12;

    mt_chart_frame_text(drawing, layout->table_x, y,
                        layout->changed_sites ? "Call sites that changed" : "No call site changed",
                        14, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    if (!layout->changed_sites)
        return;
    mt_chart_frame_text(drawing, columns->change_right, y, "change", MT_SIZE_AXIS, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "heading");
    mt_chart_frame_text(drawing, columns->new_right, y, "now", MT_SIZE_AXIS, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "heading");
}

/* Draws the sum of the sites without a row, and the number of unchanged sites. */
static void draw_rest(struct mt_drawing *drawing, const struct diff_layout *layout, uint32_t shown,
                      double y)
{
    const struct mt_diff_rows *rows = &layout->view->device->sites;
    uint32_t same = rows->count - layout->changed_sites;
    char change[MT_UNITS_TEXT], n[2][MT_UNITS_TEXT], text[240] = "";
    int64_t sum = 0;

    for (uint32_t i = shown; i < layout->changed_sites; i++)
        sum += mt_diff_change(&rows->rows[i]);
    if (shown < layout->changed_sites)
        snprintf(text, sizeof text, "%s other%s: %s together",
                 mt_format_count(n[0], layout->changed_sites - shown),
                 layout->changed_sites - shown == 1 ? "" : "s", mt_format_change(change, sum));
    size_t length = strlen(text);
    if (same)
        snprintf(text + length, sizeof text - length, "%s%s unchanged, not listed",
                 length ? " \xC2\xB7 " : "", mt_format_counted(n[1], same, "call site"));
    mt_chart_frame_text(drawing, layout->table_x, y,
                        mt_text_fit(drawing, text, 12.5, MT_REGULAR, layout->table_width, false),
                        12.5, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "sites-rest");
}

static double diff_table_height(const struct diff_layout *layout)
{
    return HEAD + FOOT + ROW * fmin(layout->changed_sites, 14);
}

static void diff_draw_table(struct mt_drawing *drawing, const struct diff_layout *layout)
{
    const struct mt_paint rule = {.stroke = MT_COLOR_GRID}, zero = {.stroke = MT_COLOR_AXIS};
    double y = layout->table_y + HEAD, room = layout->table_bottom - FOOT - y;
    uint32_t most = room > 0 ? (uint32_t)(room / ROW) : 0;
    uint32_t shown = layout->changed_sites < most ? layout->changed_sites : most;

    if (layout->table_width <= 0)
        return;
    struct columns columns = columns_of(layout);
    draw_sites_heading(drawing, layout, &columns);
    for (uint32_t i = 0; i < shown; i++, y += ROW) {
        mt_draw_line(drawing, layout->table_x, y - 8, layout->table_x + layout->table_width, y - 8,
                     &rule);
        draw_row(drawing, &columns, &layout->view->device->sites.rows[i], y + 11);
    }
    if (shown)
        mt_draw_line(drawing, columns.zero_x, layout->table_y + HEAD - 4, columns.zero_x, y - 12,
                     &zero);
    draw_rest(drawing, layout, shown, y + 12);
}

/* The waterfall: a bar for run A, a step up or down for each role, and a bar for run B. */

#define MIN_COLUMN  76.0
#define NAME_HEIGHT 40.0 /* room below the axis for two lines of names */
#define TOP_ROOM    46.0 /* room for the heading, and for a number above the highest bar */

enum { MAX_STEPS = MT_ROLE_COUNT + 2 };

/* A change, or a bar at one of the ends. */
struct step {
    struct mt_diff_row row;
    uint64_t from, to; /* bytes before and after the step */
    bool is_end;
    enum mt_color color;
    const char *name;
};

struct falls {
    struct step steps[MAX_STEPS];
    uint32_t count;
    struct mt_box plot;
    uint64_t low, high; /* range of the axis, which starts at 0 if low is 0 */
    double column;
};

static struct step end_step(const char *name, uint64_t bytes)
{
    return (struct step){.to = bytes, .is_end = true, .color = MT_COLOR_ROOT, .name = name};
}

static struct mt_diff_row rest_of(const struct mt_diff_rows *rows, uint32_t first)
{
    struct mt_diff_row rest = {.label = "others"};

    for (uint32_t i = first; i < rows->count; i++) {
        rest.a_bytes += rows->rows[i].a_bytes;
        rest.b_bytes += rows->rows[i].b_bytes;
        rest.a_blocks += rows->rows[i].a_blocks;
        rest.b_blocks += rows->rows[i].b_blocks;
    }
    return rest;
}

static void add_change(struct falls *falls, const struct mt_diff_row *row, const char *name,
                       enum mt_color color)
{
    uint64_t from = falls->steps[falls->count - 1].to;

    falls->steps[falls->count++] = (struct step){.row = *row,
                                                 .from = from,
                                                 .to = from + row->b_bytes - row->a_bytes,
                                                 .color = color,
                                                 .name = name};
}

/* Makes steps for roles that change, the largest change first. Roles that do not fit are one step.
 * The steps sum to the total change. */
static void make_steps(struct falls *falls, const struct mt_device_diff *device, uint32_t most)
{
    const struct mt_diff_rows *roles = &device->roles;
    uint32_t changed = diff_changed_rows(roles);
    uint32_t shown = changed > most ? most - 1 : changed;

    falls->steps[falls->count++] = end_step("A", device->a->answer->instant.bytes.allocated);
    for (uint32_t i = 0; i < shown; i++)
        add_change(falls, &roles->rows[i], mt_role_title(roles->rows[i].role),
                   mt_role_color(roles->rows[i].role));
    if (shown < changed) {
        struct mt_diff_row rest = rest_of(roles, shown);
        add_change(falls, &rest, "others", MT_COLOR_FAINT);
    }
    falls->steps[falls->count++] = end_step("B", device->b->answer->instant.bytes.allocated);
}

/* Sets the range of the axis. If a change would be too small on an axis from 0, the axis starts
 * higher. */
static void set_range(struct falls *falls)
{
    uint64_t low = UINT64_MAX, high = 0;

    for (uint32_t i = 0; i < falls->count; i++) {
        low = mt_min_u64(low, falls->steps[i].to);
        high = mt_max_u64(high, falls->steps[i].to);
    }
    falls->high = mt_max_u64(high, 1);
    if (high > low && high - low < high / 8)
        falls->low = low - mt_min_u64(low, (high - low) / 2);
}

static double y_of(const struct falls *falls, uint64_t bytes)
{
    double low = (double)falls->low, share = ((double)bytes - low) / ((double)falls->high - low);

    return falls->plot.y + falls->plot.height * (1 - fmax(share, 0));
}

static double x_of(const struct falls *falls, uint32_t step)
{
    return falls->plot.x + step * falls->column;
}

static void draw_axis(struct mt_drawing *drawing, struct falls *falls)
{
    struct mt_paint line = {.stroke = MT_COLOR_GRID};
    char text[MT_TICK_TEXT + 1];
    struct mt_ticks ticks;
    uint64_t range = falls->high - falls->low;

    mt_byte_ticks(&ticks, range, range, (size_t)fmin(fmax(falls->plot.height / 46, 2), 6));
    for (size_t i = 0; i < ticks.count; i++) {
        double y = y_of(falls, falls->low + ticks.ticks[i].value);

        line.stroke = i ? MT_COLOR_GRID : MT_COLOR_AXIS;
        mt_draw_line(drawing, falls->plot.x, y, falls->plot.x + falls->plot.width, y, &line);
        snprintf(text, sizeof text, "%s%s", falls->low ? "+" : "", ticks.ticks[i].label);
        mt_chart_frame_text(drawing, falls->plot.x - 9, y + 4.5, text, MT_SIZE_AXIS, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_END, "tick-y");
    }
}

static void draw_falls_heading(struct mt_drawing *drawing, const struct falls *falls,
                               const struct mt_box *box)
{
    char n[2][MT_UNITS_TEXT], text[160];

    snprintf(text, sizeof text, "From A to B, by role");
    if (falls->low)
        snprintf(text, sizeof text, "By role; this axis starts at %s (%s B)",
                 mt_format_bytes(n[0], falls->low), mt_format_count(n[1], falls->low));
    mt_chart_frame_text(drawing, box->x, box->y + 12,
                        mt_text_fit(drawing, text, 14, MT_SEMIBOLD, box->width, false), 14,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
}

/* Draws a name in one or two lines. "Optimizer state" takes two. */
static void draw_name(struct mt_drawing *drawing, const struct falls *falls, uint32_t index)
{
    const struct step *step = &falls->steps[index];
    double x = x_of(falls, index) + falls->column / 2, y = falls->plot.y + falls->plot.height + 18;
    const char *space = strchr(step->name, ' ');
    size_t length = space ? (size_t)(space - step->name) : strlen(step->name);
    const char *first = mt_arena_text(&drawing->arena, step->name, length);
    enum mt_color color = step->is_end ? MT_COLOR_TEXT : MT_COLOR_MUTED;

    mt_chart_frame_text(drawing, x, y, first, 12.5, MT_REGULAR, color, MT_ANCHOR_MIDDLE,
                        "step-name");
    if (space)
        mt_chart_frame_text(drawing, x, y + 16, space + 1, 12.5, MT_REGULAR, color,
                            MT_ANCHOR_MIDDLE, "step-name");
}

static void draw_value(struct mt_drawing *drawing, const struct falls *falls, uint32_t index)
{
    const struct step *step = &falls->steps[index];
    const struct mt_text_style style = {.size = MT_SIZE_AXIS,
                                        .weight = MT_SEMIBOLD,
                                        .anchor = MT_ANCHOR_MIDDLE,
                                        .color = MT_COLOR_TEXT,
                                        .halo = true};
    double top = y_of(falls, mt_max_u64(step->is_end ? 0 : step->from, step->to)), y = top - 7;
    double bottom = y_of(falls, mt_min_u64(step->from, step->to));
    char text[MT_UNITS_TEXT];

    if (step->is_end)
        mt_format_bytes(text, step->to);
    else
        mt_format_change(text, mt_diff_change(&step->row));
    /* the number is below a role that shrank, if there is room */
    if (!step->is_end && step->to < step->from && bottom + 20 < falls->plot.y + falls->plot.height)
        y = bottom + 17;
    mt_draw_text(drawing, x_of(falls, index) + falls->column / 2, y, text, &style, "step-value");
}

static void draw_bar(struct mt_drawing *drawing, const struct falls *falls, uint32_t index)
{
    const struct step *step = &falls->steps[index];
    struct mt_paint paint = diff_paint(step->color, step->is_end || step->to > step->from);
    uint64_t low = step->is_end ? falls->low : mt_min_u64(step->from, step->to);
    uint64_t high = step->is_end ? step->to : mt_max_u64(step->from, step->to);
    double top = y_of(falls, high), height = y_of(falls, low) - top;
    const char *title;
    char n[MT_UNITS_TEXT];

    if (step->is_end)
        title = mt_arena_printf(&drawing->arena, "%s: %s B allocated", step->name,
                                mt_format_count(n, step->to));
    else
        title =
            mt_arena_printf(&drawing->arena, "%s: %s", step->name, diff_exact(drawing, &step->row));
    /* a bar that is too thin is drawn as a line */
    if (height < 1.5) {
        paint = diff_paint(step->color, true);
        top = fmin(top, falls->plot.y + falls->plot.height - 1.5);
        height = 1.5;
    }
    mt_draw_rect(drawing, x_of(falls, index) + falls->column * 0.12, top, falls->column * 0.76,
                 height, &paint, title, step->is_end ? "end" : "change");
}

/* Draws a break in the first or last bar if the axis does not start at 0. */
static void draw_break(struct mt_drawing *drawing, const struct falls *falls, uint32_t index)
{
    const struct mt_paint paint = {.stroke = MT_COLOR_BACKGROUND, .stroke_width = 4};
    double left = x_of(falls, index) + falls->column * 0.12, width = falls->column * 0.76;
    double y = falls->plot.y + falls->plot.height - 16;
    struct mt_point points[7];

    for (uint32_t i = 0; i < MT_ARRAY_LEN(points); i++)
        points[i] = (struct mt_point){left + width * i / 6, y + (i % 2 ? 5 : 0)};
    if (falls->low && falls->steps[index].is_end)
        mt_draw_path(drawing, points, MT_ARRAY_LEN(points), false, false, &paint, NULL, "break");
}

/* Draws a line from the level at which a step ends to the next step. */
static void draw_link(struct mt_drawing *drawing, const struct falls *falls, uint32_t index)
{
    const struct mt_paint dots = {.stroke = MT_COLOR_MUTED, .dotted = true};
    double y = y_of(falls, falls->steps[index].to);

    mt_draw_line(drawing, x_of(falls, index) + falls->column * 0.88, y,
                 x_of(falls, index + 1) + falls->column * 0.12, y, &dots);
}

static void diff_draw_falls(struct mt_drawing *drawing, const struct diff_layout *layout)
{
    const struct mt_box *box = &layout->falls;
    const double left = MT_MARGIN + 1.05 * mt_text_width("+750 MiB", MT_SIZE_AXIS, MT_REGULAR) + 9;
    struct falls falls = {
        .plot = {round(left), box->y + TOP_ROOM, 0, box->height - TOP_ROOM - NAME_HEIGHT}};

    falls.plot.width = box->x + box->width - falls.plot.x;
    uint32_t most = (uint32_t)fmax(falls.plot.width / MIN_COLUMN - 2, 2);
    make_steps(&falls, layout->view->device, most < MT_ROLE_COUNT ? most : MT_ROLE_COUNT);
    set_range(&falls);
    falls.column = fmin(floor(falls.plot.width / falls.count), 120);
    falls.plot.width = falls.column * falls.count;
    draw_falls_heading(drawing, &falls, box);
    draw_axis(drawing, &falls);
    for (uint32_t i = 0; i < falls.count; i++) {
        draw_bar(drawing, &falls, i);
        draw_break(drawing, &falls, i);
        draw_name(drawing, &falls, i);
        if (i + 1 < falls.count)
            draw_link(drawing, &falls, i);
    }
    for (uint32_t i = 0; i < falls.count; i++)
        draw_value(drawing, &falls, i);
}

#define STANDARD_HEIGHT 680.0
#define NARROW_FALLS    360.0 /* height in a narrow picture, where the table is below */
#define FALLS_WIDTH     560.0
#define MIN_FALLS       190.0
#define WARNING_PITCH   19.0

enum { MAX_WARNINGS = 3 };

static const char *name_of(struct mt_drawing *drawing, const struct mt_report *report)
{
    return mt_chart_frame_short(drawing, report->name && *report->name ? report->name : "trace",
                                90);
}

static const char *title_of(struct mt_drawing *drawing, const struct mt_diff_view *view)
{
    const char *a = name_of(drawing, view->diff->a), *b = name_of(drawing, view->diff->b);
    const char *title;

    if (view->device && view->diff->device_count > 1)
        title = mt_arena_printf(&drawing->arena, "%s \xE2\x86\x92 %s, device %u", a, b,
                                (unsigned)view->device->b->device);
    else
        title = mt_arena_printf(&drawing->arena, "%s \xE2\x86\x92 %s", a, b);
    return title;
}

static const char *instant_words(const struct mt_question *question)
{
    switch (question->at) {
    case MT_AT_PEAK: return "at the allocated peak of each run";
    case MT_AT_RESERVED_PEAK: return "at the reserved peak of each run";
    case MT_AT_OOM: return "when each run ran out of memory";
    case MT_AT_END: return "at the end of each run";
    case MT_AT_TIME: return "at the same time of each run";
    case MT_AT_EVENT: return "at the event of that number in each run";
    case MT_AT_PHASE: break;
    }
    return "at the peak within the same phase of each run";
}

static const char *where(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device)
{
    const struct mt_instant *instant = &device->answer->instant;
    const char *text = mt_chart_frame_where(drawing, report, instant->phase, instant->step);

    return *text ? text : "outside steps";
}

static const char *facts_of(struct mt_drawing *drawing, const struct mt_diff_view *view)
{
    const struct mt_device_diff *device = view->device;

    if (!device)
        return "no device has memory events in both runs";
    return mt_arena_printf(&drawing->arena, "live bytes %s \xC2\xB7 A: %s \xC2\xB7 B: %s",
                           instant_words(view->question), where(drawing, view->diff->a, device->a),
                           where(drawing, view->diff->b, device->b));
}

/* Draws reasons why the comparison may be invalid. Returns the y below. */
static double draw_warnings(struct mt_drawing *drawing, const struct mt_diff *diff, double y)
{
    const struct mt_paint panel = {.fill = MT_COLOR_PANEL, .radius = 6};
    const struct mt_paint edge = {.fill = MT_COLOR_WARN, .radius = 2};
    uint32_t shown = diff->run_count > MAX_WARNINGS ? MAX_WARNINGS : diff->run_count;
    double height = shown * WARNING_PITCH + 10, room = drawing->width - 2 * MT_MARGIN - 28;

    if (!shown)
        return y;
    mt_draw_rect(drawing, MT_MARGIN, y, drawing->width - 2 * MT_MARGIN, height, &panel, NULL,
                 "warning-panel");
    mt_draw_rect(drawing, MT_MARGIN, y, 4, height, &edge, NULL, NULL);
    for (uint32_t i = 0; i < shown; i++) {
        const struct mt_run_difference *run = &diff->runs[i];
        uint32_t more = i + 1 == shown ? diff->run_count - shown : 0;
        const char *text = mt_arena_printf(&drawing->arena, "the runs differ in %s: %s, then %s",
                                           run->what, mt_chart_frame_short(drawing, run->a, 80),
                                           mt_chart_frame_short(drawing, run->b, 80));

        if (more)
            text = mt_arena_printf(&drawing->arena, "%s, and in %u more", text, (unsigned)more);
        mt_chart_frame_text(drawing, MT_MARGIN + 14, y + 18 + i * WARNING_PITCH,
                            mt_text_fit(drawing, text, 12.5, MT_SEMIBOLD, room, false), 12.5,
                            MT_SEMIBOLD, MT_COLOR_WARN, MT_ANCHOR_START, "warning");
    }
    return y + height + 10;
}

/* Returns a change as text: "−1.92 GiB (−29.8%)". */
static const char *change_words(struct mt_drawing *drawing, uint64_t a, uint64_t b)
{
    char change[MT_UNITS_TEXT], share[MT_UNITS_TEXT];

    mt_format_change(change, (int64_t)(b - a));
    mt_format_percent(share, a ? ((double)b - (double)a) / (double)a : 0);
    return a && a != b
               ? mt_arena_printf(&drawing->arena, "%s (%s%s)", change, b > a ? "+" : "", share)
               : mt_arena_printf(&drawing->arena, "%s", change);
}

static enum mt_color edge_of(uint64_t a, uint64_t b)
{
    return b > a ? MT_COLOR_CHANGE_LAST : b < a ? MT_COLOR_CHANGE_0 : MT_COLOR_FAINT;
}

static double draw_tiles(struct mt_drawing *drawing, const struct mt_diff_view *view, double y)
{
    const struct mt_bytes *a = &view->device->a->answer->instant.bytes;
    const struct mt_bytes *b = &view->device->b->answer->instant.bytes;
    const struct mt_diff_rows *sites = &view->device->sites;
    char values[4][MT_UNITS_TEXT], was[MT_UNITS_TEXT];
    const struct mt_diff_row *most = sites->count ? &sites->rows[0] : NULL;
    bool has_reserved = a->reserved && b->reserved;
    const char *unused =
        mt_arena_printf(&drawing->arena, "was %s", mt_format_percent(was, mt_unused_share(a)));
    struct mt_tile tiles[4] = {
        {"Allocated", mt_format_bytes(values[0], b->allocated),
         change_words(drawing, a->allocated, b->allocated), edge_of(a->allocated, b->allocated),
         NULL},
        {"Largest change of one site", mt_format_change(values[1], most ? mt_diff_change(most) : 0),
         !most || !mt_diff_size(most) ? "no differences"
         : !most->a_blocks            ? "new"
         : !most->b_blocks            ? "gone"
                                      : "it existed before",
         most ? edge_of(most->a_bytes, most->b_bytes) : MT_COLOR_FAINT, "Largest change"},
        {"Reserved then", mt_format_bytes(values[2], b->reserved),
         change_words(drawing, a->reserved, b->reserved), edge_of(a->reserved, b->reserved), NULL},
        {"Unused", mt_format_percent(values[3], mt_unused_share(b)), unused, MT_COLOR_FAINT, NULL}};

    return mt_chart_frame_tiles(drawing, y, tiles, has_reserved ? 4 : 2);
}

static void place(struct mt_drawing *drawing, struct diff_layout *layout, double y)
{
    bool narrow = drawing->width < MT_NARROW_WIDTH;
    const struct mt_report *b = layout->view->diff->b;
    double bottom = drawing->height - 10, top = y;

    if (bottom - y - 40 >= MIN_FALLS + 60)
        bottom = mt_chart_frame_footnote(
                     drawing,
                     b->roles_inferred
                         ? "hatched = less than before \xC2\xB7 roles are inferred \xC2\xB7 sites "
                           "match even if lines moved"
                         : "hatched = less than before \xC2\xB7 sites match even if lines moved") -
                 6;
    if (bottom - y - 78 >= MIN_FALLS)
        top = draw_tiles(drawing, layout->view, y) + 24;
    layout->falls = (struct mt_box){MT_MARGIN, top, drawing->width - 2 * MT_MARGIN, bottom - top};
    layout->table_x = MT_MARGIN + FALLS_WIDTH + 30;
    layout->table_y = top;
    layout->table_width = drawing->width - MT_MARGIN - layout->table_x;
    layout->table_bottom = bottom;
    if (!narrow) {
        layout->falls.width = FALLS_WIDTH;
        return;
    }
    double table = fmin(diff_table_height(layout), bottom - top - MIN_FALLS - 20);
    layout->table_x = MT_MARGIN;
    layout->table_width = table >= 60 ? drawing->width - 2 * MT_MARGIN : 0;
    if (table >= 60) {
        layout->table_y = bottom - table;
        layout->falls.height = layout->table_y - 20 - top;
    }
}

static void draw(struct mt_drawing *drawing, struct diff_layout *layout, double y)
{
    place(drawing, layout, y);
    diff_draw_falls(drawing, layout);
    diff_draw_table(drawing, layout);
}

void mt_diff_draw(const struct mt_diff_view *view, const struct mt_chart_options *options,
                  struct mt_drawing *drawing)
{
    struct diff_layout layout = {.view = view};
    double width = mt_chart_frame_width(options->width), height = STANDARD_HEIGHT;

    if (view->device)
        layout.changed_sites = diff_changed_rows(&view->device->sites);
    if (width < MT_NARROW_WIDTH && view->device)
        height =
            200 + view->diff->run_count * WARNING_PITCH + NARROW_FALLS + diff_table_height(&layout);
    mt_drawing_init(drawing, width, mt_chart_frame_height(options->height, height), "diff");
    const char *title = title_of(drawing, view);
    mt_chart_frame_describe(drawing, view->diff->b, view->device ? view->device->b : NULL, title);
    double y = mt_chart_frame_header(drawing, title, facts_of(drawing, view));
    if (drawing->height - y > MIN_FALLS + 100)
        y = draw_warnings(drawing, view->diff, y);
    if (view->device)
        draw(drawing, &layout, y);
    else
        mt_chart_frame_nothing(drawing, y + 8, "Nothing to compare",
                               "No device has memory events in both runs.");
}
