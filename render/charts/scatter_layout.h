/* Parts of the chart of sizes and lifetimes, which share one grid. */
#ifndef MT_RENDER_SCATTER_LAYOUT_H
#define MT_RENDER_SCATTER_LAYOUT_H

#include "chart.h"
#include "chart_frame.h"
#include "lifetimes_model.h"

/* Column of sizes up to 512 B; row of lifetimes below 1 us. */
#define MT_SCATTER_MIN_SIZE (9 * MT_SIZES_PER_DOUBLING)
#define MT_SCATTER_MIN_LIFE (3 * MT_LIVES_PER_DECADE - 1)

/* One or several cells of the model: `coarse` columns and rows each. */
struct mt_scatter_cell {
    uint64_t blocks, bytes, role_bytes[MT_ROLE_COUNT];
};

struct mt_scatter_layout {
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_lifetimes *lifetimes;
    uint32_t coarse;
    uint32_t first_column, columns, first_row, rows; /* of the model, in coarse units */
    struct mt_scatter_cell *cells; /* (rows + 1) * columns; the last row: never freed */
    struct mt_box plot;            /* of the rows of lifetimes */
    double end_y;                  /* upper edge of the row for blocks that were never freed */
    double cell_width, cell_height;
    struct mt_box above, beside; /* sums by size, by lifetime; height, width 0 = none */
    double side_x, side_y, side_width, legend_y; /* width 0: legend in lines at legend_y, or none */
};

/* Sets coarse, the ranges and the cells. `most_columns` and `most_rows` are the numbers that
 * fit. */
enum mt_status mt_scatter_fill(struct mt_drawing *drawing, struct mt_scatter_layout *layout,
                               uint32_t most_columns, uint32_t most_rows) MT_MUST_USE;

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
