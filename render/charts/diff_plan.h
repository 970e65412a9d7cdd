/* Parts of the picture of a diff, which share one plan. */
#ifndef MT_RENDER_DIFF_PLAN_H
#define MT_RENDER_DIFF_PLAN_H

#include "chart.h"
#include "diff_view.h"
#include "frame.h"

struct mt_diff_plan {
    const struct mt_diff_view *view;
    struct mt_box falls; /* the whole of the waterfall, words included */
    double table_x, table_y, table_width, table_bottom; /* width 0: no room */
    uint32_t changed_sites;
};

static inline uint64_t mt_diff_size(const struct mt_diff_row *row)
{
    return row->b_bytes > row->a_bytes ? row->b_bytes - row->a_bytes : row->a_bytes - row->b_bytes;
}

/* Paint of a change: growth is solid, shrinkage is hatched, because not everybody can tell the
 * colours apart. */
struct mt_paint mt_diff_paint(enum mt_color color, bool grew);

/* "12,345 B in 3 blocks, then 23,456 B in 5 (+11,111 B)" */
const char *mt_diff_exact(struct mt_drawing *drawing, const struct mt_diff_row *row);

void mt_diff_draw_falls(struct mt_drawing *drawing, const struct mt_diff_plan *plan);
double mt_diff_table_height(const struct mt_diff_plan *plan);
void mt_diff_draw_table(struct mt_drawing *drawing, const struct mt_diff_plan *plan);

#endif
