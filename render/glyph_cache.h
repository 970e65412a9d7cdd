/* Caches coverage masks of letters. Most letters of a chart have one of a few sizes, and copying a
 * mask is ten times faster than filling an outline. */
#ifndef MT_RENDER_GLYPH_CACHE_H
#define MT_RENDER_GLYPH_CACHE_H

#include <cairo.h>
#include <stdint.h>

#include "arena.h"
#include "draw.h"
#include "glyphs.h"
#include "map.h"

struct mt_glyph_mask {
    int left, top; /* offset of the mask from the pixel of the pen */
    int width, height;
    const uint8_t *coverage; /* width * height, 0..255; NULL = nothing to draw */
};

/* Zeroed memory is an empty cache. */
struct mt_glyph_cache {
    struct mt_arena arena;
    struct mt_map slots;
    struct mt_glyph_mask *masks;
    uint32_t count, capacity;
};

/* Number of horizontal positions of the pen within a pixel for which there are masks. */
#define MT_GLYPH_PHASES 2

/* Returns the mask of a character at `size` pixels per em, with the pen at `phase`/MT_GLYPH_PHASES
 * of a pixel. NULL if cairo fails. */
const struct mt_glyph_mask *mt_glyph_cache_get(struct mt_glyph_cache *cache, uint32_t character,
                                               enum mt_weight weight, double size, unsigned phase);

void mt_glyph_cache_release(struct mt_glyph_cache *cache);

/* Outlines of text as cairo paths. */

/* Where letters are drawn: the origin in pixels, and the scale in pixels per font unit. */
struct mt_glyph_pen {
    cairo_t *cairo;
    double x, y, scale;
    bool vertical; /* turned 90 degrees counter-clockwise */
};

/* Adds a line of text. */
void mt_text_path(const struct mt_glyph_pen *pen, const char *text, enum mt_weight weight);

#endif
