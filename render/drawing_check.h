#ifndef MT_RENDER_DRAWING_CHECK_H
#define MT_RENDER_DRAWING_CHECK_H

#include "draw.h"

/* Whole-structure check of a finished display list: what a back end relies on when it reads the
 * list. Every number is finite, every shape lies inside the picture, enums are values of their
 * type, texts are UTF-8 that may be shown, and groups are balanced. If not, *why is the rule that
 * is broken. A drawing that lacks a part because memory ran out passes: no back end finishes it.
 * Cost: linear in the operations, their points and the bytes of their texts. */
bool mt_drawing_is_sound(const struct mt_drawing *drawing, const char **why);

#endif
