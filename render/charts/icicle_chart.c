/* Icicle of live bytes (render notes 4(c)): width is bytes, callers above
 * callees, the blocks themselves at the bottom in the colour of their role;
 * then a table of those who hold most. */
#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cell_label.h"
#include "frame.h"
#include "icicle.h"
#include "site.h"
#include "theme.h"
#include "units.h"
#include "util.h"

enum { HOLDERS = 8, MAX_CELLS = 320 };

#define ENGINE_COLOR ((enum mt_color)(MT_COLOR_ORIGIN_0 + MT_ORIGIN_ENGINE))
#define USER_COLOR   ((enum mt_color)(MT_COLOR_ORIGIN_0 + MT_ORIGIN_USER))

#define PITCH       24.0 /* rows of cells */
#define LEAST_PITCH 16.0
#define TABLE_PITCH 22.0
#define LEAST_CELL  1.2  /* narrower ones are drawn as their sum */
#define LEAST_REST  0.35 /* a sum narrower than this is not drawn */

struct view {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_icicle *icicle;
    const struct mt_symbols *symbols;
    double x, width, scale; /* pixels a byte */
    double top, pitch;      /* of the rows */
    double least;           /* narrower cells are drawn as one */
    uint32_t rows;          /* of cells that are drawn */
    bool flame, reversed;   /* root at the bottom; innermost frames first */
    struct holder *holders; /* largest first */
    size_t holder_count;
    /* what was not drawn by itself */
    uint64_t summed_groups, summed_bytes, dropped_groups, dropped_bytes;
};

static double pixels(const struct view *view, uint64_t bytes)
{
    return (double)bytes * view->scale;
}

static double row_y(const struct view *view, uint32_t depth)
{
    return view->top + view->pitch * (view->flame ? view->rows - 1 - depth : depth);
}

/* ---- cells ----------------------------------------------------------- */

static enum mt_color node_color(const struct view *view, const struct mt_node *node)
{
    switch (node->kind) {
    case MT_NODE_ROOT: return MT_COLOR_ROOT;
    case MT_NODE_NO_STACK: return ENGINE_COLOR;
    case MT_NODE_BLOCKS: return mt_role_color(node->role);
    case MT_NODE_FRAME: break;
    }
    return MT_COLOR_ORIGIN_0 + (unsigned)mt_frame_origin(view->symbols, node->frame);
}

static struct mt_cell_box cell_box(const struct view *view, const struct mt_node *node,
                                   uint64_t bytes)
{
    double width = pixels(view, bytes);
    double gap = width > 2.5 ? 1 : width > 1 ? 0.5 : 0;
    struct mt_cell_box box = {.x = view->x + pixels(view, node->offset),
                              .y = row_y(view, node->depth),
                              .width = width - gap,
                              .height = view->pitch - 1.5,
                              .fill = node_color(view, node),
                              .centred = node->kind == MT_NODE_BLOCKS};

    return box;
}

/* Neighbours of one origin differ a little, so that their edges show. */
static uint8_t node_shade(const struct mt_node *node)
{
    return node->kind == MT_NODE_FRAME ? node->frame & 1 : 0;
}

