/* Shared by the parts of the chart of steps: the two plots and the legend. */
#ifndef MT_RENDER_TREND_LAYOUT_H
#define MT_RENDER_TREND_LAYOUT_H

#include "chart.h"
#include "chart_frame.h"
#include "trend.h"

/* A column with one step or several steps. The level of a step is the bytes that are still
 * allocated when the step ends. A column has the range of the levels and the largest peak. */
struct mt_trend_column {
    double left, right; /* x of the edges */
    uint32_t first, count;
    uint64_t level_min, level_max, level_last, peak, reserved;
};

struct mt_trend_layout {
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_step_use *steps; /* the steps that are drawn */
    struct mt_trend trend;
    struct mt_box plot, level; /* level: a panel that enlarges the levels; height 0 = none */
    double side_x, side_y, side_width, side_bottom; /* side_width 0: there is no room */
    struct mt_ticks ticks;
    uint64_t top;   /* at the upper edge of the plot */
    bool is_broken; /* some columns of the warm-up are higher: they are broken at that edge */
    uint64_t level_low, level_high; /* range of the enlarged panel */
    struct mt_trend_column *columns;
    uint32_t column_count;
    bool is_grouped; /* columns have several steps */
};

static inline enum mt_color mt_trend_color(const struct mt_trend *trend)
{
    switch (trend->verdict) {
    case MT_TREND_GROWS: return MT_COLOR_BAD;
    case MT_TREND_STEADY: return MT_COLOR_GOOD;
    case MT_TREND_NOT_JUDGED:
    case MT_TREND_TOO_SHORT: break;
    }
    return MT_COLOR_FAINT;
}

/* The peak of the run, if it is visibly higher (1%) than that of every drawn step; otherwise
 * NULL. */
const struct mt_peak *mt_trend_outer_peak(const struct mt_trend_layout *layout);

void mt_trend_draw_plots(struct mt_drawing *drawing, const struct mt_trend_layout *layout);

#endif
