/* Shared by the parts of the chart of differences: the waterfall and the table of sites. */
#ifndef MT_RENDER_DIFF_LAYOUT_H
#define MT_RENDER_DIFF_LAYOUT_H

#include "chart.h"
#include "diff_view.h"
#include "chart_frame.h"
#include "units.h"

struct mt_diff_layout {
    const struct mt_diff_view *view;
    struct mt_box falls; /* the waterfall, including its text */
    /* width 0: there is no room for the table */
    double table_x, table_y, table_width, table_bottom;
    uint32_t changed_sites;
};

static inline uint64_t mt_diff_size(const struct mt_diff_row *row)
{
    return row->b_bytes > row->a_bytes ? row->b_bytes - row->a_bytes : row->a_bytes - row->b_bytes;
}

/* Returns the paint of a change. Growth is solid and shrinkage is hatched, because some readers
 * cannot distinguish the colors. */
static inline struct mt_paint mt_diff_paint(enum mt_color color, bool grew)
{
    return (struct mt_paint){
        .fill = color, .hatched = !grew, .stroke = grew ? MT_COLOR_NONE : color};
}

/* Returns the number of rows that differ. They come before the others. */
static inline uint32_t mt_diff_changed_rows(const struct mt_diff_rows *rows)
{
    uint32_t count = 0;

    while (count < rows->count && mt_diff_size(&rows->rows[count]))
        count++;
    return count;
}

/* Returns "12,345 B in 3 blocks, then 23,456 B in 5 (+11,111 B)". */
static inline const char *mt_diff_exact(struct mt_drawing *drawing, const struct mt_diff_row *row)
{
    char n[5][MT_UNITS_TEXT];

    return mt_arena_printf(&drawing->arena, "%s B in %s block%s, then %s B in %s (%s%s B)",
                           mt_format_count(n[0], row->a_bytes),
                           mt_format_count(n[1], row->a_blocks), row->a_blocks == 1 ? "" : "s",
                           mt_format_count(n[2], row->b_bytes),
                           mt_format_count(n[3], row->b_blocks),
                           row->b_bytes > row->a_bytes   ? "+"
                           : row->b_bytes < row->a_bytes ? "\xE2\x88\x92"
                                                         : "",
                           mt_format_count(n[4], mt_diff_size(row)));
}

void mt_diff_draw_falls(struct mt_drawing *drawing, const struct mt_diff_layout *layout);
double mt_diff_table_height(const struct mt_diff_layout *layout);
void mt_diff_draw_table(struct mt_drawing *drawing, const struct mt_diff_layout *layout);

#endif