static const char *node_title(const struct view *view, const struct mt_node *node)
{
    struct mt_arena *arena = &view->drawing->arena;
    char size[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    const char *label =
        node->kind == MT_NODE_ROOT ? "all live blocks" : mt_node_label(arena, view->symbols, node);
    const char *role = node->kind == MT_NODE_BLOCKS ? mt_role_title(node->role) : "";

    return mt_arena_printf(
        arena, "%s%s%s: %s (%s B), %s, %s %s", label ? label : "", *role ? ", " : "", role,
        mt_format_bytes(size, node->bytes), mt_format_count(exact, node->bytes),
        mt_format_percent(share, (double)node->bytes / (double)view->icicle->nodes[0].bytes),
        mt_format_count(blocks, node->blocks), node->blocks == 1 ? "block" : "blocks");
}

static const char *blocks_text(const struct view *view, const struct mt_node *node, double room)
{
    char size[MT_UNITS_TEXT];
    const char *label = mt_node_label(&view->drawing->arena, view->symbols, node);

    if (node->blocks > 1 && label && 1.06 * mt_text_width(label, MT_CELL_TEXT, MT_REGULAR) <= room)
        return label;
    return mt_arena_printf(&view->drawing->arena, "%s", mt_format_bytes(size, node->bytes));
}

/* "no stack, in warm-up", else "in warm-up". */
static const char *no_stack_text(const struct view *view, const struct mt_node *node, double room)
{
    const char *text = mt_node_label(&view->drawing->arena, view->symbols, node);

    if (node->is_engine || !*node->phase_name || !text ||
        1.06 * mt_text_width(text, MT_CELL_TEXT, MT_REGULAR) <= room)
        return text;
    return mt_arena_printf(&view->drawing->arena, "in %s", node->phase_name);
}

static const char *node_text(const struct view *view, const struct mt_node *node, double room)
{
    const char *text = "";

    switch (node->kind) {
    case MT_NODE_ROOT: text = "peak allocated"; break;
    case MT_NODE_FRAME: return mt_cell_frame_text(view->drawing, view->symbols, node->frame, room);
    case MT_NODE_NO_STACK: text = no_stack_text(view, node, room); break;
    case MT_NODE_BLOCKS:
        text = blocks_text(view, node, room);
        /* half a number misleads */
        if (text && 1.06 * mt_text_width(text, MT_CELL_TEXT, MT_REGULAR) > room)
            text = "";
        break;
    }
    return text ? text : "";
}

static const char *const cell_roles[] = {"cell:root", "cell:frame", "cell:no-stack", "cell:blocks"};

static void draw_node(const struct view *view, const struct mt_node *node)
{
    struct mt_cell_box box = cell_box(view, node, node->bytes);
    struct mt_paint paint = {
        .fill = box.fill, .shade = node_shade(node), .radius = box.width > 6 ? 2 : 0};
    char amount[MT_UNITS_TEXT];

    mt_draw_rect(view->drawing, box.x, box.y, box.width, box.height, &paint, node_title(view, node),
                 cell_roles[node->kind]);
    if (box.height >= MT_CELL_TEXT + 2)
        mt_cell_write(view->drawing, &box, node_text(view, node, mt_cell_room(&box)),
                      mt_format_bytes(amount, node->bytes));
}

/* This node and its younger siblings, all narrow, as one cell: of their role or
 * origin if they share it. Returns the node behind them. */
static uint32_t draw_rest(struct view *view, uint32_t first)
{
    const struct mt_node *nodes = view->icicle->nodes, *node = &nodes[first];
    uint32_t end = nodes[node->parent].end, siblings = 0;
    uint64_t bytes = 0, blocks = 0;
    struct mt_paint paint = {.fill = node_color(view, node)};
    struct mt_cell_box box;
    char size[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    const char *title;

    for (uint32_t i = first; i < end; i = nodes[i].end) {
        bytes += nodes[i].bytes;
        blocks += nodes[i].blocks;
        siblings++;
        if (node_color(view, &nodes[i]) != paint.fill)
            paint.fill = MT_COLOR_UNUSED;
    }
    if (pixels(view, bytes) < LEAST_REST) {
        view->dropped_groups += end - first;
        view->dropped_bytes += bytes;
        return end;
    }
    view->summed_groups += end - first;
    view->summed_bytes += bytes;
    box = cell_box(view, node, bytes);
    title = mt_arena_printf(&view->drawing->arena, "%u narrow %s: %s (%s B), %s %s", siblings,
                            siblings == 1 ? "group" : "groups", mt_format_bytes(size, bytes),
                            mt_format_count(exact, bytes), mt_format_count(count, blocks),
                            blocks == 1 ? "block" : "blocks");
    mt_draw_rect(view->drawing, box.x, box.y, box.width, box.height, &paint, title, "cell:rest");
    return end;
}

static void draw_cells(struct view *view)
{
    const struct mt_node *nodes = view->icicle->nodes;
    uint32_t i = 0;

    while (i < view->icicle->count) {
        if (nodes[i].depth >= view->rows) { /* the picture is too low for it */
            view->dropped_groups += nodes[i].end - i;
            i = nodes[i].end;
        } else if (nodes[i].depth && pixels(view, nodes[i].bytes) < view->least) {
            i = draw_rest(view, i);
        } else {
            draw_node(view, &nodes[i++]);
        }
    }
}

/* How many cells would be drawn, and down to which row. */
static uint32_t count_cells(const struct view *view, uint32_t *rows)
{
    const struct mt_node *nodes = view->icicle->nodes;
    uint32_t count = 1, i = 1;

    *rows = 1;
    while (i < view->icicle->count) {
        bool narrow = pixels(view, nodes[i].bytes) < view->least;

        if (nodes[i].depth >= *rows)
            *rows = nodes[i].depth + 1;
        count++;
        i = narrow ? nodes[nodes[i].parent].end : i + 1;
    }
    return count;
}

/* ---- around them ----------------------------------------------------- */

static void draw_ruler(const struct view *view, double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_GRID}, tick = {.stroke = MT_COLOR_AXIS};
    uint64_t total = view->icicle->nodes[0].bytes;
    struct mt_ticks ticks;

    mt_byte_ticks(&ticks, total, total, view->width < 900 ? 6 : 9);
    mt_draw_line(view->drawing, view->x, y, view->x + view->width, y, &line);
    for (size_t i = 1; i < ticks.count; i++) {
        double x = view->x + pixels(view, ticks.ticks[i].value);

        mt_draw_line(view->drawing, x, y - 5, x, y + 4, &tick);
        mt_frame_text(view->drawing, x - 5, y - 5, ticks.ticks[i].label, MT_SIZE_SMALL, MT_REGULAR,
                      MT_COLOR_MUTED, MT_ANCHOR_END, "tick-x");
    }
}

struct legend {
    struct mt_swatch origins[MT_ORIGIN_COUNT], roles[MT_ROLE_COUNT];
    size_t origin_count, role_count;
};

static void collect_legend(const struct view *view, struct legend *legend)
{
    bool has_origin[MT_ORIGIN_COUNT] = {false}, has_role[MT_ROLE_COUNT] = {false};
    bool has_engine = false;

    memset(legend, 0, sizeof *legend);
    for (uint32_t i = 1; i < view->icicle->count; i++) {
        const struct mt_node *node = &view->icicle->nodes[i];

        if (node->kind == MT_NODE_BLOCKS)
            has_role[node->role] = true;
        else
            has_origin[node_color(view, node) - MT_COLOR_ORIGIN_0] = true;
        has_engine |= node->is_engine ||
                      (node->kind == MT_NODE_FRAME && node_color(view, node) == ENGINE_COLOR);
    }
    for (unsigned i = 0; i < MT_ORIGIN_COUNT; i++)
        if (has_origin[i])
            legend->origins[legend->origin_count++] = (struct mt_swatch){
                i == MT_ORIGIN_ENGINE && !has_engine ? "no stack recorded"
                                                     : mt_origin_name((enum mt_origin)i),
                MT_COLOR_ORIGIN_0 + i};
    for (unsigned i = 0; i < MT_ROLE_COUNT; i++)
        if (has_role[i])
            legend->roles[legend->role_count++] =
                (struct mt_swatch){mt_role_title((enum mt_role)i), mt_role_color((enum mt_role)i)};
}

static double legend_width(const char *heading, const struct mt_swatch *swatches, size_t count)
{
    double width = 1.05 * mt_text_width(heading, MT_SIZE_SMALL, MT_REGULAR) + 12;

    for (size_t i = 0; i < count; i++)
        width += 37 + 1.05 * mt_text_width(swatches[i].text, 12.5, MT_REGULAR);
    return width;
}

static double draw_legend_part(const struct view *view, double x, double y, const char *heading,
                               const struct mt_swatch *swatches, size_t count)
{
    x += 1.05 * mt_frame_text(view->drawing, x, y, heading, 12.5, MT_REGULAR, MT_COLOR_FAINT,
                              MT_ANCHOR_START, "legend-heading");
    return mt_frame_swatches(view->drawing, x + 12, y, view->x + view->width, swatches, count);
}

/* One line if it fits, else two. Returns the y below. */
static double draw_legend(const struct view *view, double y)
{
    struct legend legend;
    double first, second, x = view->x;

    collect_legend(view, &legend);
    first = legend_width("call stack", legend.origins, legend.origin_count);
    second = legend_width("blocks", legend.roles, legend.role_count);
    y += 14;
    if (legend.origin_count)
        x = draw_legend_part(view, x, y, "call stack", legend.origins, legend.origin_count) + 12;
    if (legend.origin_count && first + second + 12 > view->width) {
        x = view->x;
        y += 21;
    }
    draw_legend_part(view, x, y, "blocks", legend.roles, legend.role_count);
    return y + 10;
}

/* ---- the table ------------------------------------------------------- */

/* A line of the table: blocks right below a node, or, in a reversed picture,
 * all that its innermost frame allocated. */
struct holder {
    const struct mt_node *node;
    uint64_t bytes, blocks;
    enum mt_role role;
};

static int compare_holders(const void *a, const void *b)
{
    const struct holder *left = a, *right = b;

    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    return left->node < right->node ? -1 : left->node > right->node; /* picture order */
}

/* Role of most bytes below a node. */
static enum mt_role role_below(const struct mt_icicle *icicle, const struct mt_node *node)
{
    uint64_t bytes[MT_ROLE_COUNT] = {0};
    unsigned best = 0;

    for (const struct mt_node *at = node; at < icicle->nodes + node->end; at++)
        if (at->kind == MT_NODE_BLOCKS)
            bytes[at->role] += at->bytes;
    for (unsigned role = 1; role < MT_ROLE_COUNT; role++)
        if (bytes[role] > bytes[best])
            best = role;
    return (enum mt_role)best;
}

/* All lines, largest first, in the arena. */
static struct holder *find_holders(const struct view *view, size_t *count)
{
    const struct mt_icicle *icicle = view->icicle;
    struct holder *holders = mt_arena_array(&view->drawing->arena, icicle->count, sizeof *holders);

    *count = 0;
    if (!holders) {
        view->drawing->failed = true;
        return NULL;
    }
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];

        if (view->reversed && node->depth == 1)
            holders[(*count)++] =
                (struct holder){node, node->bytes, node->blocks, role_below(icicle, node)};
        else if (!view->reversed && node->own_bytes)
            holders[(*count)++] =
                (struct holder){node, node->own_bytes, node->own_blocks, node->role};
    }
    if (*count)
        qsort(holders, *count, sizeof *holders, compare_holders);
    return holders;
}

