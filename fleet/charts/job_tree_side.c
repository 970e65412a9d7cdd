/* The parts around the cells of the common call tree: legend, ruler, and the table of the largest
 * call paths. */
#include "job_tree_view.h"

#include <math.h>

#include "chart_frame.h"
#include "job_chart_words.h"
#include "scale.h"
#include "units.h"
#include "util.h"

#define LEGEND_TEXT 12.5
#define MIN_PATH    110.0 /* pixels; a shorter list of callers is not readable */
#define WIDE        760.0 /* narrower tables have fewer columns */

static void add_text(const struct mt_job_tree_view *view, double x, double y, const char *text,
                     enum mt_color color, enum mt_anchor anchor, const char *role)
{
    mt_chart_frame_text(view->drawing, x, y, text, MT_SIZE_SMALL, MT_REGULAR, color, anchor, role);
}

static const char *bound_text(const struct mt_job_tree_view *view, uint32_t bound_ppm)
{
    const char *text = mt_arena_printf(&view->drawing->arena, "%u%%", (unsigned)bound_ppm / 10000);

    return text;
}

/* Draws boxes of all shades, and the bounds between them. */
static double draw_scale(const struct mt_job_tree_view *view, double y)
{
    const char *heading = "maximum above the mean";
    double used = 1.05 * mt_text_width(heading, LEGEND_TEXT, MT_REGULAR) + 16;
    double x = view->x, pitch;

    mt_chart_frame_text(view->drawing, x, y, heading, LEGEND_TEXT, MT_REGULAR, MT_COLOR_FAINT,
                        MT_ANCHOR_START, "legend-heading");
    if (used + MT_JOB_TREE_SHADES * 46 > view->width)
        y += 20;
    else
        x += used;
    pitch = floor(fmin(52, (view->x + view->width - x) / (double)MT_JOB_TREE_SHADES));
    for (uint32_t i = 0; i < MT_JOB_TREE_SHADES; i++) {
        uint32_t bound = mt_job_tree_bound_ppm(i);
        const struct mt_paint paint = {.fill = mt_job_tree_color(bound)};

        mt_draw_rect(view->drawing, x + pitch * i, y - 10, pitch - 1, 11, &paint, NULL,
                     "legend-shade");
        if (i)
            mt_chart_frame_text(view->drawing, x + pitch * i - 0.5, y + 15, bound_text(view, bound),
                                MT_SIZE_CELL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_MIDDLE,
                                "legend-bound");
    }
    return y + 15;
}

/* Draws the roles that occur, in the order of their numbers. */
static double draw_roles(const struct mt_job_tree_view *view, double y)
{
    const char *heading = "innermost cells";
    double used = 1.05 * mt_text_width(heading, LEGEND_TEXT, MT_REGULAR) + 16;
    double right = view->x + view->width, left = view->x + used;
    struct mt_swatch swatches[MT_ROLE_COUNT];
    bool has_role[MT_ROLE_COUNT] = {false};
    size_t count = 0;

    for (uint32_t i = 0; i < view->tree->count; i++)
        if (view->tree->nodes[i].kind == MT_JOB_NODE_ROLE)
            has_role[view->tree->nodes[i].role] = true;
    for (unsigned role = 0; role < MT_ROLE_COUNT; role++)
        if (has_role[role])
            swatches[count++] = (struct mt_swatch){mt_role_title((enum mt_role)role),
                                                   mt_role_color((enum mt_role)role)};
    mt_chart_frame_text(view->drawing, view->x, y, heading, LEGEND_TEXT, MT_REGULAR, MT_COLOR_FAINT,
                        MT_ANCHOR_START, "legend-heading");
    for (size_t first = 0, fits; first < count; first += fits) {
        if (first)
            y += 21;
        fits = mt_chart_frame_swatches_fit(swatches + first, count - first, right - left);
        fits = fits ? fits : 1;
        mt_chart_frame_swatches(view->drawing, left, y, right, swatches + first, fits);
    }
    return y + 10;
}

double mt_job_tree_draw_legend(const struct mt_job_tree_view *view, double y)
{
    return draw_roles(view, draw_scale(view, y + 14) + 22);
}

void mt_job_tree_draw_ruler(const struct mt_job_tree_view *view, double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_GRID}, tick = {.stroke = MT_COLOR_AXIS};
    uint64_t mean = view->tree->nodes[0].mean_bytes;
    struct mt_ticks ticks;

    mt_draw_line(view->drawing, view->x, y, view->x + view->width, y, &line);
    mt_byte_ticks(&ticks, mean, mean, view->width < 600 ? 4 : view->width < 900 ? 6 : 9);
    for (size_t i = 1; i < ticks.count; i++) {
        double x = view->x + view->width * (double)ticks.ticks[i].value / (double)mean;

        mt_draw_line(view->drawing, x, y - 5, x, y + 4, &tick);
        add_text(view, x - 5, y - 5, ticks.ticks[i].label, MT_COLOR_MUTED, MT_ANCHOR_END, "tick-x");
    }
}

