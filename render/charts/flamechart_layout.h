/* Parts of the flame chart, which share one layout of the picture. */
#ifndef MT_RENDER_FLAMECHART_LAYOUT_H
#define MT_RENDER_FLAMECHART_LAYOUT_H

#include "chart.h"
#include "flamechart_model.h"
#include "time_axis.h"

#define MT_FLAME_PITCH 23.0 /* rows of cells */

struct mt_flame_layout {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_device_report *device;
    const struct mt_flamechart *chart;
    struct mt_time_axis axis;
    struct mt_box plot; /* of the curve */
    double rows_top;
    uint64_t zero_t_ns; /* origin of times: begin of the step, or of the trace */
    /* by row of the model: row of the picture, or -1 if it is left out */
    int32_t *rows;
    uint32_t row_count; /* of the picture */
    uint32_t rows_cut;  /* innermost rows that are left out for lack of height */
    uint32_t stage;     /* degree of coarseness: see flamechart_rows.c */
    bool has_table;
    uint64_t largest_net;  /* largest absolute value; the ends of the color key */
    uint64_t merged_calls; /* calls that are drawn as part of a crowd */
};

/* Fills rows, row_count and largest_net. */
enum mt_status mt_flame_layout_rows(struct mt_flame_layout *layout) MT_MUST_USE;

/* Chooses the cells that are drawn individually: sets the stage, and cuts rows if even the coarsest
 * picture would have too many cells. The axis must be set. */
void mt_flame_layout_cells(struct mt_flame_layout *layout);

/* Color of a change: diverging around 0, power 0.6. */
enum mt_color mt_flame_color(const struct mt_flame_layout *layout, int64_t net);

/* Edges of a cell in the picture. */
double mt_flame_left(const struct mt_flame_layout *layout, const struct mt_cell *cell);
double mt_flame_right(const struct mt_flame_layout *layout, const struct mt_cell *cell);

/* Several cells as one; `cell` is their sum. */
struct mt_crowd {
    struct mt_cell cell;
    uint32_t cells;
    double right;
    enum mt_color color;           /* of the first */
    bool same_function, same_file; /* of all frames */
};

void mt_crowd_begin(const struct mt_flame_layout *layout, struct mt_crowd *crowd,
                    const struct mt_cell *cell);
void mt_crowd_join(const struct mt_flame_layout *layout, struct mt_crowd *crowd,
                   const struct mt_cell *cell);
/* Draws the crowd, or a plain cell if it has only one. The crowd is empty afterwards. */
void mt_crowd_draw(struct mt_flame_layout *layout, struct mt_crowd *crowd, int32_t row);

void mt_flame_draw_rows(struct mt_flame_layout *layout);
void mt_flame_draw_curve(const struct mt_flame_layout *layout);
/* Call it after the folds are drawn, which would cover the peak. */
void mt_flame_draw_peak(const struct mt_flame_layout *layout);

/* The table of phases below the axis. Returns its number of columns; 0: there is no table. */
uint32_t mt_flame_table_columns(const struct mt_flame_layout *layout);
void mt_flame_draw_table(const struct mt_flame_layout *layout, double y);
#define MT_FLAME_TABLE_HEIGHT 66.0

#endif
