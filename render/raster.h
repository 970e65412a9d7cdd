/* From a display list to pixels, through cairo. Axis-parallel edges are snapped
 * to pixels and drawn without anti-aliasing: crisp, quick, and the same with
 * every version of the rasteriser. */
#ifndef MT_RENDER_RASTER_H
#define MT_RENDER_RASTER_H

#include <cairo.h>

#include "draw.h"

#define MT_RASTER_MAX_SIDE   16384
#define MT_RASTER_MAX_PIXELS 40000000

/* RGB24 surface of width*scale x height*scale pixels; the caller destroys it.
 * MT_ERR_UNSUPPORTED beyond the limits above. */
enum mt_status mt_raster_draw(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                              cairo_surface_t **surface, struct mt_error *error) MT_MUST_USE;

#endif
