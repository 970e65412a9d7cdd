#include "backends.h"

bool mt_png_available(void)
{
    return false;
}

enum mt_status mt_png_write(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                            struct mt_buf *out, struct mt_error *error)
{
    (void)drawing;
    (void)theme;
    (void)scale;
    (void)out;
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "this memtrace was built without cairo and libpng: write an .svg instead");
}
