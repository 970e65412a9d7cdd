/* Outlines of text as cairo paths. */
#ifndef MT_RENDER_GLYPH_PATH_H
#define MT_RENDER_GLYPH_PATH_H

#include <cairo.h>

#include "draw.h"
#include "glyphs.h"

/* Where letters are drawn: the origin in pixels, and the scale in pixels per font unit. */
struct mt_glyph_pen {
    cairo_t *cairo;
    double x, y, scale;
    bool vertical; /* turned 90 degrees counter-clockwise */
};

/* Adds one letter at `along` font units from the origin. If `glyph` is NULL, adds a hollow box,
 * which replaces a character without an outline. */
void mt_glyph_path(const struct mt_glyph_pen *pen, const struct mt_glyph_table *table,
                   const struct mt_glyph *glyph, double along);

/* Adds a line of text. */
void mt_text_path(const struct mt_glyph_pen *pen, const char *text, enum mt_weight weight);

#endif
