#ifndef MT_RENDER_DRAWING_CHECK_H
#define MT_RENDER_DRAWING_CHECK_H

#include "draw.h"

/* Checks the properties of a finished display list on which back ends rely: every number is finite,
 * every shape is inside the picture, enums have values of their type, texts are printable UTF-8,
 * and groups are balanced. Returns false and sets *why if a property does not hold. Cost:
 * linear in the operations, their points and the bytes of their texts. */
bool mt_drawing_is_sound(const struct mt_drawing *drawing, const char **why);

#endif
