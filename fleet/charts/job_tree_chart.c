/* The holders of the allocated peaks of all ranks, as one call tree. The width of a cell shows mean
 * bytes, and its color shows how much ranks differ. Tables show the largest call paths. */
#include <math.h>
#include <stdlib.h>

#include "chart_frame.h"
#include "draw.h"
#include "job_chart.h"
#include "job_frame.h"
#include "job_tree.h"
#include "job_tree_view.h"
#include "scale.h"
#include "sorted.h"
#include "units.h"

#define JOB_TREE_PITCH 22.0 /* height of a line of the tables */

/* The parts around the cells of the common call tree: legend, ruler, and the table of the largest
 * call paths. */

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
    return mt_arena_printf(&view->drawing->arena, "%u%%", (unsigned)bound_ppm / 10000);
}

/* Draws boxes of all shades, and the bounds between them. */
static double draw_scale(const struct mt_job_tree_view *view, double y)
{
    const char *heading = "maximum above the mean";
    double used = 1.05 * mt_text_width(heading, LEGEND_TEXT, MT_REGULAR) + 16;
    double x = view->x;

    mt_chart_frame_text(view->drawing, x, y, heading, LEGEND_TEXT, MT_REGULAR, MT_COLOR_FAINT,
                        MT_ANCHOR_START, "legend-heading");
    if (used + MT_JOB_TREE_SHADES * 46 > view->width)
        y += 20;
    else
        x += used;
    double pitch = floor(fmin(52, (view->x + view->width - x) / (double)MT_JOB_TREE_SHADES));
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

/* Draws the legend at y. Returns the y below the legend. */
static double job_tree_draw_legend(const struct mt_job_tree_view *view, double y)
{
    return draw_roles(view, draw_scale(view, y + 14) + 22);
}

static void job_tree_draw_ruler(const struct mt_job_tree_view *view, double y)
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
    if (*path)
        path = mt_arena_printf(arena, "in %s", path);
    return path;
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
    double room = columns->mean - 76 - view->x;
    const char *label = mt_job_tree_label(view, node), *path = callers_of(view, node);

    label = mt_text_fit(drawing, label, 13, MT_SEMIBOLD, room, true);
    double used = 1.06 * mt_chart_frame_text(drawing, view->x, y, label, 13, MT_SEMIBOLD,
                                             MT_COLOR_TEXT, MT_ANCHOR_START, "holder-name");
    room -= used + 12;
    if (mt_text_room(path, MT_SIZE_SMALL, MT_REGULAR) > room)
        path = room < MIN_PATH ? ""
                               : mt_text_fit(drawing, path, MT_SIZE_SMALL, MT_REGULAR, room, true);
    if (*path)
        add_text(view, view->x + used + 12, y, path, MT_COLOR_MUTED, MT_ANCHOR_START,
                 "holder-path");
    draw_numbers(view, role, y, columns);
}

/* Draws a table of `count` nodes of roles. y is the baseline of the heading. Returns the baseline
 * of the last line. */
static double job_tree_draw_table(const struct mt_job_tree_view *view, double y,
                                  const char *heading, const struct mt_job_node *const *list,
                                  uint32_t count)
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
        y += JOB_TREE_PITCH;
        draw_holder(view, list[i], y, &columns);
    }
    return y;
}

enum { HOLDERS = 6, DIFFERING = 4, MAX_CELLS = 320 };

#define PITCH     24.0 /* height of a row of cells */
#define MIN_PITCH 19.0
#define MIN_CELL  1.2 /* pixels; narrower cells are drawn as their sum */

MT_DEFINE_POINTER_ORDER(compare_holders, struct mt_job_node,
                        MT_DESCENDING(sum_bytes) || MT_BY_PLACE)

static unsigned __int128 bytes_above(const struct mt_job_tree_view *view,
                                     const struct mt_job_node *node)
{
    return (unsigned __int128)node->max_bytes * view->tree->row_count - node->sum_bytes;
}

/* Inserts a node into the list of the first DIFFERING nodes, after earlier nodes that are equal. */
static void consider(struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    uint32_t at = view->differing_count;

    while (at && bytes_above(view, view->differing[at - 1]) < bytes_above(view, node))
        at--;
    if (at == DIFFERING)
        return;
    if (view->differing_count < DIFFERING)
        view->differing_count++;
    for (uint32_t i = view->differing_count - 1; i > at; i--)
        view->differing[i] = view->differing[i - 1];
    view->differing[at] = node;
}

