/* RGB values of the colors of draw.h, for light and dark themes. */
#ifndef MT_RENDER_THEME_H
#define MT_RENDER_THEME_H

#include "draw.h"

/* Returns the color as 0xRRGGBB. MT_THEME_AUTO means light. */
uint32_t mt_theme_rgb(enum mt_theme theme, enum mt_color color);

/* Returns `color` in one of four slight variations. Shade 0 is the color itself. */
uint32_t mt_theme_shade(enum mt_theme theme, enum mt_color color, unsigned shade);

/* Returns a mix of `level` / 15 of `color` with the color of memory that is reserved and free. */
uint32_t mt_theme_tint(enum mt_theme theme, enum mt_color color, unsigned level);
#define MT_TINTS 16

/* Returns the color of the area between the lines of a hatch in `color`. */
uint32_t mt_theme_hatch_ground(enum mt_theme theme, enum mt_color color);

/* Returns the color of text that is readable in both themes on a cell filled with `color`: ON_DARK,
 * ON_LIGHT or TEXT. */
enum mt_color mt_theme_text_on(enum mt_color color);

/* Like mt_theme_text_on, for a cell that is filled with the result of mt_theme_shade. */
enum mt_color mt_theme_text_on_shade(enum mt_color color, unsigned shade);

/* Horizontal distance and thickness of the lines of a hatch, in logical pixels. */
#define MT_HATCH_PERIOD 9
#define MT_HATCH_WIDTH  1.2

#endif
