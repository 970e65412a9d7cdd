/* The input of the chart of differences. */
#ifndef MT_RENDER_DIFF_VIEW_H
#define MT_RENDER_DIFF_VIEW_H

#include "diff.h"
#include "question.h"

/* Two runs that are compared by site at the same instant. */
struct mt_diff_view {
    const struct mt_diff *diff;
    const struct mt_device_diff *device; /* a device of `diff`; NULL = no device is in both runs */
    const struct mt_question *question;
};

#endif
