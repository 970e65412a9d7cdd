/* Parts of the icicle chart, which share one view of the tree. */
#ifndef MT_RENDER_ICICLE_VIEW_H
#define MT_RENDER_ICICLE_VIEW_H

#include "chart.h"
#include "icicle.h"
#include "site.h"

#define MT_ENGINE_COLOR ((enum mt_color)(MT_COLOR_ORIGIN_0 + MT_ORIGIN_ENGINE))
#define MT_USER_COLOR   ((enum mt_color)(MT_COLOR_ORIGIN_0 + MT_ORIGIN_USER))

#define MT_TABLE_PITCH 22.0

/* A line of the table: blocks right below a node, or, in a reversed picture,
 * all that its innermost frame allocated. */
struct mt_holder {
    const struct mt_node *node;
    uint64_t bytes, blocks;
    enum mt_role role;
};

struct mt_icicle_view {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_icicle *icicle;
    const struct mt_symbols *symbols;
    double x, width, scale;    /* pixels a byte */
    double top, pitch;         /* of the rows */
    double least;              /* narrower cells are drawn as one */
    uint32_t rows;             /* of cells that are drawn */
    bool flame, reversed;      /* root at the bottom; innermost frames first */
    struct mt_holder *holders; /* largest first */
    size_t holder_count;
    /* what was not drawn by itself */
    uint64_t summed_groups, summed_bytes, dropped_groups, dropped_bytes;
};

double mt_icicle_pixels(const struct mt_icicle_view *view, uint64_t bytes);
enum mt_color mt_icicle_color(const struct mt_icicle_view *view, const struct mt_node *node);

/* Bytes along the upper edge of the cells. */
void mt_icicle_draw_ruler(const struct mt_icicle_view *view, double y);
/* One line if it fits, else two. Returns the y below. */
double mt_icicle_draw_legend(const struct mt_icicle_view *view, double y);

/* All lines of the table, largest first, in the arena of the drawing. */
struct mt_holder *mt_icicle_find_holders(const struct mt_icicle_view *view, size_t *count);
/* The first `most` of view->holders; y is the baseline of the heading. */
void mt_icicle_draw_table(const struct mt_icicle_view *view, double y, size_t most);

#endif
