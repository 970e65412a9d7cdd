/* The icicle of live bytes. The width of a cell shows bytes, callers are above callees, and blocks
 * are at the bottom in the color of their role. A table of the largest holders is below the
 * cells. */
#include "chart.h"

#include <math.h>

#include "cell_label.h"
#include "chart_frame.h"
#include "icicle_view.h"
#include "units.h"

enum { HOLDERS = 8, MAX_CELLS = 320 };

#define PITCH     24.0 /* height of a row of cells */
#define MIN_PITCH 16.0
#define MIN_CELL  1.2  /* pixels; narrower cells are drawn as their sum */
#define MIN_REST  0.35 /* pixels; a narrower sum is not drawn */

static double row_y(const struct mt_icicle_view *view, uint32_t depth)
{
    return view->top + view->pitch * depth;
}

static struct mt_cell_box cell_box(const struct mt_icicle_view *view, const struct mt_node *node,
                                   uint64_t weight)
{
    double width = mt_icicle_pixels(view, weight);
    double gap = width > 2.5 ? 1 : width > 1 ? 0.5 : 0;
    struct mt_cell_box box = {.x = view->x + mt_icicle_pixels(view, node->offset),
                              .y = row_y(view, node->depth),
                              .width = width - gap,
                              .height = view->pitch - 1.5,
                              .fill = mt_icicle_color(view, node),
                              .centred = node->kind == MT_NODE_BLOCKS};

    return box;
}

/* Returns a shade that differs between neighbors of one origin, so that their edges are visible. */
static uint8_t node_shade(const struct mt_node *node)
{
    if (node->kind == MT_NODE_TIED)
        return 1;
    return node->kind == MT_NODE_FRAME ? node->frame & 1 : 0;
}

