#include "backends.h"

static bool append(void *context, const void *bytes, size_t length)
{
    struct mt_buf *out = context;

    mt_buf_add(out, bytes, length);
    return true;
}

enum mt_status mt_png_write(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                            struct mt_buf *out, struct mt_error *error)
{
    const struct mt_png_sink sink = {append, out};
    enum mt_status status = mt_png_stream(drawing, theme, scale, &sink, error);

    return status;
}
