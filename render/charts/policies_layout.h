/* Parts of the picture of allocators, which share one layout. */
#ifndef MT_RENDER_POLICIES_LAYOUT_H
#define MT_RENDER_POLICIES_LAYOUT_H

#include "chart.h"
#include "chart_frame.h"
#include "policy_table.h"

struct mt_policies_layout {
    const struct mt_policy_table *table;
    struct mt_box plot; /* all rows */
    double pitch;       /* of rows */
    double label_width; /* left of the plot */
    double columns[3];  /* right edges: peak reserved, x bound, smallest limit */
    uint32_t rows;      /* number of rows that fit */
    uint64_t top;       /* bytes at the right edge of the plot */
};

static inline double mt_policies_x(const struct mt_policies_layout *layout, uint64_t bytes)
{
    return layout->plot.x + layout->plot.width * ((double)bytes / (double)layout->top);
}

/* Returns the width in pixels that the name of a row needs. */
double mt_policies_label_width(struct mt_drawing *drawing, const struct mt_policy_row *row);
void mt_policies_draw_axis(struct mt_drawing *drawing, const struct mt_policies_layout *layout);
void mt_policies_draw_rows(struct mt_drawing *drawing, const struct mt_policies_layout *layout);
/* Lines through all rows, and their names above. */
void mt_policies_draw_marks(struct mt_drawing *drawing, const struct mt_policies_layout *layout);

#endif
