/* What holds of every picture, checked on its display list. */
#ifndef TESTS_DRAWING_CHECKS_H
#define TESTS_DRAWING_CHECKS_H

#include <math.h>
#include <string.h>

#include "backends.h"
#include "draw.h"
#include "place.h"

static inline bool drawing_is(const struct mt_op *op, const char *role)
{
    return op->role && !strcmp(op->role, role);
}

static inline bool drawing_inside(const struct mt_drawing *drawing, const struct mt_box *box)
{
    return box->x >= -0.01 && box->y >= -0.01 && box->x + box->width <= drawing->width + 0.01 &&
           box->y + box->height <= drawing->height + 0.01;
}

/* Every number is one, every text and shape lies in the picture, no two texts
 * overlap. Returns NULL, or what is wrong. */
static inline const char *drawing_fault(const struct mt_drawing *drawing)
{
    if (drawing->failed)
        return "failed";
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        struct mt_box box = {op->x, op->y, op->width, op->height};

        if (!isfinite(op->x + op->y + op->width + op->height))
            return "a coordinate is no number";
        if (op->kind == MT_OP_TEXT) {
            box = mt_text_box(op);
            if (!drawing_inside(drawing, &box))
                return op->text;
            for (size_t j = 0; j < i; j++) {
                struct mt_box other;

                if (drawing->ops[j].kind != MT_OP_TEXT)
                    continue;
                other = mt_text_box(&drawing->ops[j]);
                if (mt_box_overlap(&box, &other) > 0.5)
                    return op->text;
            }
        }
        if (op->kind == MT_OP_RECT && !drawing_inside(drawing, &box))
            return "a rectangle leaves the picture";
        for (uint32_t p = 0; p < op->point_count; p++)
            if (!isfinite(op->points[p].x + op->points[p].y) || op->points[p].x < -0.01 ||
                op->points[p].x > drawing->width + 0.01 || op->points[p].y < -0.01 ||
                op->points[p].y > drawing->height + 0.01)
                return "a line leaves the picture";
    }
    return NULL;
}

/* Does a text stand in this rectangle? */
static inline bool drawing_has_text_in(const struct mt_drawing *drawing, const struct mt_op *rect)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        struct mt_box box;

        if (op->kind != MT_OP_TEXT)
            continue;
        box = mt_text_box(op);
        if (box.x >= rect->x - 0.01 && box.x + box.width <= rect->x + rect->width + 0.01 &&
            box.y + box.height / 2 >= rect->y && box.y + box.height / 2 <= rect->y + rect->height)
            return true;
    }
    return false;
}

static inline const struct mt_op *drawing_find(const struct mt_drawing *drawing, const char *role)
{
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], role))
            return &drawing->ops[i];
    return NULL;
}

#endif
