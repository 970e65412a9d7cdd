/* The contents of the picture of a diff. */
#ifndef MT_RENDER_DIFF_VIEW_H
#define MT_RENDER_DIFF_VIEW_H

#include "diff.h"
#include "question.h"

/* Two runs, compared at the same instant, by site. */
struct mt_diff_view {
    const struct mt_diff *diff;
    const struct mt_device_diff *device; /* one of them; NULL = no device is in both */
    const struct mt_question *question;
};

#endif
