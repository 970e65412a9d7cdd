/* Advice in documents: settings in it are marked as code, so that they can be copied. */
#ifndef MT_RENDER_ADVICE_H
#define MT_RENDER_ADVICE_H

#include "buf.h"

/* A part of an advice: a setting, or the words between two settings. A setting is NAME=VALUE
 * without a space in the value, as in "fused=True", or a line for a shell: "export NAME=VALUE",
 * "unset NAME". */
struct mt_advice_part {
    struct mt_buf text; /* zeroed by the caller at first; release it with mt_buf_release */
    bool is_setting;
};

/* Returns the next part of *rest and advances it; false at the end. The parts together are the
 * whole text. If memory runs out, the part is short and part->text.failed is set. */
bool mt_advice_next(const char **rest, struct mt_advice_part *part);

#endif
