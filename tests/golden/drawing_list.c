/* drawing_list CHART TRACE -o - [options of render]: the display list of a picture, one operation
 * a line. It is `memtrace render` with another writer in place of that of SVG, so that a golden
 * shows which label moved, not which pixel. Tests only.
 *
 * Long lists of points, cells and operations of one kind are written as their number, both ends and
 * a hash. */
#include "backends.h"
#include "check.h"
#include "cli.h"
#include "util.h"

#include <math.h>
#include <string.h>

enum { MAX_POINTS = 6, MAX_SERIES = 12, SERIES_END = 3 }; /* that are written out */

static const char *const colors[] = {
    [MT_COLOR_BACKGROUND] = "background",
    [MT_COLOR_PANEL] = "panel",
    [MT_COLOR_GRID] = "grid",
    [MT_COLOR_AXIS] = "axis",
    [MT_COLOR_TEXT] = "text",
    [MT_COLOR_MUTED] = "muted",
    [MT_COLOR_FAINT] = "faint",
    [MT_COLOR_RESERVED] = "reserved",
    [MT_COLOR_UNUSED] = "unused",
    [MT_COLOR_GOOD] = "good",
    [MT_COLOR_WARN] = "warn",
    [MT_COLOR_BAD] = "bad",
    [MT_COLOR_LIMIT] = "limit",
    [MT_COLOR_ON_DARK] = "on-dark",
    [MT_COLOR_ON_LIGHT] = "on-light",
    [MT_COLOR_CURVE] = "curve",
    [MT_COLOR_CURVE_FILL] = "curve-fill",
    [MT_COLOR_ROOT] = "root",
    [MT_COLOR_STEP_TINT] = "step-tint",
    [MT_COLOR_LEVEL] = "level",
    [MT_COLOR_LEVEL_RANGE] = "level-range",
    [MT_COLOR_LEVEL_PEAK] = "level-peak",
    [MT_COLOR_COUNT] = NULL,
};

static const struct {
    enum mt_color first, last;
    const char *name;
} families[] = {{MT_COLOR_ROLE_0, MT_COLOR_ROLE_LAST, "role"},
                {MT_COLOR_ORIGIN_0, MT_COLOR_ORIGIN_LAST, "origin"},
                {MT_COLOR_PHASE_0, MT_COLOR_PHASE_LAST, "phase"},
                {MT_COLOR_CHANGE_0, MT_COLOR_CHANGE_LAST, "change"},
                {MT_COLOR_STREAM_0, MT_COLOR_STREAM_LAST, "stream"}};

static void add_color(struct mt_buf *out, const char *key, enum mt_color color)
{
    if (!color)
        return;
    MT_ASSERT(color < MT_COLOR_COUNT);
    mt_buf_printf(out, " %s=%s", key, colors[color] ? colors[color] : "");
    bool is_known = colors[color] != NULL;
    for (size_t i = 0; i < MT_ARRAY_LEN(families); i++)
        if (color >= families[i].first && color <= families[i].last) {
            mt_buf_printf(out, "%s%u", families[i].name, (unsigned)(color - families[i].first));
            is_known = true;
        }
    MT_ASSERT(is_known);
}

/* As fine as SVG shows it. */
static void add_number(struct mt_buf *out, const char *before, double value)
{
    mt_buf_add_text(out, before);
    mt_buf_add_decimal(out, value, 1);
}

static void add_flag(struct mt_buf *out, const char *name, bool is_set)
{
    if (is_set)
        mt_buf_printf(out, " %s", name);
}

static void add_words(struct mt_buf *out, const char *key, const char *text)
{
    if (!text)
        return;
    mt_buf_printf(out, " %s\"", key);
    for (; *text; text++) {
        if (*text == '\n')
            mt_buf_add_text(out, "\\n");
        else
            mt_buf_add_char(out, *text);
    }
    mt_buf_add_char(out, '"');
}