static void find_holders(struct mt_job_tree_view *view)
{
    struct mt_arena *arena = &view->drawing->arena;

    view->holders = mt_arena_array(arena, view->tree->count, sizeof *view->holders);
    view->differing = mt_arena_array(arena, DIFFERING, sizeof *view->differing);
    for (uint32_t i = 0; i < view->tree->count; i++) {
        const struct mt_job_node *node = &view->tree->nodes[i];

        if (node->kind != MT_JOB_NODE_ROLE)
            continue;
        view->holders[view->holder_count++] = node;
        if (mt_job_node_imbalance_ppm(view->tree, node) >= mt_job_tree_bound_ppm(1))
            consider(view, node);
    }
    if (view->holder_count)
        qsort(view->holders, view->holder_count, sizeof *view->holders, compare_holders);
    if (view->holder_count > HOLDERS)
        view->holder_count = HOLDERS;
}

/* Returns "1,024 ranks" or "1,021 of 1,024 ranks". */
static const char *rows_text(const struct mt_job_tree_view *view)
{
    const struct mt_job_report *report = view->report;
    char rows[MT_UNITS_TEXT], world[MT_UNITS_TEXT];
    bool is_part = report->row_count == report->seen_count && report->missing_count;

    return mt_arena_printf(&view->drawing->arena, "%s%s%s %s%s",
                           mt_format_count(rows, report->row_count), is_part ? " of " : "",
                           is_part ? mt_format_count(world, report->world) : "", view->unit,
                           (is_part ? report->world : report->row_count) == 1 ? "" : "s");
}

/* Returns the facts for a single rank, which has no mean, minimum and maximum. */
static const char *facts_of_one(const struct mt_job_tree_view *view)
{
    struct mt_drawing *drawing = view->drawing;

    return mt_arena_printf(&drawing->arena, "width = bytes · %s on %s · %s",
                           mt_job_words_bytes(drawing, view->tree->nodes[0].sum_bytes),
                           mt_job_words_row(drawing, view->report, view->tree->nodes[0].max_row),
                           rows_text(view));
}

static const char *facts(const struct mt_job_tree_view *view)
{
    struct mt_drawing *drawing = view->drawing;
    const struct mt_job_node *root = &view->tree->nodes[0];
    char least[MT_UNITS_TEXT], most[MT_UNITS_TEXT];

    if (view->tree->row_count == 1)
        return facts_of_one(view);
    return mt_arena_printf(
        &drawing->arena,
        "width = mean bytes per %s · %s on average over %s · minimum %s on %s · maximum %s on "
        "%s",
        view->unit, mt_job_words_bytes(drawing, root->mean_bytes), rows_text(view),
        mt_format_bytes(least, root->min_bytes),
        mt_job_words_row(drawing, view->report, root->min_row),
        mt_format_bytes(most, root->max_bytes),
        mt_job_words_row(drawing, view->report, root->max_row));
}

static void add_share(struct mt_buf *out, const struct mt_job_tree_view *view,
                      unsigned __int128 sum_bytes)
{
    char amount[MT_UNITS_TEXT], share[MT_UNITS_TEXT];

    mt_buf_printf(
        out, " (mean %s, %s)", mt_format_bytes(amount, mt_job_tree_mean(view, sum_bytes)),
        mt_format_percent(share, (double)sum_bytes / (double)view->tree->nodes[0].sum_bytes));
}

static void draw_footnote(const struct mt_job_tree_view *view)
{
    struct mt_buf text = {0};
    char number[MT_UNITS_TEXT];

    mt_chart_frame_add_rows_cut(&text, view->rows_cut);
    mt_buf_printf(&text, "%seach %s at its own allocated peak; one that lacks a call path has 0 B",
                  text.length ? " · " : "", view->unit);
    if (view->summed_cells) {
        mt_buf_printf(&text, " · gray: %s narrow cell%s",
                      mt_format_count(number, view->summed_cells),
                      view->summed_cells == 1 ? "" : "s as their sum");
        add_share(&text, view, view->summed_bytes);
    }
    if (view->dropped_cells) {
        mt_buf_printf(&text, " · %s too narrow to draw",
                      mt_format_count(number, view->dropped_cells));
        add_share(&text, view, view->dropped_bytes);
    }
    mt_chart_frame_footnote(view->drawing, text.data);
    mt_buf_release(&text);
}

