/* Draws a display list as pixels, with cairo. Horizontal and vertical edges are rounded to whole
 * pixels and drawn without anti-aliasing, so they are sharp, fast to draw, and independent of the
 * version of cairo. */
#ifndef MT_RENDER_RASTER_H
#define MT_RENDER_RASTER_H

#include "draw.h"

#define MT_RASTER_MAX_SIDE   16384
#define MT_RASTER_MAX_PIXELS 40000000 /* limit unless `huge` of the drawing is set */

/* Draws a picture of width*scale x height*scale pixels, one band of rows at a time, so that the use
 * of memory does not grow with the height. */
struct mt_raster;

/* Returns MT_ERR_UNSUPPORTED if the picture exceeds the limits above. */
enum mt_status mt_raster_open(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                              struct mt_raster **raster, struct mt_error *error) MT_MUST_USE;
int mt_raster_width(const struct mt_raster *raster);
int mt_raster_height(const struct mt_raster *raster);

/* The next rows of the picture, from the top down. A word is 0x00RRGGBB. `rows` is 0 after the last
 * band. The words are valid until the next call of mt_raster_next. */
struct mt_raster_band {
    const uint32_t *words;
    size_t stride; /* words from row to row */
    int rows;
};
enum mt_status mt_raster_next(struct mt_raster *raster, struct mt_raster_band *band,
                              struct mt_error *error) MT_MUST_USE;
void mt_raster_close(struct mt_raster *raster);

#endif
