/* The waterfall: a bar for run A, a step up or down for each role, and a bar for run B. */
#include "diff_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

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
    uint32_t i;

    for (i = first; i < rows->count; i++) {
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
    uint32_t changed = mt_diff_changed_rows(roles), shown, i;

    shown = changed > most ? most - 1 : changed;
    falls->steps[falls->count++] = end_step("A", device->a->answer->instant.bytes.allocated);
    for (i = 0; i < shown; i++)
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
    uint32_t i;

    for (i = 0; i < falls->count; i++) {
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
    size_t i;

    mt_byte_ticks(&ticks, range, range, (size_t)fmin(fmax(falls->plot.height / 46, 2), 6));
    for (i = 0; i < ticks.count; i++) {
        double y = y_of(falls, falls->low + ticks.ticks[i].value);

        line.stroke = i ? MT_COLOR_GRID : MT_COLOR_AXIS;
        mt_draw_line(drawing, falls->plot.x, y, falls->plot.x + falls->plot.width, y, &line);
        snprintf(text, sizeof text, "%s%s", falls->low ? "+" : "", ticks.ticks[i].label);
        mt_chart_frame_text(drawing, falls->plot.x - 9, y + 4.5, text, MT_SIZE_AXIS, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_END, "tick-y");
    }
}

static void draw_heading(struct mt_drawing *drawing, const struct falls *falls,
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
    struct mt_paint paint = mt_diff_paint(step->color, step->is_end || step->to > step->from);
    uint64_t low = step->is_end ? falls->low : mt_min_u64(step->from, step->to);
    uint64_t high = step->is_end ? step->to : mt_max_u64(step->from, step->to);
    double top = y_of(falls, high), height = y_of(falls, low) - top;
    const char *title, *exact = mt_diff_exact(drawing, &step->row);
    char n[MT_UNITS_TEXT];

    if (step->is_end)
        title = mt_arena_printf(&drawing->arena, "%s: %s B allocated", step->name,
                                mt_format_count(n, step->to));
    else
        title = mt_arena_printf(&drawing->arena, "%s: %s", step->name, exact ? exact : "");
    /* a bar that is too thin is drawn as a line */
    if (height < 1.5) {
        paint = mt_diff_paint(step->color, true);
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
    uint32_t i;

    for (i = 0; i < MT_ARRAY_LEN(points); i++)
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

void mt_diff_draw_falls(struct mt_drawing *drawing, const struct mt_diff_layout *layout)
{
    const struct mt_box *box = &layout->falls;
    const double left = MT_MARGIN + 1.05 * mt_text_width("+750 MiB", MT_SIZE_AXIS, MT_REGULAR) + 9;
    struct falls falls = {
        .plot = {round(left), box->y + TOP_ROOM, 0, box->height - TOP_ROOM - NAME_HEIGHT}};
    uint32_t i, most;

    falls.plot.width = box->x + box->width - falls.plot.x;
    most = (uint32_t)fmax(falls.plot.width / MIN_COLUMN - 2, 2);
    make_steps(&falls, layout->view->device, most < MT_ROLE_COUNT ? most : MT_ROLE_COUNT);
    set_range(&falls);
    falls.column = fmin(floor(falls.plot.width / falls.count), 120);
    falls.plot.width = falls.column * falls.count;
    draw_heading(drawing, &falls, box);
    draw_axis(drawing, &falls);
    for (i = 0; i < falls.count; i++) {
        draw_bar(drawing, &falls, i);
        draw_break(drawing, &falls, i);
        draw_name(drawing, &falls, i);
        if (i + 1 < falls.count)
            draw_link(drawing, &falls, i);
    }
    for (i = 0; i < falls.count; i++)
        draw_value(drawing, &falls, i);
}
