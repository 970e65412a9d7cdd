/* Splits advice into prose and settings. Documents mark settings as code, so that readers can copy
 * them. */
#ifndef MT_RENDER_ADVICE_H
#define MT_RENDER_ADVICE_H

#include "buf.h"

/* A part of an advice: a setting, or the text between two settings. A setting is NAME=VALUE without
 * a space in the value, as in "fused=True", or a line for a shell, as in "export NAME=VALUE" and
 * "unset NAME". */
struct mt_advice_part {
    struct mt_buf text; /* the caller zeroes it before the first call and releases it */
    bool is_setting;
};

/* Sets *part to the next part of *rest and advances *rest. Returns false at the end of the text.
 * The parts together are the whole text. */
bool mt_advice_next(const char **rest, struct mt_advice_part *part);

#endif