#define HEADING 34.0 /* from the cells to the baseline of a heading, and between tables */

static double height_of(const struct mt_job_tree_view *view)
{
    double small_print = view->drawing->width < MT_NARROW_WIDTH ? 60 : 44; /* two lines or one */
    uint32_t lines = view->holder_count + view->differing_count;

    return view->top + view->rows * view->pitch + HEADING * (1 + (view->differing_count > 0)) +
           lines * JOB_TREE_PITCH + small_print;
}

/* Fits the picture into a height. A low picture gets thinner rows first, then shorter tables, then
 * fewer rows. */
static void fit_height(struct mt_job_tree_view *view, double wanted)
{
    double height = wanted > 0 ? mt_chart_frame_height(wanted, wanted) : 0;

    view->pitch = PITCH;
    if (view->rows > MT_JOB_TREE_ROWS) {
        view->rows_cut = view->rows - MT_JOB_TREE_ROWS;
        view->rows = MT_JOB_TREE_ROWS;
    }
    if (wanted > 0) {
        while (view->pitch > MIN_PITCH && height_of(view) > height)
            view->pitch--;
        while (view->holder_count > 1 && height_of(view) > height)
            view->holder_count--;
        while (view->differing_count && height_of(view) > height)
            view->differing_count--;
        while (view->rows > 2 && height_of(view) > height)
            view->rows--, view->rows_cut++;
    }
    view->drawing->height = mt_chart_frame_height(fmax(height, height_of(view)), 0);
}

static void draw_picture(struct mt_job_tree_view *view, const char *title,
                         const struct mt_job_chart_options *options)
{
    double y = mt_chart_frame_header(view->drawing, title, facts(view));

    y = job_tree_draw_legend(view, y) + 26;
    view->top = y + 8;
    view->scale = view->width / (double)view->tree->nodes[0].sum_bytes;
    for (view->least = MIN_CELL; mt_job_tree_count_cells(view, &view->rows) > MAX_CELLS;)
        view->least *= 1.25;
    find_holders(view);
    fit_height(view, options->height);
    job_tree_draw_ruler(view, y);
    mt_job_tree_draw_cells(view);
    y = job_tree_draw_table(view, view->top + view->rows * view->pitch + HEADING, "Largest holders",
                            view->holders, view->holder_count);
    if (view->differing_count)
        job_tree_draw_table(view, y + HEADING, "Largest differences", view->differing,
                            view->differing_count);
    draw_footnote(view);
}

static const char *describe(const struct mt_job_tree_view *view)
{
    if (!view->tree->count || !view->tree->nodes[0].sum_bytes)
        return "No rank held memory.";
    return mt_arena_printf(&view->drawing->arena, "Call tree of the allocated peaks: %s.",
                           facts(view));
}

static bool is_called_for(const struct mt_job_report *report)
{
    return report->path_count > 0;
}

static void draw_chart(const struct mt_job_report *report,
                       const struct mt_job_chart_options *options, struct mt_drawing *drawing)
{
    struct mt_job_tree tree;
    struct mt_job_tree_view view = {.drawing = drawing, .report = report, .tree = &tree};

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, 700), "tree");
    view.x = MT_MARGIN;
    view.width = drawing->width - 2 * MT_MARGIN;
    view.unit = mt_job_words_unit(report);
    mt_job_tree_make(report, &drawing->arena, &tree);
    const char *title =
        mt_job_words_describe(drawing, report, "what holds the allocated peaks", describe(&view));
    if (tree.count && tree.nodes[0].sum_bytes)
        draw_picture(&view, title, options);
    else
        mt_job_words_nothing(drawing, title, "No rank held memory",
                             "The records have no bytes at their allocated peaks.");
}

const struct mt_job_chart mt_job_chart_tree = {
    .name = "tree",
    .summary = "which call paths hold the allocated peaks of all ranks, and where ranks differ",
    .called_for = is_called_for,
    .draw = draw_chart,
};
