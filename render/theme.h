/* RGB values of the colors of draw.h, for light and dark themes. */
#ifndef MT_RENDER_THEME_H
#define MT_RENDER_THEME_H

#include "draw.h"

/* 0xRRGGBB. AUTO is read as LIGHT. */
uint32_t mt_theme_rgb(enum mt_theme theme, enum mt_color color);

/* `color` in one of four slight variations; 0 is the color itself. */
uint32_t mt_theme_shade(enum mt_theme theme, enum mt_color color, unsigned shade);

/* `level` 15ths of `color` over the color of memory that is reserved and free. */
uint32_t mt_theme_tint(enum mt_theme theme, enum mt_color color, unsigned level);
#define MT_TINTS 16

/* Returns the color between the lines of a hatch in `color`. */
uint32_t mt_theme_hatch_ground(enum mt_theme theme, enum mt_color color);

/* Text color that can be read on a cell filled with `color` in both themes:
 * ON_DARK, ON_LIGHT or TEXT. */
enum mt_color mt_theme_text_on(enum mt_color color);

/* Like mt_theme_text_on, for a cell in a variation of `color` (the number is that of
 * mt_theme_shade). */
enum mt_color mt_theme_text_on_shade(enum mt_color color, unsigned shade);

/* Hatch lines: horizontal distance and thickness, logical pixels. */
#define MT_HATCH_PERIOD 9
#define MT_HATCH_WIDTH  1.2

#endif
