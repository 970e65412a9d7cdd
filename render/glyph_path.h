/* Outlines of text as cairo paths. */
#ifndef MT_RENDER_GLYPH_PATH_H
#define MT_RENDER_GLYPH_PATH_H

#include <cairo.h>

#include "draw.h"
#include "glyphs.h"

/* The position of letters: origin in pixels, pixels per font unit. */
struct mt_glyph_pen {
    cairo_t *cairo;
    double x, y, scale;
    bool vertical; /* turned 90 degrees counter-clockwise */
};

/* Adds one letter, `along` font units from the origin. glyph NULL draws the hollow box of a
 * character that has no outline. */
void mt_glyph_path(const struct mt_glyph_pen *pen, const struct mt_glyph_table *table,
                   const struct mt_glyph *glyph, double along);

/* Adds a line of text. */
void mt_text_path(const struct mt_glyph_pen *pen, const char *text, enum mt_weight weight);

#endif
