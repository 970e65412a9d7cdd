/* From a display list to a file's bytes. */
#ifndef MT_RENDER_BACKENDS_H
#define MT_RENDER_BACKENDS_H

#include "buf.h"
#include "draw.h"

/* Appends the SVG to `out`. Pure function of list and theme. */
enum mt_status mt_svg_write(const struct mt_drawing *drawing, enum mt_theme theme,
                            struct mt_buf *out, struct mt_error *error) MT_MUST_USE;

/* Appends the content of the one <style> element that mt_svg_write makes of the same list
 * and theme, byte for byte: a page that embeds the SVG allows it by its hash. */
void mt_svg_add_style(const struct mt_drawing *drawing, enum mt_theme theme, struct mt_buf *out);

/* Appends a PNG of width*scale x height*scale pixels, RGB 8 bit.
 * MT_ERR_UNSUPPORTED if built without cairo or libpng. */
enum mt_status mt_png_write(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                            struct mt_buf *out, struct mt_error *error) MT_MUST_USE;

/* The same, handed on piece by piece: what it takes does not grow with the picture.
 * `write` answers false if a piece could not be written: MT_ERR_OUTPUT then. */
struct mt_png_sink {
    bool (*write)(void *context, const void *bytes, size_t length);
    void *context;
};
enum mt_status mt_png_stream(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                             const struct mt_png_sink *sink, struct mt_error *error) MT_MUST_USE;

bool mt_png_available(void);

#endif
