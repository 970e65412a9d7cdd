/* Shared by the parts of the chart of sizes and lifetimes: the plot, the sums beside it, and the
 * legend. */
#ifndef MT_RENDER_SCATTER_LAYOUT_H
#define MT_RENDER_SCATTER_LAYOUT_H

#include "chart.h"
#include "chart_frame.h"
#include "lifetimes_model.h"

/* The lowest column of the model that the chart uses (sizes up to 512 B), and the lowest row
 * (lifetimes below 1 us). */
#define MT_SCATTER_MIN_SIZE (9 * MT_SIZES_PER_DOUBLING)
#define MT_SCATTER_MIN_LIFE (3 * MT_LIVES_PER_DECADE - 1)

/* A cell of the chart, which combines `coarse` x `coarse` cells of the model. */
struct mt_scatter_cell {
    uint64_t blocks, bytes, role_bytes[MT_ROLE_COUNT];
};

struct mt_scatter_layout {
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_lifetimes *lifetimes;
    uint32_t coarse;
    /* ranges of the model, in units of `coarse` columns and rows */
    uint32_t first_column, columns, first_row, rows;
    /* (rows + 1) * columns; the last row has the blocks that were never freed */
    struct mt_scatter_cell *cells;
    struct mt_box plot; /* the rows of lifetimes, without the row of blocks that were never freed */
    double end_y;       /* upper edge of the row of blocks that were never freed */
    double cell_width, cell_height;
    struct mt_box above, beside; /* sums by size and by lifetime; height or width 0 = not drawn */
    /* side_width 0: the legend is in lines at legend_y, or absent */
    double side_x, side_y, side_width, legend_y;
};

/* Sets `coarse`, the ranges and the cells. At most `most_columns` columns and `most_rows` rows fit
 * into the picture. */
void mt_scatter_fill(struct mt_drawing *drawing, struct mt_scatter_layout *layout,
                     uint32_t most_columns, uint32_t most_rows);

static inline const struct mt_scatter_cell *mt_scatter_at(const struct mt_scatter_layout *layout,
                                                          uint32_t row, uint32_t column)
{
    return &layout->cells[(size_t)row * layout->columns + column];
}

/* Returns the upper edge of a row. Row 0 is the lowest; row layout->rows has the blocks that
 * were never freed. */
static inline double mt_scatter_row_y(const struct mt_scatter_layout *layout, uint32_t row)
{
    return row == layout->rows
               ? layout->end_y
               : layout->plot.y + layout->plot.height - (row + 1) * layout->cell_height;
}

static inline enum mt_role mt_scatter_main_role(const struct mt_scatter_cell *cell)
{
    uint32_t role, most = MT_ROLE_OTHER;

    for (role = 0; role < MT_ROLE_COUNT; role++)
        if (cell->role_bytes[role] > cell->role_bytes[most])
            most = role;
    return (enum mt_role)most;
}

void mt_scatter_draw_plot(struct mt_drawing *drawing, const struct mt_scatter_layout *layout);
void mt_scatter_draw_sums(struct mt_drawing *drawing, const struct mt_scatter_layout *layout);
void mt_scatter_draw_legend(struct mt_drawing *drawing, const struct mt_scatter_layout *layout);

#endif
