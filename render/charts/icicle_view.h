/* Shared by the parts of the icicle chart: the cells, the ruler, the legend, and the table of
 * holders. */
#ifndef MT_RENDER_ICICLE_VIEW_H
#define MT_RENDER_ICICLE_VIEW_H

#include "chart.h"
#include "icicle.h"
#include "site.h"

#define MT_TABLE_PITCH 22.0

/* A line of the table. It has the blocks directly below a node. In a reversed picture it has all
 * allocations of an innermost frame. */
struct mt_icicle_holder {
    const struct mt_node *node;
    uint64_t weight, blocks;
    enum mt_role role;
};

/* What a picture shows: blocks, and texts about them. */
struct mt_icicle_subject {
    const struct mt_holding *holdings; /* NULL = nothing to draw */
    uint32_t holding_count;
    const char *title;           /* "what holds memory at the peak" */
    const char *root;            /* "peak allocated" */
    const char *facts;           /* text after the amount: "at t = 3.76 s, backward of step 1" */
    const char *verb;            /* "live", "allocated", "kept" */
    const char *heading, *share; /* headings of the table: "Largest holders", "of peak" */
    const char *why_nothing, *about_nothing;
};
struct mt_icicle_subject mt_icicle_subject(struct mt_drawing *drawing,
                                           const struct mt_report *report,
                                           const struct mt_device_report *device,
                                           enum mt_weigh weigh);

struct mt_icicle_view {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_icicle *icicle;
    const struct mt_icicle_subject *subject;
    const struct mt_symbols *symbols;
    double x, width, scale; /* scale: pixels per byte or block */
    double top, pitch;      /* of the rows of cells */
    double least;           /* adjacent cells that are narrower than this are drawn as one cell */
    /* number of rows of cells that are drawn, and that do not fit into the picture */
    uint32_t rows, rows_cut;
    bool reversed;                    /* innermost frames first */
    struct mt_icicle_holder *holders; /* largest first */
    size_t holder_count;
    /* cells that are drawn as part of a sum, and cells that are not drawn */
    uint64_t summed_groups, summed_weight, dropped_groups, dropped_weight;
};

double mt_icicle_pixels(const struct mt_icicle_view *view, uint64_t weight);
enum mt_color mt_icicle_color(const struct mt_icicle_view *view, const struct mt_node *node);

/* Returns "6.45 GiB (6,923,509,248 B)" or "692 blocks", in the arena of the drawing. */
const char *mt_icicle_exact(const struct mt_icicle_view *view, uint64_t weight);

/* Draws a scale of bytes or blocks along the upper edge of the cells. */
void mt_icicle_draw_ruler(const struct mt_icicle_view *view, double y);

/* Draws the legend in one line if it fits, otherwise in two. Returns the y below the legend. */
double mt_icicle_draw_legend(const struct mt_icicle_view *view, double y);

/* Returns all lines of the table, largest first, in the arena of the drawing. */
struct mt_icicle_holder *mt_icicle_find_holders(const struct mt_icicle_view *view, size_t *count);

/* Draws the first `most` of view->holders; y is the baseline of the heading. */
void mt_icicle_draw_table(const struct mt_icicle_view *view, double y, size_t most);

#endif
