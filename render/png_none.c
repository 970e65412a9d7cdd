#include "backends.h"

bool mt_png_available(void)
{
    return false;
}

static enum mt_status refuse(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "this memtrace was built without cairo and libpng; write an .svg file instead");
}

enum mt_status mt_png_stream(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                             const struct mt_png_sink *sink, struct mt_error *error)
{
    (void)drawing;
    (void)theme;
    (void)scale;
    (void)sink;
    return refuse(error);
}

enum mt_status mt_png_write(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                            struct mt_buf *out, struct mt_error *error)
{
    (void)drawing;
    (void)theme;
    (void)scale;
    (void)out;
    return refuse(error);
}
