/* The parts of the chart `ranks`: bars (ranks_chart.c), the axis below them (ranks_axis.c) and
 * the labels above them (ranks_labels.c). */
#ifndef MT_RENDER_RANKS_LAYOUT_H
#define MT_RENDER_RANKS_LAYOUT_H

#include "job_labels.h"

#define MT_RANKS_LABEL_PITCH 19.0

/* What a lane shows of its rows. */
struct mt_ranks_column {
    uint32_t row_count, death_count, missing_count;
    uint64_t reserved_max_bytes, reserved_min_bytes, allocated_max_bytes;
    uint32_t max_row;
    double left, right; /* of the bar */
};

/* A label above the bars, and the line that falls from it. */
struct mt_ranks_label {
    const struct mt_job_label *label;
    const char *text;
    double x, left, right, width; /* x is that of the line, the others are those of the text */
    uint32_t level;               /* 0 is the lowest row */
    bool is_left, was_left; /* the text is left of its line; it was before it had to avoid others */
    bool is_placed, is_dropped; /* dropped: it gets only room that others leave */
};

struct mt_ranks_layout {
    const struct mt_job_report *report;
    struct mt_job_order order;
    struct mt_job_lanes lanes;
    struct mt_ranks_column *columns; /* of each lane */
    struct mt_box plot;
    uint32_t label_rows; /* the maximum; after mt_ranks_place_labels, those that are used */
    uint64_t top;        /* bytes at the upper edge of the plot */
    struct mt_job_labels wanted;
    struct mt_ranks_label labels[MT_JOB_LABELS];
    uint32_t label_count;
    uint32_t unnamed_outliers;
};

static inline double mt_ranks_y(const struct mt_ranks_layout *layout, uint64_t bytes)
{
    return layout->plot.y + layout->plot.height * (1 - (double)bytes / (double)layout->top);
}

/* Returns the height of the axis below the plot, in pixels. */
double mt_ranks_axis_height(const struct mt_job_order *order);
/* Marks of deaths and gaps, numbers of ranks, and groups. */
void mt_ranks_draw_axis(struct mt_drawing *drawing, const struct mt_ranks_layout *layout);

/* Labels of notable ranks: the largest, the lowest, the median, the first death, outliers, gaps.
 * Needs the lanes and the horizontal extent of the plot. Sets label_rows to the number of rows,
 * and counts the outliers that do not fit. */
void mt_ranks_place_labels(struct mt_drawing *drawing, struct mt_ranks_layout *layout);
/* Draws the labels, and their marks on the bars. */
void mt_ranks_draw_labels(struct mt_drawing *drawing, const struct mt_ranks_layout *layout);

#endif
