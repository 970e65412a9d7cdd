/* The cells of the common call tree. Callers are above callees. The width of a cell shows bytes,
 * and its color shows imbalance. An innermost cell belongs to one role and has a strip in the color
 * of the role. */
#include "job_tree_view.h"

#include <string.h>

#include "ascii.h"
#include "cell_label.h"
#include "chart_frame.h"
#include "job_frame.h"
#include "units.h"

#define MIN_REST 0.35 /* pixels; a narrower sum is not drawn */
#define STRIP    3.0  /* height of the strip of a role */

enum { MAX_FRAME = 200 };

static double pixels_of(const struct mt_job_tree_view *view, unsigned __int128 sum_bytes)
{
    return (double)sum_bytes * view->scale;
}

uint64_t mt_job_tree_mean(const struct mt_job_tree_view *view, unsigned __int128 sum_bytes)
{
    return (uint64_t)(sum_bytes / view->tree->row_count);
}

uint32_t mt_job_tree_bound_ppm(uint32_t shade)
{
    static const uint32_t bounds[MT_JOB_TREE_SHADES] = {0,      10000,  20000,   50000,  100000,
                                                        200000, 500000, 1000000, 9000000};

    return bounds[shade];
}

enum mt_color mt_job_tree_color(uint32_t imbalance_ppm)
{
    uint32_t shade = MT_JOB_TREE_SHADES - 1;

    while (imbalance_ppm < mt_job_tree_bound_ppm(shade))
        shade--;
    return MT_COLOR_CHANGE_0 + 8 + shade;
}

static enum mt_color color_of(const struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    return mt_job_tree_color(mt_job_node_imbalance_ppm(view->tree, node));
}

const char *mt_job_tree_above(const struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    unsigned __int128 most = (unsigned __int128)node->max_bytes * view->tree->row_count;
    double share = node->sum_bytes ? (double)most / (double)node->sum_bytes : 1;
    char text[MT_UNITS_TEXT];
    const char *above;

    if (share < 10)
        above = mt_arena_printf(&view->drawing->arena, "%s", mt_format_percent(text, share - 1));
    else
        above = mt_arena_printf(&view->drawing->arena, "\xC3\x97%s",
                                mt_format_count(text, (uint64_t)(share + 0.5)));
    return above;
}

const char *mt_job_tree_label(const struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    switch (node->kind) {
    case MT_JOB_NODE_ROOT: return "allocated peaks";
    case MT_JOB_NODE_NO_PATH: return "no call path kept";
    case MT_JOB_NODE_ROLE: return mt_role_title(node->role);
    case MT_JOB_NODE_FRAME: break;
    }
    return mt_job_words_name(view->drawing, mt_rank_set_frame(view->report->set, node->path),
                             MAX_FRAME);
}

/* Finds the positions of ":47" and " train.py:47" in "step train.py:47". Returns false if the text
 * has no line number. */
static bool find_place(const char *text, size_t *place, size_t *line)
{
    const char *space = strrchr(text, ' '), *colon = strrchr(text, ':');

    if (!space || !colon || colon < space || !mt_is_digit(colon[1]))
        return false;
    *place = (size_t)(space - text);
    *line = (size_t)(colon - text);
    return true;
}

/* Returns the first text that fits: "step train.py:47", "step :47", or "step". */
static const char *fit_label(const struct mt_job_tree_view *view, const char *label, double room)
{
    struct mt_drawing *drawing = view->drawing;
    size_t place, line;

    if (!find_place(label, &place, &line) || mt_text_room(label, MT_CELL_TEXT, MT_REGULAR) <= room)
        return label;
    const char *shorter =
        mt_arena_printf(&drawing->arena, "%.*s %s", (int)place, label, label + line);
    if (mt_text_room(shorter, MT_CELL_TEXT, MT_REGULAR) > room)
        shorter = mt_arena_printf(&drawing->arena, "%.*s", (int)place, label);
    return shorter;
}

static struct mt_cell_box cell_box(const struct mt_job_tree_view *view,
                                   const struct mt_job_node *node, unsigned __int128 sum_bytes)
{
    double width = pixels_of(view, sum_bytes);
    double gap = width > 2.5 ? 1 : width > 1 ? 0.5 : 0;

    return (struct mt_cell_box){.x = view->x + pixels_of(view, node->before_bytes),
                                .y = view->top + view->pitch * node->depth,
                                .width = width - gap,
                                .height = view->pitch - 1.5,
                                .fill = color_of(view, node)};
}