/* Returns the callers, outermost first: "in main train.py:10 › build model.py:20". */
static const char *callers_of(const struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    struct mt_arena *arena = &view->drawing->arena;
    const struct mt_job_node *nodes = view->tree->nodes;
    const char *path = "";

    for (uint32_t i = node->parent, named = 0; i && named < 24; i = nodes[i].parent, named++)
        path = mt_arena_printf(arena, "%s%s%s", mt_job_tree_label(view, &nodes[i]),
                               *path ? " \xE2\x80\xBA " : "", path);
    if (path && *path)
        path = mt_arena_printf(arena, "in %s", path);
    return path ? path : "";
}

/* The positions of columns: right edges of numbers, and left edges of texts. */
struct columns {
    double mean, least, most, who, who_width, above, role;
    bool is_wide;
};

static struct columns table_columns(const struct mt_job_tree_view *view)
{
    struct columns columns = {.is_wide = view->width >= WIDE, .who_width = 76};

    columns.role = view->x + view->width - (columns.is_wide ? 118 : 11);
    columns.above = columns.role - 22;
    columns.who = columns.above - 76 - columns.who_width;
    columns.most = columns.who - 8;
    columns.least = columns.most - 76;
    columns.mean = columns.is_wide ? columns.least - 76 : columns.least;
    return columns;
}

static void draw_numbers(const struct mt_job_tree_view *view, const struct mt_job_node *node,
                         double y, const struct columns *columns)
{
    struct mt_drawing *drawing = view->drawing;
    const struct mt_paint swatch = {.fill = mt_role_color(node->role), .radius = 2};
    const char *who = node->min_bytes == node->max_bytes
                          ? "all equal"
                          : mt_job_words_row(drawing, view->report, node->max_row);
    char text[MT_UNITS_TEXT];

    mt_chart_frame_text(drawing, columns->mean, y, mt_format_bytes(text, node->mean_bytes), 13,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_END, "holder-mean");
    if (columns->is_wide)
        mt_chart_frame_text(drawing, columns->least, y, mt_format_bytes(text, node->min_bytes), 13,
                            MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "holder-least");
    mt_chart_frame_text(drawing, columns->most, y, mt_format_bytes(text, node->max_bytes), 13,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "holder-most");
    add_text(view, columns->who, y,
             mt_text_fit(drawing, who, MT_SIZE_SMALL, MT_REGULAR, columns->who_width, true),
             MT_COLOR_MUTED, MT_ANCHOR_START, "holder-who");
    mt_chart_frame_text(drawing, columns->above, y, mt_job_tree_above(view, node), 13, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "holder-above");
    mt_draw_rect(drawing, columns->role, y - 10, 11, 11, &swatch, NULL, "swatch");
    if (columns->is_wide)
        add_text(view, columns->role + 17, y, mt_role_title(node->role), MT_COLOR_MUTED,
                 MT_ANCHOR_START, "holder-role");
}

static void draw_holder(const struct mt_job_tree_view *view, const struct mt_job_node *role,
                        double y, const struct columns *columns)
{
    struct mt_drawing *drawing = view->drawing;
    const struct mt_job_node *node = &view->tree->nodes[role->parent];
    double room = columns->mean - 76 - view->x, used;
    const char *label = mt_job_tree_label(view, node), *path = callers_of(view, node);

    label = mt_text_fit(drawing, label, 13, MT_SEMIBOLD, room, true);
    used = 1.06 * mt_chart_frame_text(drawing, view->x, y, label, 13, MT_SEMIBOLD, MT_COLOR_TEXT,
                                      MT_ANCHOR_START, "holder-name");
    room -= used + 12;
    if (mt_text_room(path, MT_SIZE_SMALL, MT_REGULAR) > room)
        path = room < MIN_PATH ? ""
                               : mt_text_fit(drawing, path, MT_SIZE_SMALL, MT_REGULAR, room, true);
    if (*path)
        add_text(view, view->x + used + 12, y, path, MT_COLOR_MUTED, MT_ANCHOR_START,
                 "holder-path");
    draw_numbers(view, role, y, columns);
}

double mt_job_tree_draw_table(const struct mt_job_tree_view *view, double y, const char *heading,
                              const struct mt_job_node *const *list, uint32_t count)
{
    struct columns columns = table_columns(view);
    const struct mt_paint line = {.stroke = MT_COLOR_GRID};

    mt_chart_frame_text(view->drawing, view->x, y, heading, 14, MT_SEMIBOLD, MT_COLOR_TEXT,
                        MT_ANCHOR_START, "heading");
    add_text(view, columns.mean, y, "mean", MT_COLOR_FAINT, MT_ANCHOR_END, "heading");
    if (columns.is_wide)
        add_text(view, columns.least, y, "minimum", MT_COLOR_FAINT, MT_ANCHOR_END, "heading");
    add_text(view, columns.most, y, "maximum", MT_COLOR_FAINT, MT_ANCHOR_END, "heading");
    add_text(view, columns.who, y, "on", MT_COLOR_FAINT, MT_ANCHOR_START, "heading");
    add_text(view, columns.above, y, "above mean", MT_COLOR_FAINT, MT_ANCHOR_END, "heading");
    if (columns.is_wide)
        add_text(view, columns.role, y, "role", MT_COLOR_FAINT, MT_ANCHOR_START, "heading");
    for (uint32_t i = 0; i < count; i++) {
        mt_draw_line(view->drawing, view->x, y + 7, view->x + view->width, y + 7, &line);
        y += MT_JOB_TREE_PITCH;
        draw_holder(view, list[i], y, &columns);
    }
    return y;
}
