/* Letters that every machine draws the same: outlines and advance widths of
 * Inter, compiled in (glyph_table.c, made by tools/make_glyphs.py). Knows
 * nothing of cairo or SVG. */
#ifndef MT_RENDER_GLYPHS_H
#define MT_RENDER_GLYPHS_H

#include <stddef.h>
#include <stdint.h>

#define MT_GLYPH_EM  2816.0 /* font units of one em */
#define MT_GLYPH_CAP 2048.0 /* height of capitals and figures */

/* Operations of an outline, each followed by its points (x, y with y up). Every
 * MOVE begins a contour, which is closed. */
enum mt_glyph_op { MT_GLYPH_MOVE, MT_GLYPH_LINE, MT_GLYPH_CURVE };

struct mt_glyph {
    uint16_t character;
    uint16_t advance;
    uint16_t length; /* numbers in the outline */
    uint32_t start;  /* of the first in outlines[] */
};

struct mt_glyph_table {
    const struct mt_glyph *glyphs; /* by character; 0x20..0x7e come first */
    uint32_t count;
    const int16_t *outlines;
};

extern const struct mt_glyph_table mt_glyph_tables[2]; /* by enum mt_weight */

/* Next character of UTF-8 text; *text moves on, at least one byte. What is not
 * UTF-8 is U+FFFD. 0 at the end. */
uint32_t mt_utf8_next(const char **text);

/* NULL if the table has no such character: draw a hollow box of
 * MT_GLYPH_BOX_ADVANCE units. O(1) for ASCII. */
const struct mt_glyph *mt_glyph_find(const struct mt_glyph_table *table, uint32_t character);

#define MT_GLYPH_BOX_ADVANCE 1700

#endif