static void add_paint(struct mt_buf *out, const struct mt_paint *paint)
{
    add_color(out, "fill", paint->fill);
    if (paint->shade)
        mt_buf_printf(out, " shade=%u", paint->shade);
    if (paint->tint)
        mt_buf_printf(out, " tint=%u", paint->tint);
    add_color(out, "stroke", paint->stroke);
    if (paint->stroke && paint->stroke_width > 0)
        add_number(out, " width=", paint->stroke_width);
    if (paint->opacity > 0 && paint->opacity < 1) {
        mt_buf_add_text(out, " opacity=");
        mt_buf_add_decimal(out, paint->opacity, 2);
    }
    if (paint->radius > 0)
        add_number(out, " radius=", paint->radius);
    add_flag(out, "dashed", paint->dashed);
    add_flag(out, "dotted", paint->dotted);
    add_flag(out, "hatched", paint->hatched);
    add_flag(out, "unseen", paint->unseen);
}

/* FNV-1a over tenths of pixels: the same on every machine. */
static uint64_t hash(uint64_t sum, double value)
{
    int64_t tenths = llround(value * 10);

    for (unsigned i = 0; i < 8; i++)
        sum = (sum ^ (uint8_t)((uint64_t)tenths >> (8 * i))) * UINT64_C(0x100000001b3);
    return sum;
}
#define HASH_OF_NOTHING UINT64_C(0xcbf29ce484222325)

static void add_point(struct mt_buf *out, const struct mt_point *point)
{
    add_number(out, " ", point->x);
    add_number(out, ",", point->y);
}

static void add_points(struct mt_buf *out, const struct mt_op *op)
{
    uint64_t sum = HASH_OF_NOTHING;

    for (uint32_t i = 0; i < op->point_count; i++) {
        sum = hash(hash(sum, op->points[i].x), op->points[i].y);
        if (op->point_count <= MAX_POINTS || i < 2 || i + 2 >= op->point_count)
            add_point(out, &op->points[i]);
        else if (i == 2)
            mt_buf_add_text(out, " ...");
    }
    if (op->point_count > MAX_POINTS)
        mt_buf_printf(out, " (%u points, %016llx)", op->point_count, (unsigned long long)sum);
    add_flag(out, "closed", op->closed);
    add_flag(out, "stepped", op->stepped);
}

static void add_cell(struct mt_buf *out, const struct mt_grid_cell *cell)
{
    add_number(out, " ", cell->x);
    add_number(out, ",", cell->y);
    add_number(out, " ", cell->width);
    add_number(out, "x", cell->height);
}

static void add_cells(struct mt_buf *out, const struct mt_op *op)
{
    uint64_t sum = HASH_OF_NOTHING;

    for (uint32_t i = 0; i < op->cell_count; i++) {
        const struct mt_grid_cell *cell = &op->cells[i];

        sum = hash(hash(hash(hash(sum, cell->x), cell->y), cell->width), cell->height);
    }
    add_number(out, " unit=", op->unit);
    for (uint32_t i = 0; i < op->cell_count; i++) {
        if (op->cell_count <= MAX_POINTS || i < 2 || i + 2 >= op->cell_count)
            add_cell(out, &op->cells[i]);
        else if (i == 2)
            mt_buf_add_text(out, " ...");
    }
    mt_buf_printf(out, " (%u cells, %016llx)", op->cell_count, (unsigned long long)sum);
}

static void add_text(struct mt_buf *out, const struct mt_op *op)
{
    static const char *const anchors[] = {"", " middle", " end"};

    add_words(out, "", op->text);
    add_number(out, " size=", op->style.size);
    mt_buf_add_text(out, anchors[op->style.anchor]);
    add_flag(out, "bold", op->style.weight == MT_SEMIBOLD);
    add_flag(out, "halo", op->style.halo);
    add_flag(out, "vertical", op->style.vertical);
    add_color(out, "color", op->style.color);
}