/* " train.py:58" for the innermost user frame around a node of somebody else:
 * it tells two calls of one function apart. */
static const char *user_line(const struct view *view, const struct mt_node *node, uint32_t caller)
{
    const struct mt_node *nodes = view->icicle->nodes;
    const char *place;

    if (node_color(view, &nodes[caller]) != USER_COLOR || node_color(view, node) == USER_COLOR)
        return "";
    for (uint32_t i = node->parent; i != caller; i = nodes[i].parent)
        if (node_color(view, &nodes[i]) == USER_COLOR)
            return "";
    place = mt_frame_place(&view->drawing->arena, view->symbols, nodes[caller].frame);
    place = place ? mt_arena_printf(&view->drawing->arena, " %s", place) : NULL;
    return place ? place : "";
}

/* "in <module> › main › train", callers from the outermost in. */
static const char *path_text(const struct view *view, const struct mt_node *node)
{
    struct mt_arena *arena = &view->drawing->arena;
    const struct mt_node *nodes = view->icicle->nodes;
    const char *path = "";

    if (node->kind == MT_NODE_NO_STACK)
        return node->is_engine ? "no Python stack, allocated in backward" : "";
    for (uint32_t i = node->parent; i; i = nodes[i].parent) {
        const char *name = nodes[i].kind == MT_NODE_FRAME
                               ? mt_frame_function(arena, view->symbols, nodes[i].frame)
                               : mt_node_label(arena, view->symbols, &nodes[i]);
        path = mt_arena_printf(arena, "%s%s%s%s", name ? name : "", user_line(view, node, i),
                               *path ? " › " : "", path);
        if (!path)
            return "";
    }
    path = *path ? mt_arena_printf(arena, "in %s", path) : path;
    return path ? path : "";
}

