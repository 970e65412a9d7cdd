/* What to change, as documents show it: settings in it are code, to be copied. */
#ifndef MT_RENDER_ADVICE_H
#define MT_RENDER_ADVICE_H

#include "buf.h"

/* A part of an advice: a setting, or the words between two of them. A setting is NAME=VALUE
 * without a blank in the value, as in "fused=True", or a line for a shell: "export NAME=VALUE",
 * "unset NAME". */
struct mt_advice_part {
    struct mt_buf text; /* {0} at first; mt_buf_release */
    bool is_setting;
};

/* The next part of *rest, which moves on behind it; false at the end. Parts put together are the
 * whole text. A part for which there was no memory is short, and part->text.failed. */
bool mt_advice_next(const char **rest, struct mt_advice_part *part);

#endif
