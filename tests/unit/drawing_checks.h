/* Rules that every picture keeps, checked on its display list. */
#ifndef TESTS_DRAWING_CHECKS_H
#define TESTS_DRAWING_CHECKS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "place.h"

static inline bool drawing_box_is_sane(const struct mt_box *box, const struct mt_drawing *drawing)
{
    return isfinite(box->x) && isfinite(box->y) && isfinite(box->width) && isfinite(box->height) &&
           box->x >= -0.5 && box->y >= -0.5 && box->x + box->width <= drawing->width + 0.5 &&
           box->y + box->height <= drawing->height + 0.5;
}

/* Bounding box of an operation. */
static inline struct mt_box drawing_op_box(const struct mt_op *op)
{
    struct mt_box box = {op->x, op->y, op->width, op->height};
    double right, bottom;

    if (op->kind == MT_OP_TEXT)
        return mt_text_box(op);
    if (op->kind == MT_OP_CIRCLE)
        return (struct mt_box){op->x - op->width, op->y - op->width, 2 * op->width, 2 * op->width};
    if (op->kind != MT_OP_PATH && op->kind != MT_OP_LINE)
        return box;
    box.x = box.y = HUGE_VAL;
    right = bottom = -HUGE_VAL;
    for (uint32_t i = 0; i < op->point_count; i++) {
        box.x = fmin(box.x, op->points[i].x);
        box.y = fmin(box.y, op->points[i].y);
        right = fmax(right, op->points[i].x);
        bottom = fmax(bottom, op->points[i].y);
    }
    box.width = right - box.x;
    box.height = bottom - box.y;
    return box;
}

/* Does a straight line, such as the leader of a label, run through the box? */
static inline bool drawing_line_crosses(const struct mt_op *line, const struct mt_box *box)
{
    const struct mt_point *from = &line->points[0], *to = &line->points[1];
    int steps = 2 * (int)hypot(to->x - from->x, to->y - from->y) + 1, inside = 0;

    for (int i = 0; i <= steps; i++) {
        double x = from->x + (to->x - from->x) * i / steps;
        double y = from->y + (to->y - from->y) * i / steps;

        inside += x > box->x && x < box->x + box->width && y > box->y && y < box->y + box->height;
    }
    return inside > 4; /* two pixels: boxes are a little larger than their letters */
}

/* Returns the text that the line at `index` crosses, or NULL. A leader may cross no text. A grid
 * line may cross no text written before it: later text has a halo that keeps it readable. */
static inline const char *drawing_crossed_text(const struct mt_drawing *drawing, size_t index)
{
    const struct mt_op *line = &drawing->ops[index];
    bool is_leader = line->role && !strcmp(line->role, "leader");
    size_t end = is_leader ? drawing->op_count
                 : line->kind == MT_OP_LINE && line->paint.stroke == MT_COLOR_GRID ? index
                                                                                   : 0;

    for (size_t i = 0; i < end; i++) {
        if (drawing->ops[i].kind != MT_OP_TEXT || !*drawing->ops[i].text)
            continue;
        struct mt_box box = mt_text_box(&drawing->ops[i]);
        if (drawing_line_crosses(line, &box))
            return drawing->ops[i].text;
    }
    return NULL;
}

/* Returns NULL if everything is inside the frame and no text is covered by other text or crossed by
 * a leader. Otherwise returns what is wrong (static text). */
static inline const char *drawing_fault(const struct mt_drawing *drawing)
{
    static char fault[400];

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        struct mt_box box = drawing_op_box(op), other;

        if (op->kind == MT_OP_GROUP_BEGIN || op->kind == MT_OP_GROUP_END)
            continue;
        if (!drawing_box_is_sane(&box, drawing)) {
            snprintf(fault, sizeof fault, "leaves the frame: %s %s \"%s\" %d,%d %dx%d", drawing->id,
                     op->role ? op->role : "", op->text ? op->text : "", (int)box.x, (int)box.y,
                     (int)box.width, (int)box.height);
            return fault;
        }
        if (drawing_crossed_text(drawing, i)) {
            snprintf(fault, sizeof fault, "%s: a line crosses \"%s\"", drawing->id,
                     drawing_crossed_text(drawing, i));
            return fault;
        }
        for (size_t j = 0; op->kind == MT_OP_TEXT && *op->text && j < i; j++) {
            if (drawing->ops[j].kind != MT_OP_TEXT || !*drawing->ops[j].text)
                continue;
            other = mt_text_box(&drawing->ops[j]);
            if (mt_box_overlap(&box, &other) < 1)
                continue;
            snprintf(fault, sizeof fault, "%s: \"%s\" covers \"%s\" at %d,%d", drawing->id,
                     op->text, drawing->ops[j].text, (int)box.x, (int)box.y);
            return fault;
        }
    }
    return NULL;
}

static inline bool drawing_is(const struct mt_op *op, const char *role)
{
    return op->role && !strcmp(op->role, role);
}

/* Returns a text that covers a mark, NULL = none. */
static inline const char *drawing_covered_mark(const struct mt_drawing *drawing,
                                               bool (*is_mark)(const struct mt_op *op))
{
    for (size_t m = 0; m < drawing->op_count; m++) {
        struct mt_box mark = drawing_op_box(&drawing->ops[m]), text;

        if (!is_mark(&drawing->ops[m]))
            continue;
        mark.height = fmax(mark.height, 1);
        for (size_t i = 0; i < drawing->op_count; i++) {
            if (drawing->ops[i].kind != MT_OP_TEXT || !*drawing->ops[i].text)
                continue;
            text = mt_text_box(&drawing->ops[i]);
            if (mt_box_overlap(&text, &mark) >= 1)
                return drawing->ops[i].text;
        }
    }
    return NULL;
}

/* Does a text with that role contain these words? */
static inline bool drawing_says(const struct mt_drawing *drawing, const char *role,
                                const char *words)
{
    for (uint32_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], role) && drawing->ops[i].text &&
            strstr(drawing->ops[i].text, words))
            return true;
    return false;
}

/* First operation with that role, NULL = none. */
static inline const struct mt_op *drawing_find(const struct mt_drawing *drawing, const char *role)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        if (drawing_is(&drawing->ops[i], role))
            return &drawing->ops[i];
    }
    return NULL;
}

/* Is there text in this rectangle? */
static inline bool drawing_has_text_in(const struct mt_drawing *drawing, const struct mt_op *rect)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        if (drawing->ops[i].kind != MT_OP_TEXT)
            continue;
        struct mt_box box = mt_text_box(&drawing->ops[i]);
        if (box.x >= rect->x - 0.01 && box.x + box.width <= rect->x + rect->width + 0.01 &&
            box.y + box.height / 2 >= rect->y && box.y + box.height / 2 <= rect->y + rect->height)
            return true;
    }
    return false;
}

/* y of a stepped line at x: the y of the last point at or before x. */
static inline double drawing_y_at(const struct mt_op *op, double x, double otherwise)
{
    double y = otherwise;

    for (uint32_t i = 0; i < op->point_count && op->points[i].x <= x; i++)
        y = op->points[i].y;
    return y;
}

#endif