static const char *node_title(const struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    struct mt_drawing *drawing = view->drawing;
    double all = (double)view->tree->nodes[0].sum_bytes;
    char share[MT_UNITS_TEXT], have[MT_UNITS_TEXT], rows[MT_UNITS_TEXT];
    const char *above = mt_job_tree_above(view, node);
    bool is_factor = (unsigned char)above[0] == 0xC3;
    const char *title = mt_arena_printf(
        &drawing->arena,
        "%s: mean %s per %s, %s of all; minimum %s on %s; maximum %s on %s, %s%s; sum %s, "
        "on %s of %s %ss",
        mt_job_tree_label(view, node), mt_job_words_bytes(drawing, node->mean_bytes), view->unit,
        mt_format_percent(share, all > 0 ? (double)node->sum_bytes / all : 0),
        mt_job_words_bytes(drawing, node->min_bytes),
        mt_job_words_row(drawing, view->report, node->min_row),
        mt_job_words_bytes(drawing, node->max_bytes),
        mt_job_words_row(drawing, view->report, node->max_row), above,
        is_factor ? " the mean" : " above the mean", mt_job_words_bytes(drawing, node->sum_bytes),
        mt_format_count(have, node->row_count), mt_format_count(rows, view->tree->row_count),
        view->unit);

    return title;
}

static const char *const cell_roles[] = {"cell:root", "cell:frame", "cell:no-path", "cell:role"};

static void draw_node(const struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    struct mt_cell_box box = cell_box(view, node, node->sum_bytes);
    const struct mt_paint paint = {.fill = box.fill, .radius = box.width > 6 ? 2 : 0};
    char amount[MT_UNITS_TEXT];

    mt_draw_rect(view->drawing, box.x, box.y, box.width, box.height, &paint, node_title(view, node),
                 cell_roles[node->kind]);
    if (node->kind == MT_JOB_NODE_ROLE) {
        const struct mt_paint strip = {.fill = mt_role_color(node->role)};

        box.height -= STRIP;
        mt_draw_rect(view->drawing, box.x, box.y + box.height, box.width, STRIP, &strip, NULL,
                     "strip");
    }
    if (box.height >= MT_CELL_TEXT + 2)
        mt_cell_write(view->drawing, &box,
                      fit_label(view, mt_job_tree_label(view, node), mt_cell_room(&box)),
                      mt_format_bytes(amount, node->mean_bytes));
}

static bool is_narrow(const struct mt_job_tree_view *view, const struct mt_job_node *node)
{
    return node->depth && pixels_of(view, node->sum_bytes) < view->least;
}

/* Returns the node after the narrow siblings that begin at `first`. Siblings are sorted by size, so
 * all nodes after a narrow one are narrow, except the node without a path, which is always last. */
static uint32_t end_of_narrow(const struct mt_job_tree_view *view, uint32_t first)
{
    const struct mt_job_node *nodes = view->tree->nodes;
    uint32_t i = first, end = nodes[nodes[first].parent].end;

    while (i < end && is_narrow(view, &nodes[i]))
        i = nodes[i].end;
    return i;
}

/* Draws this node and its siblings after it, which are all narrow, as one cell. The cell has no
 * color of an imbalance, because that of the sum is unknown. Returns the node after the cell. */
static uint32_t draw_rest(struct mt_job_tree_view *view, uint32_t first)
{
    const struct mt_job_node *nodes = view->tree->nodes, *node = &nodes[first];
    uint32_t end = end_of_narrow(view, first), siblings = 0;
    const struct mt_paint paint = {.fill = MT_COLOR_UNUSED};
    unsigned __int128 sum_bytes = 0;

    for (uint32_t i = first; i < end; i = nodes[i].end) {
        sum_bytes += nodes[i].sum_bytes;
        siblings++;
    }
    if (pixels_of(view, sum_bytes) < MIN_REST) {
        view->dropped_cells += end - first;
        view->dropped_bytes += sum_bytes;
        return end;
    }
    view->summed_cells += end - first;
    view->summed_bytes += sum_bytes;
    struct mt_cell_box box = cell_box(view, node, sum_bytes);
    const char *title = mt_arena_printf(
        &view->drawing->arena, "%u narrow %s: mean %s per %s", siblings,
        siblings == 1 ? "cell" : "cells",
        mt_job_words_bytes(view->drawing, mt_job_tree_mean(view, sum_bytes)), view->unit);
    mt_draw_rect(view->drawing, box.x, box.y, box.width, box.height, &paint, title, "cell:rest");
    return end;
}

void mt_job_tree_draw_cells(struct mt_job_tree_view *view)
{
    const struct mt_job_node *nodes = view->tree->nodes;
    uint32_t i = 0;

    while (i < view->tree->count)
        if (nodes[i].depth >= view->rows)
            i = nodes[i].end;
        else if (is_narrow(view, &nodes[i]))
            i = draw_rest(view, i);
        else
            draw_node(view, &nodes[i++]);
}

uint32_t mt_job_tree_count_cells(const struct mt_job_tree_view *view, uint32_t *rows)
{
    const struct mt_job_node *nodes = view->tree->nodes;
    uint32_t count = 0, i = 0;

    *rows = 1;
    while (i < view->tree->count) {
        if (nodes[i].depth >= *rows)
            *rows = nodes[i].depth + 1;
        count += nodes[i].depth < MT_JOB_TREE_ROWS;
        i = is_narrow(view, &nodes[i]) ? end_of_narrow(view, i) : i + 1;
    }
    return count;
}
