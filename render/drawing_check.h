#ifndef MT_RENDER_DRAWING_CHECK_H
#define MT_RENDER_DRAWING_CHECK_H

#include "draw.h"

/* Checks a finished display list for everything that a back end relies on. Every number is
 * finite, every shape is inside the picture, enums are values of their type, texts are printable
 * UTF-8, and groups are balanced. Otherwise *why is the broken rule. A drawing that lacks a part
 * because memory ran out passes: no back end finishes it. Cost: linear in the operations, their
 * points and the bytes of their texts. */
bool mt_drawing_is_sound(const struct mt_drawing *drawing, const char **why);

#endif
