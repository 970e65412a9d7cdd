/* Shared by the parts of the chart of the common call tree: the cells, the legend, the ruler, and
 * the tables. */
#ifndef MT_RENDER_JOB_TREE_VIEW_H
#define MT_RENDER_JOB_TREE_VIEW_H

#include "draw.h"
#include "job_tree.h"

struct mt_job_tree_view {
    struct mt_drawing *drawing;
    const struct mt_job_report *report;
    const struct mt_job_tree *tree;
    const char *unit;       /* noun for a row: "rank" */
    double x, width, scale; /* scale: pixels per byte of the sum over all rows of the report */
    double top, pitch;      /* of the rows of cells */
    double least;           /* adjacent cells that are narrower than this are drawn as their sum */
    /* number of rows of cells that are drawn, and that do not fit into the picture */
    uint32_t rows, rows_cut;
    /* Nodes of roles: those with the most bytes, and those whose maximum over the ranks is farthest
     * above the mean. */
    const struct mt_job_node **holders, **differing;
    uint32_t holder_count, differing_count;
    /* cells that are drawn as part of a sum, and cells that are not drawn */
    uint64_t summed_cells, dropped_cells;
    unsigned __int128 summed_bytes, dropped_bytes;
};

/* Returns the mean per row, given the sum over all rows. */
uint64_t mt_job_tree_mean(const struct mt_job_tree_view *view, unsigned __int128 sum_bytes);

/* Return the color of an imbalance, which is one of MT_JOB_TREE_SHADES, and the imbalance at which
 * a shade begins. */
enum { MT_JOB_TREE_SHADES = 9 };
enum mt_color mt_job_tree_color(uint32_t imbalance_ppm);
uint32_t mt_job_tree_bound_ppm(uint32_t shade);

/* Returns how far the largest row is above the mean: "14.3%", or "×1,024" if it is more than ten
 * times the mean. */
const char *mt_job_tree_above(const struct mt_job_tree_view *view, const struct mt_job_node *node);

/* Returns the label of a node: "step train.py:47", "Parameters", "no call path kept". */
const char *mt_job_tree_label(const struct mt_job_tree_view *view, const struct mt_job_node *node);

/* Draws the cells; top, pitch, rows and least must be set. Counts the cells that were summed and
 * dropped. */
void mt_job_tree_draw_cells(struct mt_job_tree_view *view);

/* Returns the number of cells in the first MT_JOB_TREE_ROWS rows, and sets *rows to the number
 * of rows. */
enum { MT_JOB_TREE_ROWS = 24 };
uint32_t mt_job_tree_count_cells(const struct mt_job_tree_view *view, uint32_t *rows);

#endif