static const char *node_title(const struct mt_icicle_view *view, const struct mt_node *node)
{
    struct mt_arena *arena = &view->drawing->arena;
    char other[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    const char *label = node->kind == MT_NODE_ROOT ? view->subject->root
                                                   : mt_node_label(arena, view->symbols, node);
    const char *role = node->kind == MT_NODE_BLOCKS ? mt_role_title(node->role) : "";

    if (view->icicle->weigh == MT_WEIGH_COUNT)
        mt_format_bytes(other, node->bytes);
    else
        mt_weigh_format(other, MT_WEIGH_COUNT, node->blocks);
    return mt_arena_printf(
        arena, "%s%s%s: %s, %s, %s", label, *role ? ", " : "", role,
        mt_icicle_exact(view, node->weight),
        mt_format_percent(share, (double)node->weight / (double)view->icicle->nodes[0].weight),
        other);
}

static const char *blocks_text(const struct mt_icicle_view *view, const struct mt_node *node,
                               double room)
{
    char amount[MT_UNITS_TEXT];
    const char *label = mt_node_label(&view->drawing->arena, view->symbols, node);

    if (node->blocks > 1 && 1.06 * mt_text_width(label, MT_CELL_TEXT, MT_REGULAR) <= room)
        return label;
    return mt_arena_printf(&view->drawing->arena, "%s",
                           mt_weigh_format(amount, view->icicle->weigh, node->weight));
}

/* Returns "no stack, in warm-up" if that fits, otherwise "in warm-up". */
static const char *no_stack_text(const struct mt_icicle_view *view, const struct mt_node *node,
                                 double room)
{
    const char *text = mt_node_label(&view->drawing->arena, view->symbols, node);

    if (node->is_engine || !*node->phase_name ||
        1.06 * mt_text_width(text, MT_CELL_TEXT, MT_REGULAR) <= room)
        return text;
    return mt_arena_printf(&view->drawing->arena, "in %s", node->phase_name);
}

static const char *node_text(const struct mt_icicle_view *view, const struct mt_node *node,
                             double room)
{
    const char *text = "";

    switch (node->kind) {
    case MT_NODE_ROOT: text = view->subject->root; break;
    case MT_NODE_FRAME: return mt_cell_frame_text(view->drawing, view->symbols, node->frame, room);
    case MT_NODE_NO_STACK: text = no_stack_text(view, node, room); break;
    case MT_NODE_TIED: text = mt_node_label(&view->drawing->arena, view->symbols, node); break;
    case MT_NODE_BLOCKS:
        text = blocks_text(view, node, room);
        /* a truncated number is misleading */
        if (1.06 * mt_text_width(text, MT_CELL_TEXT, MT_REGULAR) > room)
            text = "";
        break;
    }
    return text;
}

static const char *const cell_roles[] = {"cell:root", "cell:frame", "cell:no-stack", "cell:tied",
                                         "cell:blocks"};

static void draw_node(const struct mt_icicle_view *view, const struct mt_node *node)
{
    struct mt_cell_box box = cell_box(view, node, node->weight);
    struct mt_paint paint = {
        .fill = box.fill, .shade = node_shade(node), .radius = box.width > 6 ? 2 : 0};
    char amount[MT_UNITS_TEXT];

    mt_draw_rect(view->drawing, box.x, box.y, box.width, box.height, &paint, node_title(view, node),
                 cell_roles[node->kind]);
    if (box.height >= MT_CELL_TEXT + 2)
        mt_cell_write(view->drawing, &box, node_text(view, node, mt_cell_room(&box)),
                      mt_weigh_format(amount, view->icicle->weigh, node->weight));
}

/* Draws this node and its younger siblings, all narrow, as one cell, in their common role or origin
 * if they have one. Returns the node after them. */
static uint32_t draw_rest(struct mt_icicle_view *view, uint32_t first)
{
    const struct mt_node *nodes = view->icicle->nodes, *node = &nodes[first];
    uint32_t end = nodes[node->parent].end, siblings = 0;
    uint64_t weight = 0, blocks = 0;
    struct mt_paint paint = {.fill = mt_icicle_color(view, node)};
    char count[MT_UNITS_TEXT];

    for (uint32_t i = first; i < end; i = nodes[i].end) {
        weight += nodes[i].weight;
        blocks += nodes[i].blocks;
        siblings++;
        if (mt_icicle_color(view, &nodes[i]) != paint.fill)
            paint.fill = MT_COLOR_UNUSED;
    }
    if (mt_icicle_pixels(view, weight) < MIN_REST) {
        view->dropped_groups += end - first;
        view->dropped_weight += weight;
        return end;
    }
    view->summed_groups += end - first;
    view->summed_weight += weight;
    struct mt_cell_box box = cell_box(view, node, weight);
    const char *title = mt_arena_printf(
        &view->drawing->arena, "%u narrow %s: %s%s%s", siblings, siblings == 1 ? "group" : "groups",
        mt_icicle_exact(view, weight), view->icicle->weigh == MT_WEIGH_COUNT ? "" : ", ",
        view->icicle->weigh == MT_WEIGH_COUNT ? ""
                                              : mt_weigh_format(count, MT_WEIGH_COUNT, blocks));
    mt_draw_rect(view->drawing, box.x, box.y, box.width, box.height, &paint, title, "cell:rest");
    return end;
}

static void draw_cells(struct mt_icicle_view *view)
{
    const struct mt_node *nodes = view->icicle->nodes;
    uint32_t i = 0;

    while (i < view->icicle->count)
        if (nodes[i].depth >= view->rows) /* there is no row for it in the picture */
            i = nodes[i].end;
        else if (nodes[i].depth && mt_icicle_pixels(view, nodes[i].weight) < view->least)
            i = draw_rest(view, i);
        else
            draw_node(view, &nodes[i++]);
}

/* Returns the number of cells that would be drawn, and sets *rows to the number of their rows. */
static uint32_t count_cells(const struct mt_icicle_view *view, uint32_t *rows)
{
    const struct mt_node *nodes = view->icicle->nodes;
    uint32_t count = 1, i = 1;

    *rows = 1;
    while (i < view->icicle->count) {
        bool narrow = mt_icicle_pixels(view, nodes[i].weight) < view->least;

        if (nodes[i].depth >= *rows)
            *rows = nodes[i].depth + 1;
        count++;
        i = narrow ? nodes[nodes[i].parent].end : i + 1;
    }
    return count;
}

static const char *facts(const struct mt_icicle_view *view)
{
    static const char *const widths[] = {"bytes", "requested bytes", "blocks"};
    _Static_assert(sizeof widths / sizeof *widths == MT_WEIGH_KINDS, "one entry for each");
    const struct mt_node *root = &view->icicle->nodes[0];
    char blocks[MT_UNITS_TEXT];
    bool counts = view->icicle->weigh == MT_WEIGH_COUNT;

    return mt_arena_printf(
        &view->drawing->arena, "%s %s%s%s%s%s%s · width = %s · framework plumbing hidden",
        mt_icicle_exact(view, root->weight),
        view->icicle->weigh == MT_WEIGH_REQUESTED ? "requested, " : "", view->subject->verb,
        counts ? "" : " in ", counts ? "" : mt_weigh_format(blocks, MT_WEIGH_COUNT, root->blocks),
        *view->subject->facts ? " " : "", view->subject->facts, widths[view->icicle->weigh]);
}

static bool has_engine(const struct mt_icicle *icicle)
{
    for (uint32_t i = 1; i < icicle->count; i = icicle->nodes[i].end)
        if (icicle->nodes[i].kind == MT_NODE_NO_STACK && icicle->nodes[i].is_engine)
            return true;
    return false;
}

static void add_share(struct mt_buf *out, const struct mt_icicle_view *view, uint64_t weight)
{
    char amount[MT_UNITS_TEXT], share[MT_UNITS_TEXT];

    mt_buf_printf(out, " (%s, %s)", mt_weigh_format(amount, view->icicle->weigh, weight),
                  mt_format_percent(share, (double)weight / (double)view->icicle->nodes[0].weight));
}

static void draw_footnote(const struct mt_icicle_view *view)
{
    struct mt_buf text = {0};
    char least[MT_UNITS_TEXT];

    mt_chart_frame_add_rows_cut(&text, view->rows_cut);
    if (view->summed_groups) {
        struct mt_buf number = {0};

        mt_buf_add_decimal(&number, view->least, 1);
        mt_buf_printf(&text, "%s%s %s narrower than %s px %s drawn as their sum",
                      text.length ? " · " : "", mt_format_count(least, view->summed_groups),
                      view->summed_groups == 1 ? "cell" : "cells", number.data ? number.data : "",
                      view->summed_groups == 1 ? "is" : "are");
        add_share(&text, view, view->summed_weight);
        mt_buf_release(&number);
    }
    if (view->dropped_groups) {
        mt_buf_printf(&text, "%s%s too narrow to draw",
                      view->summed_groups ? ", "
                      : text.length       ? " · "
                                          : "",
                      mt_format_count(least, view->dropped_groups));
        add_share(&text, view, view->dropped_weight);
    }
    if (has_engine(view->icicle))
        mt_buf_printf(&text, "%sthe autograd thread records no Python frames",
                      text.length ? " · " : "");
    if (view->report->roles_inferred)
        mt_buf_printf(&text, "%sroles are inferred", text.length ? " · " : "");
    if (text.length)
        mt_chart_frame_footnote(view->drawing, text.data);
    mt_buf_release(&text);
}

/* Returns the height of a picture with `holders` lines in the table. */
static double height_of(const struct mt_icicle_view *view, size_t holders)
{
    double small_print = view->drawing->width < MT_NARROW_WIDTH ? 60 : 44; /* two lines or one */

    return view->top + view->rows * view->pitch + 34 + (double)holders * MT_TABLE_PITCH +
           small_print;
}

/* Fits the picture into a height. A low picture gets thinner rows first, then a shorter table, then
 * fewer rows. */
static size_t fit_height(struct mt_icicle_view *view, double wanted)
{
    size_t holders = view->holder_count < HOLDERS ? view->holder_count : HOLDERS;
    double height = wanted > 0 ? mt_chart_frame_height(wanted, wanted) : 0;

    view->pitch = PITCH;
    if (wanted > 0) {
        while (view->pitch > MIN_PITCH && height_of(view, holders) > height)
            view->pitch--;
        while (holders > 1 && height_of(view, holders) > height)
            holders--;
        while (view->rows > 2 && height_of(view, holders) > height)
            view->rows--, view->rows_cut++;
    }
    view->drawing->height = mt_chart_frame_height(fmax(height, height_of(view, holders)), 0);
    return holders;
}

static void draw_picture(struct mt_icicle_view *view, const char *title,
                         const struct mt_chart_options *options)
{
    double y = mt_chart_frame_header(view->drawing, title, facts(view));

    y = mt_icicle_draw_legend(view, y) + 26;
    view->top = y + 8;
    view->scale = view->width / (double)view->icicle->nodes[0].weight;
    for (view->least = MIN_CELL; count_cells(view, &view->rows) > MAX_CELLS;)
        view->least *= 1.25;
    view->holders = mt_icicle_find_holders(view, &view->holder_count);
    size_t holders = fit_height(view, options->height);
    mt_icicle_draw_ruler(view, y);
    draw_cells(view);
    mt_icicle_draw_table(view, view->top + view->rows * view->pitch + 34, holders);
    draw_footnote(view);
}

static void draw_chart(const struct mt_report *report, const struct mt_device_report *device,
                       const struct mt_chart_options *options, struct mt_drawing *drawing)
{
    const struct mt_icicle_options shape = {.reversed = options->reversed,
                                            .weigh = options->weigh,
                                            .first_event = device ? device->first_event : 0};
    struct mt_icicle_subject subject;
    struct mt_icicle_view view = {.drawing = drawing,
                                  .report = report,
                                  .subject = &subject,
                                  .symbols = report->symbols,
                                  .reversed = options->reversed};
    struct mt_icicle *icicle = NULL;

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, 700), "icicle");
    view.x = MT_MARGIN;
    view.width = drawing->width - 2 * MT_MARGIN;
    subject = mt_icicle_subject(drawing, report, device, options->weigh);
    const char *title = mt_chart_frame_title(drawing, report, device, subject.title);
    mt_chart_frame_describe(drawing, report, device, title);
    if (subject.holdings)
        mt_icicle_build(&drawing->arena, subject.holdings, subject.holding_count, report->phases,
                        report->phase_count, report->symbols, &shape, &icicle);
    view.icicle = icicle;
    if (icicle && icicle->nodes[0].weight)
        draw_picture(&view, title, options);
    else
        mt_chart_frame_empty(drawing, report, device, title, subject.why_nothing,
                             subject.about_nothing);
}

const struct mt_chart mt_chart_icicle = {
    .name = "icicle",
    .summary = "call sites that hold the memory at an instant, or allocated it",
    .draw = draw_chart,
};
