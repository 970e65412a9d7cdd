/* The chart of differences between two runs. */
#ifndef MT_RENDER_DIFF_CHART_H
#define MT_RENDER_DIFF_CHART_H

#include "chart.h"
#include "diff_view.h"

/* Like draw of struct mt_chart (chart.h). */
void mt_diff_draw(const struct mt_diff_view *view, const struct mt_chart_options *options,
                  struct mt_drawing *drawing);

#endif
