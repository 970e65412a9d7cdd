/* The parts of the chart `ranks`: bars (ranks_chart.c), the axis below them (ranks_chart.c) and
 * the labels above them (ranks_labels.c). */
#ifndef MT_RENDER_RANKS_LAYOUT_H
#define MT_RENDER_RANKS_LAYOUT_H

#include "job_frame.h"

#define MT_RANKS_LABEL_PITCH 19.0

/* A summary of the rows of a lane. */
struct mt_ranks_column {
    uint32_t row_count, death_count, missing_count;
    uint64_t reserved_max_bytes, reserved_min_bytes, allocated_max_bytes;
    uint32_t max_row;
    double left, right; /* edges of the bar */
};

/* A label above the bars, with a line from the label down to the bar. */
struct mt_ranks_label {
    const struct mt_job_label *label;
    const char *text;
    double x, left, right, width; /* x: of the line; left, right, width: of the text */
    uint32_t level;               /* 0 is the lowest row */
    bool is_left, was_left; /* is_left: the text is left of its line; was_left: its side before it
                               had to avoid other labels */
    bool is_placed, is_dropped; /* is_dropped: it gets only the room that other labels leave */
};

struct mt_ranks_layout {
    const struct mt_job_report *report;
    struct mt_job_order order;
    struct mt_job_lanes lanes;
    struct mt_ranks_column *columns; /* one for each lane */
    struct mt_box plot;
    /* available rows of labels; after mt_ranks_place_labels: rows that are used */
    uint32_t label_rows;
    uint64_t top; /* bytes at the upper edge of the plot */
    struct mt_job_labels wanted;
    struct mt_ranks_label labels[MT_JOB_LABELS];
    uint32_t label_count;
    uint32_t unnamed_outliers;
};

static inline double mt_ranks_y(const struct mt_ranks_layout *layout, uint64_t bytes)
{
    return layout->plot.y + layout->plot.height * (1 - (double)bytes / (double)layout->top);
}

/* Places labels of notable ranks: the largest, the lowest, the median, the first death, outliers,
 * and gaps. The lanes and the horizontal extent of the plot must be set. Sets label_rows to the
 * number of rows that are used, and counts the outliers whose labels do not fit. */
void mt_ranks_place_labels(struct mt_drawing *drawing, struct mt_ranks_layout *layout);

/* Draws the labels, and their marks on the bars. */
void mt_ranks_draw_labels(struct mt_drawing *drawing, const struct mt_ranks_layout *layout);

#endif
