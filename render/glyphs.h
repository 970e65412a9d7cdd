/* Letters that look the same on every machine: outlines and advance widths of the font Inter. The
 * module does not depend on cairo or SVG. */
#ifndef MT_RENDER_GLYPHS_H
#define MT_RENDER_GLYPHS_H

#include <stdint.h>

#include "glyph_table.h"

#define MT_GLYPH_EM  2816.0 /* font units of one em */
#define MT_GLYPH_CAP 2048.0 /* height of capitals and figures */

/* Returns the next character of UTF-8 text and advances *text by at least one byte. Returns
 * U+FFFD for invalid UTF-8, and 0 at the end. */
uint32_t mt_utf8_next(const char **text);

/* Returns NULL if the table does not have the character. In that case, draw a hollow box with an
 * advance width of MT_GLYPH_BOX_ADVANCE. O(1) for ASCII. */
const struct mt_glyph *mt_glyph_find(const struct mt_glyph_table *table, uint32_t character);

#define MT_GLYPH_BOX_ADVANCE 1700

enum mt_weight { MT_REGULAR, MT_SEMIBOLD };

/* Returns the advance width of UTF-8 text in the built-in outlines. */
double mt_text_width(const char *text, double size, enum mt_weight weight);

#endif