struct columns {
    double bytes, share, blocks, role, role_width;
};

static struct columns table_columns(const struct view *view)
{
    double right = view->x + view->width;
    struct columns columns = {.role_width = 104, .role = right - 118};

    columns.blocks = columns.role - 22;
    columns.share = columns.blocks - 62;
    columns.bytes = columns.share - 74;
    return columns;
}

static void draw_holder(const struct view *view, const struct holder *holder, double y)
{
    struct mt_drawing *drawing = view->drawing;
    struct columns columns = table_columns(view);
    struct mt_paint swatch = {.fill = mt_role_color(holder->role), .radius = 2};
    double room = columns.bytes - 76 - view->x, used;
    char text[MT_UNITS_TEXT];
    const char *label = mt_node_label(&drawing->arena, view->symbols, holder->node), *path;

    label = mt_text_fit(drawing, label ? label : "", 13, MT_SEMIBOLD, room, true);
    used = 1.06 * mt_frame_text(drawing, view->x, y, label, 13, MT_SEMIBOLD, MT_COLOR_TEXT,
                                MT_ANCHOR_START, "holder-name");
    path = mt_text_fit(drawing, path_text(view, holder->node), MT_SIZE_SMALL, MT_REGULAR,
                       room - used - 12, true);
    if (*path)
        mt_frame_text(drawing, view->x + used + 12, y, path, MT_SIZE_SMALL, MT_REGULAR,
                      MT_COLOR_MUTED, MT_ANCHOR_START, "holder-path");
    mt_frame_text(drawing, columns.bytes, y, mt_format_bytes(text, holder->bytes), 13, MT_SEMIBOLD,
                  MT_COLOR_TEXT, MT_ANCHOR_END, "holder-bytes");
    mt_format_percent(text, (double)holder->bytes / (double)view->icicle->nodes[0].bytes);
    mt_frame_text(drawing, columns.share, y, text, 13, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END,
                  "holder-share");
    mt_frame_text(drawing, columns.blocks, y, mt_format_count(text, holder->blocks), 13, MT_REGULAR,
                  MT_COLOR_MUTED, MT_ANCHOR_END, "holder-blocks");
    mt_draw_rect(drawing, columns.role, y - 10, 11, 11, &swatch, NULL, "swatch");
    mt_frame_text(drawing, columns.role + 17, y, mt_role_title(holder->role), MT_SIZE_SMALL,
                  MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "holder-role");
}

