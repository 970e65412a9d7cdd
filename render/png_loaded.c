/* Replaces png.c in the program: the same functions, from libmemtrace-png.so. */
#include <string.h>

#include "backends.h"
#include "module.h"

static const struct mt_module module = {
    "libmemtrace-png.so", "this memtrace was built without cairo", "cairo (Debian: libcairo2)"};

bool mt_png_available(struct mt_error *error)
{
    return mt_module_function(&module, "mt_png_stream", error) != NULL;
}

enum mt_status mt_png_stream(const struct mt_drawing *drawing, enum mt_theme theme, double scale,
                             const struct mt_png_sink *sink, struct mt_error *error)
{
    void *symbol = mt_module_function(&module, "mt_png_stream", error);
    __typeof__(&mt_png_stream) stream;

    if (!symbol)
        return error ? error->status : MT_ERR_UNSUPPORTED;
    memcpy(&stream, &symbol, sizeof stream);
    mt_module_share_memory_rules(&module);
    return stream(drawing, theme, scale, sink, error);
}
