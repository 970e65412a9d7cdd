/* Pictures that this program made, recognized by how they begin. */
#ifndef MT_RENDER_OWN_PICTURE_H
#define MT_RENDER_OWN_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

/* `start`: the first bytes of a file, 4 KiB are enough. */
bool mt_svg_is_own(const void *start, size_t length);
bool mt_png_is_own(const void *start, size_t length);

#endif