static void draw_table(const struct view *view, double y, size_t most)
{
    static const char *const headings[] = {"bytes", "of peak", "blocks"};
    const struct mt_paint line = {.stroke = MT_COLOR_GRID};
    struct columns columns = table_columns(view);
    const double ends[] = {columns.bytes, columns.share, columns.blocks};

    mt_frame_text(view->drawing, view->x, y, "Largest holders", 14, MT_SEMIBOLD, MT_COLOR_TEXT,
                  MT_ANCHOR_START, "heading");
    for (size_t i = 0; i < MT_ARRAY_LEN(headings); i++)
        mt_frame_text(view->drawing, ends[i], y, headings[i], MT_SIZE_SMALL, MT_REGULAR,
                      MT_COLOR_FAINT, MT_ANCHOR_END, "heading");
    mt_frame_text(view->drawing, columns.role, y, "mostly", MT_SIZE_SMALL, MT_REGULAR,
                  MT_COLOR_FAINT, MT_ANCHOR_START, "heading");
    for (size_t i = 0; i < most; i++) {
        double rule = y + 7;

        mt_draw_line(view->drawing, view->x, rule, view->x + view->width, rule, &line);
        y += TABLE_PITCH;
        draw_holder(view, &view->holders[i], y);
    }
}

/* ---- the whole picture ----------------------------------------------- */

static const char *facts(const struct view *view, const struct mt_instant *instant)
{
    struct mt_drawing *drawing = view->drawing;
    const struct mt_node *root = &view->icicle->nodes[0];
    const char *where = mt_frame_where(drawing, view->report, instant->phase, instant->step);
    const char *text;
    char size[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];

    text = mt_arena_printf(
        &drawing->arena,
        "%s (%s B) live in %s %s at t = %s%s%s · width = bytes · framework plumbing hidden",
        mt_format_bytes(size, root->bytes), mt_format_count(exact, root->bytes),
        mt_format_count(blocks, root->blocks), root->blocks == 1 ? "block" : "blocks",
        mt_frame_when(drawing, view->report, instant->t_ns), *where ? ", " : "", where);
    return text ? text : "";
}

static bool has_engine(const struct mt_icicle *icicle)
{
    for (uint32_t i = 1; i < icicle->count; i = icicle->nodes[i].end)
        if (icicle->nodes[i].kind == MT_NODE_NO_STACK && icicle->nodes[i].is_engine)
            return true;
    return false;
}

static void add_share(struct mt_buf *out, const struct view *view, uint64_t bytes)
{
    char size[MT_UNITS_TEXT], share[MT_UNITS_TEXT];

    mt_buf_printf(out, " (%s, %s)", mt_format_bytes(size, bytes),
                  mt_format_percent(share, (double)bytes / (double)view->icicle->nodes[0].bytes));
}

