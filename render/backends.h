/* Back ends: each writes a display list as the bytes of a file. */
#ifndef MT_RENDER_BACKENDS_H
#define MT_RENDER_BACKENDS_H

#include "buf.h"
#include "draw.h"

/* Appends the SVG to `out`. The bytes depend only on the list and the theme. */
void mt_svg_write(const struct mt_drawing *drawing, enum mt_theme theme, struct mt_buf *out);

/* Appends the content of the single <style> element that mt_svg_write makes for the same list and
 * theme, byte for byte. A page that embeds the SVG allows the element by its hash. */
void mt_svg_add_style(const struct mt_drawing *drawing, enum mt_theme theme, struct mt_buf *out);

/* Receives the pieces of a PNG file from mt_png_stream. `write` returns false if it cannot write a
 * piece; mt_png_stream then returns MT_ERR_OUTPUT. */
struct mt_png_sink {
    bool (*write)(void *context, const void *bytes, size_t length);
    void *context;
};

/* Writes an 8-bit RGB PNG of width*scale x height*scale pixels. Returns MT_ERR_UNSUPPORTED if
 * cairo is missing. */
enum mt_status mt_png_stream(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                             const struct mt_png_sink *sink, struct mt_error *error) MT_MUST_USE;

/* Returns whether PNG files can be written: cairo is in the program, or its module
 * finds them. If not, `error` (may be NULL) has the reason, and what to do. */
bool mt_png_available(struct mt_error *error);

#endif
