/* The chart of differences between two runs. */
#ifndef MT_RENDER_DIFF_CHART_H
#define MT_RENDER_DIFF_CHART_H

#include "chart.h"
#include "chart_frame.h"
#include "diff.h"
#include "question.h"

/* The input of the chart of differences. */

/* Two runs that are compared by site at the same instant. */
struct mt_diff_view {
    const struct mt_diff *diff;
    const struct mt_device_diff *device; /* a device of `diff`; NULL = no device is in both runs */
    const struct mt_question *question;
};

/* Like draw of struct mt_chart (chart.h). */
void mt_diff_draw(const struct mt_diff_view *view, const struct mt_chart_options *options,
                  struct mt_drawing *drawing);

/* Shared by the parts of the chart of differences: the waterfall and the table of sites. */

static inline uint64_t mt_diff_size(const struct mt_diff_row *row)
{
    return row->b_bytes > row->a_bytes ? row->b_bytes - row->a_bytes : row->a_bytes - row->b_bytes;
}

#endif
