/* The chart that compares allocators for the same requests. */
#ifndef MT_RENDER_POLICIES_CHART_H
#define MT_RENDER_POLICIES_CHART_H

#include "chart.h"
#include "policy_table.h"

/* Like draw of struct mt_chart (chart.h). The table must be finished. */
void mt_policies_draw(const struct mt_policy_table *table, const struct mt_chart_options *options,
                      struct mt_drawing *drawing);

#endif