static void draw_footnote(const struct view *view)
{
    struct mt_buf text = {0};
    char least[MT_UNITS_TEXT];

    if (view->summed_groups) {
        struct mt_buf number = {0};

        mt_buf_add_decimal(&number, view->least, 1);
        mt_buf_printf(&text, "%s cells narrower than %s px are drawn as their sum",
                      mt_format_count(least, view->summed_groups), number.data ? number.data : "");
        add_share(&text, view, view->summed_bytes);
        mt_buf_release(&number);
    }
    if (view->dropped_groups) {
        mt_buf_printf(&text, "%s%s too narrow to draw", text.length ? ", " : "",
                      mt_format_count(least, view->dropped_groups));
        add_share(&text, view, view->dropped_bytes);
    }
    if (has_engine(view->icicle))
        mt_buf_printf(&text, "%sthe autograd thread records no Python frames",
                      text.length ? " · " : "");
    if (view->report->roles_inferred)
        mt_buf_printf(&text, "%sroles are inferred", text.length ? " · " : "");
    if (text.length)
        mt_frame_footnote(view->drawing, text.data);
    mt_buf_release(&text);
}

/* Height for `rows` rows of cells and so many holders below the legend. */
static double height_of(double top, uint32_t rows, double pitch, size_t holders)
{
    return top + rows * pitch + 34 + (double)holders * TABLE_PITCH + 44;
}

/* A low picture first gets thinner rows, then a shorter table, then fewer rows. */
static size_t fit_height(struct view *view, double wish)
{
    size_t holders = view->holder_count < HOLDERS ? view->holder_count : HOLDERS;
    double height = wish > 0 ? mt_frame_height(wish, wish) : 0;

    view->pitch = PITCH;
    if (wish > 0) {
        while (view->pitch > LEAST_PITCH &&
               height_of(view->top, view->rows, view->pitch, holders) > height)
            view->pitch--;
        while (holders > 1 && height_of(view->top, view->rows, view->pitch, holders) > height)
            holders--;
        while (view->rows > 2 && height_of(view->top, view->rows, view->pitch, holders) > height)
            view->rows--;
    }
    view->drawing->height =
        mt_frame_height(fmax(height, height_of(view->top, view->rows, view->pitch, holders)), 0);
    return holders;
}

static void draw_picture(struct view *view, const struct mt_instant *instant, const char *title,
                         const struct mt_chart_options *options)
{
    double y = mt_frame_header(view->drawing, title, facts(view, instant));
    size_t holders;

    y = draw_legend(view, y) + 26;
    view->top = y + 8;
    view->scale = view->width / (double)view->icicle->nodes[0].bytes;
    for (view->least = LEAST_CELL; count_cells(view, &view->rows) > MAX_CELLS;)
        view->least *= 1.25;
    view->holders = find_holders(view, &view->holder_count);
    holders = fit_height(view, options->height);
    draw_ruler(view, y);
    draw_cells(view);
    draw_table(view, view->top + view->rows * view->pitch + 34, holders);
    draw_footnote(view);
}

static void draw_nothing(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device, const char *title)
{
    drawing->height = 320;
    mt_frame_nothing(drawing,
                     mt_frame_header(drawing, title, mt_frame_facts(drawing, report, device)) + 10,
                     device ? "No block was alive" : "No allocator events",
                     "There is nothing that could hold memory.");
}

enum mt_status mt_icicle_draw(const struct mt_report *report, const struct mt_device_report *device,
                              const struct mt_chart_options *options, struct mt_drawing *drawing,
                              struct mt_error *error)
{
    struct view view = {.drawing = drawing,
                        .report = report,
                        .symbols = report->symbols,
                        .flame = options->flame,
                        .reversed = options->reversed};
    const struct mt_icicle_options shape = {.reversed = options->reversed};
    const struct mt_instant *instant = device && device->instant_count ? device->instants : NULL;
    struct mt_icicle *icicle = NULL;
    const char *title;
    enum mt_status status = MT_OK;

    mt_drawing_init(drawing, mt_frame_width(options->width), mt_frame_height(options->height, 700),
                    "icicle");
    view.x = MT_MARGIN;
    view.width = drawing->width - 2 * MT_MARGIN;
    title = mt_frame_title(drawing, report, device, "who holds memory at the peak");
    mt_frame_describe(drawing, report, device, title);
    if (instant)
        status =
            mt_icicle_build(&drawing->arena, instant->holdings, instant->holding_count,
                            report->phases, report->phase_count, report->symbols, &shape, &icicle);
    if (status)
        return mt_fail(error, status, MT_NO_OFFSET, "no memory for the icicle");
    view.icicle = icicle;
    if (icicle && icicle->nodes[0].bytes)
        draw_picture(&view, instant, title, options);
    else
        draw_nothing(drawing, report, device, title);
    return drawing->failed ? mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for the icicle")
                           : MT_OK;
}