static void add_operation(struct mt_buf *out, const struct mt_op *op)
{
    static const char *const kinds[] = {"rect",   "path",  "line",  "text",
                                        "circle", "cells", "group", "end"};
    bool has_place = op->kind == MT_OP_RECT || op->kind == MT_OP_CELLS ||
                     op->kind == MT_OP_CIRCLE || op->kind == MT_OP_TEXT;

    mt_buf_add_text(out, kinds[op->kind]);
    if (op->role)
        mt_buf_printf(out, " %s", op->role);
    if (has_place)
        add_point(out, &(struct mt_point){op->x, op->y});
    if (op->kind == MT_OP_RECT || op->kind == MT_OP_CELLS)
        add_number(out, " ", op->width), add_number(out, "x", op->height);
    if (op->kind == MT_OP_CIRCLE)
        add_number(out, " r=", op->width);
    if (op->kind == MT_OP_PATH || op->kind == MT_OP_LINE)
        add_points(out, op);
    if (op->kind == MT_OP_CELLS)
        add_cells(out, op);
    if (op->kind == MT_OP_TEXT)
        add_text(out, op);
    else
        add_paint(out, &op->paint);
    add_words(out, "title=", op->title);
    mt_buf_add_char(out, '\n');
}

static bool is_alike(const struct mt_op *op, const struct mt_op *other)
{
    return op->kind == other->kind && op->kind != MT_OP_TEXT && op->role && other->role &&
           !strcmp(op->role, other->role);
}

/* FNV-1a of the lines of the operations. */
static void add_hash(struct mt_buf *out, const struct mt_op *ops, size_t count)
{
    uint64_t sum = HASH_OF_NOTHING;
    struct mt_buf lines = {0};

    for (size_t i = 0; i < count; i++)
        add_operation(&lines, &ops[i]);
    for (size_t i = 0; i < lines.length; i++)
        sum = (sum ^ (uint8_t)lines.data[i]) * UINT64_C(0x100000001b3);
    mt_buf_printf(out, "... %zu more, %016llx\n", count, (unsigned long long)sum);
    mt_buf_release(&lines);
}

static void add_operations(struct mt_buf *out, const struct mt_op *ops, size_t count)
{
    for (size_t first = 0, next; first < count; first = next) {
        size_t written, left = 0;

        for (next = first + 1; next < count && is_alike(&ops[first], &ops[next]); next++)
            continue;
        if (next - first > MAX_SERIES)
            left = next - first - 2 * SERIES_END;
        written = left ? first + SERIES_END : next;
        for (size_t i = first; i < written; i++)
            add_operation(out, &ops[i]);
        if (left)
            add_hash(out, &ops[written], left);
        for (size_t i = written + left; i < next; i++)
            add_operation(out, &ops[i]);
    }
}

/* The linker puts it in the place of mt_svg_write. */
void __wrap_mt_svg_write(const struct mt_drawing *drawing, enum mt_theme theme, struct mt_buf *out);

void __wrap_mt_svg_write(const struct mt_drawing *drawing, enum mt_theme theme, struct mt_buf *out)
{
    (void)theme;
    mt_buf_printf(out, "drawing %s", drawing->id);
    add_number(out, " ", drawing->width);
    add_number(out, "x", drawing->height);
    add_words(out, "title=", drawing->title);
    add_words(out, "description=", drawing->description);
    mt_buf_add_char(out, '\n');
    for (size_t i = 0; i < drawing->metadata_count; i++)
        mt_buf_printf(out, "metadata %s=%s\n", drawing->metadata[i].key,
                      drawing->metadata[i].value);
    add_operations(out, drawing->ops, drawing->op_count);
}

int main(int argc, char **argv)
{
    static const struct mt_command render = {"render", "", "", "", mt_cmd_render};

    return mt_cmd_render(&render, argc, argv);
}
