/* Shared by the parts of the chart of allocators: the axis, the rows, and the marks. */
#ifndef MT_RENDER_POLICIES_LAYOUT_H
#define MT_RENDER_POLICIES_LAYOUT_H

#include "chart.h"
#include "chart_frame.h"
#include "policy_table.h"

struct mt_policies_layout {
    const struct mt_policy_table *table;
    struct mt_box plot; /* the area of the bars of all rows */
    double pitch;       /* height of a row */
    double label_width; /* left of the plot */
    double columns[3]; /* right edges of the columns: peak reserved, multiple of the bound, smallest
                          limit */
    uint32_t rows;     /* number of rows that fit */
    uint64_t top;      /* bytes at the right edge of the plot */
};

static inline double mt_policies_x(const struct mt_policies_layout *layout, uint64_t bytes)
{
    return layout->plot.x + layout->plot.width * ((double)bytes / (double)layout->top);
}

/* Returns the width in pixels that the name of a row needs. */
double mt_policies_label_width(struct mt_drawing *drawing, const struct mt_policy_row *row);
void mt_policies_draw_axis(struct mt_drawing *drawing, const struct mt_policies_layout *layout);
void mt_policies_draw_rows(struct mt_drawing *drawing, const struct mt_policies_layout *layout);
/* Draws vertical lines through all rows, with their names above the plot. */
void mt_policies_draw_marks(struct mt_drawing *drawing, const struct mt_policies_layout *layout);

#endif
