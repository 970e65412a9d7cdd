/* Parts of the chart of the common call tree, which share one view of it. */
#ifndef MT_RENDER_JOB_TREE_VIEW_H
#define MT_RENDER_JOB_TREE_VIEW_H

#include "draw.h"
#include "job_tree.h"

#define MT_JOB_TREE_PITCH 22.0 /* lines of the table */

struct mt_job_tree_view {
    struct mt_drawing *drawing;
    const struct mt_job_report *report;
    const struct mt_job_tree *tree;
    const char *unit;        /* what a row is: "rank" */
    double x, width, scale;  /* scale: pixels per byte of the sum over rows */
    double top, pitch;       /* of the rows of cells */
    double least;            /* narrower cells are drawn as their sum */
    uint32_t rows, rows_cut; /* drawn, and left out because the picture is too low */
    /* Nodes of roles: those with the most bytes, and those whose maximum is farthest above their
     * mean. */
    const struct mt_job_node **holders, **differing;
    uint32_t holder_count, differing_count;
    /* cells that were not drawn individually */
    uint64_t summed_cells, dropped_cells;
    unsigned __int128 summed_bytes, dropped_bytes;
};

double mt_job_tree_pixels(const struct mt_job_tree_view *view, unsigned __int128 sum_bytes);

/* Returns the mean per row of a sum over rows. */
uint64_t mt_job_tree_mean(const struct mt_job_tree_view *view, unsigned __int128 sum_bytes);

/* The color of an imbalance, one of MT_JOB_TREE_SHADES; shade i begins at a bound. */
enum { MT_JOB_TREE_SHADES = 9 };
enum mt_color mt_job_tree_color(uint32_t imbalance_ppm);
uint32_t mt_job_tree_bound_ppm(uint32_t shade);

/* "14.3%", "×1,024" above ten times the mean: how far the largest row is above the mean. */
const char *mt_job_tree_above(const struct mt_job_tree_view *view, const struct mt_job_node *node);

/* "step train.py:47", "Parameters", "no call path kept". */
const char *mt_job_tree_label(const struct mt_job_tree_view *view, const struct mt_job_node *node);

/* Draws the cells; top, pitch, rows and least must be set. Counts the cells that were summed and
 * dropped. */
void mt_job_tree_draw_cells(struct mt_job_tree_view *view);
/* Returns the number of cells in the first MT_JOB_TREE_ROWS rows, and sets *rows to the number
 * of rows. */
enum { MT_JOB_TREE_ROWS = 24 };
uint32_t mt_job_tree_count_cells(const struct mt_job_tree_view *view, uint32_t *rows);

/* Returns the y below. */
double mt_job_tree_draw_legend(const struct mt_job_tree_view *view, double y);
void mt_job_tree_draw_ruler(const struct mt_job_tree_view *view, double y);
/* A table of `count` nodes of roles; y is the baseline of the heading. Returns that of the last
 * line. */
double mt_job_tree_draw_table(const struct mt_job_tree_view *view, double y, const char *heading,
                              const struct mt_job_node *const *list, uint32_t count);

#endif
