/* The chart that shows how much memory each value of a sweep needs. */
#ifndef MT_RENDER_SWEEP_CHART_H
#define MT_RENDER_SWEEP_CHART_H

#include "chart.h"
#include "sweep.h"

/* Like draw of struct mt_chart (chart.h). */
void mt_sweep_draw(const struct mt_sweep *sweep, const struct mt_chart_options *options,
                   struct mt_drawing *drawing);

#endif
