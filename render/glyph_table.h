/* Outlines and advance widths of the font Inter. The build generates the tables from glyphs.txt
 * (cmake/glyphs.cmake). */
#ifndef MT_RENDER_GLYPH_TABLE_H
#define MT_RENDER_GLYPH_TABLE_H

#include <stdint.h>

/* Operations of an outline. Each is followed by its points: x and y, with y up. Every MOVE starts a
 * closed contour. */
enum mt_glyph_op { MT_GLYPH_MOVE, MT_GLYPH_LINE, MT_GLYPH_CURVE };

struct mt_glyph {
    uint16_t character;
    uint16_t advance;
    uint16_t length; /* numbers in the outline */
    uint32_t start;  /* index of the first number in outlines[] */
};

struct mt_glyph_table {
    const struct mt_glyph *glyphs; /* sorted by character; 0x20..0x7e come first */
    uint32_t count;
    const int16_t *outlines;
};

extern const struct mt_glyph_table mt_glyph_tables[2]; /* by enum mt_weight */

#endif
