/* Shared by the parts of the flame chart: the rows of cells, the curve, and the table of phases. */
#ifndef MT_RENDER_FLAMECHART_LAYOUT_H
#define MT_RENDER_FLAMECHART_LAYOUT_H

#include "chart.h"
#include "flamechart_model.h"
#include "time_axis.h"

#define MT_FLAME_PITCH 23.0 /* height of a row of cells */

struct mt_flame_layout {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_flamechart *chart;
    struct mt_time_axis axis;
    struct mt_box plot; /* plot of the curve */
    double rows_top;
    uint64_t zero_t_ns; /* origin of times: the start of the step or of the trace */
    /* rows[i] is the row of the picture for row i of the model; -1 if the picture omits the row */
    int32_t *rows;
    uint32_t row_count; /* number of rows in the picture */
    uint32_t rows_cut;  /* number of innermost rows that do not fit into the picture */
    uint32_t stage;     /* index into `stages` of flamechart_cells.c: a higher stage is coarser */
    bool has_table;
    /* largest absolute change of a cell, which is at both ends of the color key */
    uint64_t largest_net;
    uint64_t merged_calls; /* number of calls that are drawn as part of a crowd */
};

/* Fills rows, row_count and largest_net. */
void mt_flame_layout_rows(struct mt_flame_layout *layout);

/* Chooses the cells that are drawn individually: sets the stage, and cuts rows if even the coarsest
 * picture would have too many cells. The axis must be set. */
void mt_flame_layout_cells(struct mt_flame_layout *layout);

/* Returns the color of a change on a diverging scale around 0. The distance from the middle grows
 * with the power 0.6 of the change, so small changes stay visible. */
enum mt_color mt_flame_color(const struct mt_flame_layout *layout, int64_t net);

void mt_flame_draw_rows(struct mt_flame_layout *layout);

/* Draws the names of the kinds of rows left of the plot. */
void mt_flame_draw_row_names(const struct mt_flame_layout *layout);

/* Draws the scale of colors, MT_FLAME_KEY pixels wide, with its numbers. Returns their baseline. */
double mt_flame_draw_key(const struct mt_flame_layout *layout, double x, double y);
#define MT_FLAME_KEY 221.0

#endif
