#include "glyph_path.h"

static struct mt_point place(const struct mt_glyph_pen *pen, double along, double up)
{
    struct mt_point point = {pen->x + along * pen->scale, pen->y - up * pen->scale};

    if (pen->vertical) {
        point.x = pen->x - up * pen->scale;
        point.y = pen->y - along * pen->scale;
    }
    return point;
}

static void trace_glyph(const struct mt_glyph_pen *pen, const struct mt_glyph_table *table,
                        const struct mt_glyph *glyph, double along)
{
    const int16_t *at = table->outlines + glyph->start, *end = at + glyph->length;
    struct mt_point p[3];
    int i, points;

    while (at < end) {
        int operation = *at++;

        points = operation == MT_GLYPH_CURVE ? 3 : 1;
        for (i = 0; i < points; i++, at += 2)
            p[i] = place(pen, along + at[0], at[1]);
        if (operation == MT_GLYPH_MOVE) {
            cairo_close_path(pen->cairo);
            cairo_move_to(pen->cairo, p[0].x, p[0].y);
        } else if (operation == MT_GLYPH_LINE) {
            cairo_line_to(pen->cairo, p[0].x, p[0].y);
        } else {
            cairo_curve_to(pen->cairo, p[0].x, p[0].y, p[1].x, p[1].y, p[2].x, p[2].y);
        }
    }
    cairo_close_path(pen->cairo);
}

static void trace_box_side(const struct mt_glyph_pen *pen, double left, double right, double bottom,
                           double top)
{
    const double corners[4][2] = {{left, bottom}, {right, bottom}, {right, top}, {left, top}};
    struct mt_point p;
    int i;

    for (i = 0; i < 4; i++) {
        p = place(pen, corners[i][0], corners[i][1]);
        if (i)
            cairo_line_to(pen->cairo, p.x, p.y);
        else
            cairo_move_to(pen->cairo, p.x, p.y);
    }
    cairo_close_path(pen->cairo);
}

/* Adds the box that replaces a character without an outline. The inner contour runs in the opposite
 * direction, so it is a hole. */
static void trace_box(const struct mt_glyph_pen *pen, double along)
{
    double right = along + MT_GLYPH_BOX_ADVANCE - 150;

    trace_box_side(pen, along + 150, right, 0, MT_GLYPH_CAP);
    trace_box_side(pen, right - 170, along + 320, 170, MT_GLYPH_CAP - 170);
}

void mt_glyph_path(const struct mt_glyph_pen *pen, const struct mt_glyph_table *table,
                   const struct mt_glyph *glyph, double along)
{
    if (glyph)
        trace_glyph(pen, table, glyph, along);
    else
        trace_box(pen, along);
}

void mt_text_path(const struct mt_glyph_pen *pen, const char *text, enum mt_weight weight)
{
    const struct mt_glyph_table *table = &mt_glyph_tables[weight];
    const struct mt_glyph *glyph;
    uint32_t character;
    double along = 0;

    while ((character = mt_utf8_next(&text))) {
        glyph = mt_glyph_find(table, character);
        mt_glyph_path(pen, table, glyph, along);
        along += glyph ? glyph->advance : MT_GLYPH_BOX_ADVANCE;
    }
}
