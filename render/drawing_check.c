#include "drawing_check.h"

#include <math.h>
#include <string.h>

#include "check.h"
#include "foreign_text.h"
#include "place.h"
#include "theme.h"

/* Rounding may move a shape beyond the edge of the picture, by an invisible amount. */
#define EDGE_SLACK 0.01

/* A letter may extend above the box of mt_text_box, into the margin of the picture. */
#define TEXT_SLACK 1.0

/* The maximum length of a key of a PNG tEXt chunk. */
#define MAX_KEY_BYTES 79

/* Returns true if all characters may be shown, because draw.h escapes the others. Line ends and
 * tabs are allowed in hover text. */
static bool may_be_shown(const char *text)
{
    struct mt_foreign_text rest = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;

    while (mt_foreign_next(&rest, &c))
        if (!c.is_shown && c.code != '\n' && c.code != '\t')
            return false;
    return true;
}

static bool is_absent_or_shown(const char *text)
{
    return !text || may_be_shown(text);
}

/* Returns true for a valid id. It becomes a part of SVG ids, which back ends do not escape. */
static bool is_id(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Returns true for a valid key. It becomes an attribute in SVG, which back ends do not escape. */
static bool is_block_key(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.")] == '\0';
}

static bool is_key(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return length >= 1 && length <= MAX_KEY_BYTES;
}

static bool is_inside(const struct mt_drawing *drawing, const struct mt_box *box, double slack)
{
    return isfinite(box->x) && isfinite(box->y) && isfinite(box->width) && isfinite(box->height) &&
           box->width >= 0 && box->height >= 0 && box->x >= -slack && box->y >= -slack &&
           box->x + box->width <= drawing->width + slack &&
           box->y + box->height <= drawing->height + slack;
}

static bool is_color(enum mt_color color)
{
    return color >= MT_COLOR_NONE && color < MT_COLOR_COUNT;
}

static bool paint_is_sound(const struct mt_paint *paint, const char **why)
{
    MT_SOUND(why, is_color(paint->fill));
    MT_SOUND(why, is_color(paint->stroke));
    MT_SOUND(why, isfinite(paint->stroke_width) && paint->stroke_width >= 0);
    MT_SOUND(why, paint->opacity >= 0 && paint->opacity <= 1);
    MT_SOUND(why, isfinite(paint->radius) && paint->radius >= 0);
    MT_SOUND(why, paint->shade <= 3);
    MT_SOUND(why, paint->tint <= MT_TINTS);
    MT_SOUND(why, !paint->hatched || paint->fill);
    return true;
}

static bool rect_is_sound(const struct mt_drawing *drawing, const struct mt_op *op,
                          const char **why)
{
    const struct mt_box box = {op->x, op->y, op->width, op->height};

    MT_SOUND(why, is_inside(drawing, &box, EDGE_SLACK));
    return true;
}

static bool circle_is_sound(const struct mt_drawing *drawing, const struct mt_op *op,
                            const char **why)
{
    const struct mt_box box = {op->x - op->width, op->y - op->width, 2 * op->width, 2 * op->width};

    MT_SOUND(why, op->width > 0);
    MT_SOUND(why, is_inside(drawing, &box, EDGE_SLACK));
    return true;
}

static bool points_are_sound(const struct mt_drawing *drawing, const struct mt_op *op,
                             const char **why)
{
    MT_SOUND(why, op->points);
    MT_SOUND(why, op->kind != MT_OP_LINE || op->point_count == 2);
    for (uint32_t i = 0; i < op->point_count; i++) {
        const struct mt_box point = {op->points[i].x, op->points[i].y, 0, 0};

        MT_SOUND(why, is_inside(drawing, &point, EDGE_SLACK));
    }
    return true;
}

/* Checks cells, including their order by y and x: a back end stops at the first cell below its part
 * of the picture. */
static bool cells_are_sound(const struct mt_drawing *drawing, const struct mt_op *op,
                            const char **why)
{
    MT_SOUND(why, isfinite(op->unit) && op->unit > 0);
    MT_SOUND(why, op->cells || !op->cell_count);
    for (uint32_t i = 0; i < op->cell_count; i++) {
        const struct mt_grid_cell *cell = &op->cells[i], *last = i ? cell - 1 : cell;

        MT_SOUND(why, cell->width && cell->height);
        MT_SOUND(why, (cell->x + cell->width) * op->unit <= op->width + EDGE_SLACK);
        MT_SOUND(why, (cell->y + cell->height) * op->unit <= op->height + EDGE_SLACK);
        MT_SOUND(why, last->y < cell->y || (last->y == cell->y && last->x <= cell->x));
    }
    return rect_is_sound(drawing, op, why);
}

static bool text_is_sound(const struct mt_drawing *drawing, const struct mt_op *op,
                          const char **why)
{
    const struct mt_text_style *style = &op->style;

    MT_SOUND(why, op->text && may_be_shown(op->text));
    MT_SOUND(why, isfinite(style->size) && style->size > 0);
    MT_SOUND(why, style->weight >= MT_REGULAR && style->weight <= MT_SEMIBOLD);
    MT_SOUND(why, style->anchor >= MT_ANCHOR_START && style->anchor <= MT_ANCHOR_END);
    MT_SOUND(why, is_color(style->color) && style->color);
    MT_SOUND(why, isfinite(op->text_width) && op->text_width >= 0);
    struct mt_box box = mt_text_box(op);
    MT_SOUND(why, !*op->text || is_inside(drawing, &box, TEXT_SLACK));
    return true;
}

static bool operation_is_sound(const struct mt_drawing *drawing, const struct mt_op *op,
                               const char **why)
{
    MT_SOUND(why, !op->key || is_block_key(op->key));
    MT_SOUND(why, is_absent_or_shown(op->title));
    MT_SOUND(why, is_absent_or_shown(op->role));
    if (!paint_is_sound(&op->paint, why))
        return false;
    switch (op->kind) {
    case MT_OP_RECT: return rect_is_sound(drawing, op, why);
    case MT_OP_CIRCLE: return circle_is_sound(drawing, op, why);
    case MT_OP_PATH:
    case MT_OP_LINE: return points_are_sound(drawing, op, why);
    case MT_OP_CELLS: return cells_are_sound(drawing, op, why);
    case MT_OP_TEXT: return text_is_sound(drawing, op, why);
    case MT_OP_GROUP_BEGIN:
    case MT_OP_GROUP_END: return true;
    }
    *why = "a kind of operation that does not exist";
    return false;
}

static bool head_is_sound(const struct mt_drawing *drawing, const char **why)
{
    MT_SOUND(why, isfinite(drawing->width) && drawing->width > 0);
    MT_SOUND(why, isfinite(drawing->height) && drawing->height > 0);
    MT_SOUND(why, drawing->id && is_id(drawing->id));
    MT_SOUND(why, is_absent_or_shown(drawing->title));
    MT_SOUND(why, is_absent_or_shown(drawing->description));
    MT_SOUND(why, drawing->op_count <= drawing->op_capacity);
    MT_SOUND(why,
             drawing->metadata_count <= sizeof drawing->metadata / sizeof drawing->metadata[0]);
    for (size_t i = 0; i < drawing->metadata_count; i++) {
        MT_SOUND(why, drawing->metadata[i].key && is_key(drawing->metadata[i].key));
        MT_SOUND(why, is_absent_or_shown(drawing->metadata[i].value));
    }
    return true;
}

bool mt_drawing_is_sound(const struct mt_drawing *drawing, const char **why)
{
    size_t open_groups = 0;

    if (!head_is_sound(drawing, why))
        return false;
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!operation_is_sound(drawing, op, why))
            return false;
        MT_SOUND(why, op->kind != MT_OP_GROUP_END || open_groups);
        open_groups += op->kind == MT_OP_GROUP_BEGIN;
        open_groups -= op->kind == MT_OP_GROUP_END;
    }
    MT_SOUND(why, !open_groups);
    return true;
}
