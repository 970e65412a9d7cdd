/* Draws a display list as pixels, with cairo. Axis-parallel edges are snapped to pixels and drawn
 * without anti-aliasing: sharp, fast, and the same with every version of the rasterizer. */
#ifndef MT_RENDER_RASTER_H
#define MT_RENDER_RASTER_H

#include "draw.h"

#define MT_RASTER_MAX_SIDE   16384
#define MT_RASTER_MAX_PIXELS 40000000 /* more only if the caller allows it */

/* A picture of width*scale x height*scale pixels, one band of rows at a time, so that memory does
 * not grow with its height. */
struct mt_raster;

/* MT_ERR_UNSUPPORTED: the picture exceeds the limits above. */
enum mt_status mt_raster_open(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                              struct mt_raster **raster, struct mt_error *error) MT_MUST_USE;
int mt_raster_width(const struct mt_raster *raster);
int mt_raster_height(const struct mt_raster *raster);

/* Returns the next rows, from the top down, as words 0x00RRGGBB; *rows is 0 after the last. Valid
 * until the next call. */
struct mt_raster_band {
    const uint32_t *words;
    size_t stride; /* words from row to row */
    int rows;
};
enum mt_status mt_raster_next(struct mt_raster *raster, struct mt_raster_band *band,
                              struct mt_error *error) MT_MUST_USE;
void mt_raster_close(struct mt_raster *raster);

#endif
