/* Parts of the chart of single blocks, which share one layout of the picture. */
#ifndef MT_RENDER_BLOCKS_H
#define MT_RENDER_BLOCKS_H

#include "blocks_model.h"
#include "chart.h"
#include "time_axis.h"

#define MT_BLOCK_RESTS     3 /* layers of the rest; other roles are gray */
#define MT_BLOCK_REST_TINT 11

/* The small blocks of one role: a layer above all bands. Layers are stacked. */
struct mt_block_rest {
    enum mt_role role;
    uint64_t most_bytes; /* at any column's instant */
    uint64_t *upper;     /* bytes below its upper edge, by column */
};

/* Blocks stacked over one axis: of the plot, or of the inset. */
struct mt_block_stack {
    struct mt_drawing *drawing;
    const struct mt_report *report; /* phases and the zero of times */
    const struct mt_block_set *set;
    struct mt_time_axis axis;
    struct mt_box plot;
    uint64_t top;          /* bytes at the upper edge of the plot */
    bool keyed;            /* blocks have keys */
    uint32_t most_corners; /* limit for all outlines; if they have more, they are drawn coarser */

    /* filled by mt_block_stack_build */
    double column_width;
    struct mt_block_column *columns;
    uint32_t column_count;
    struct mt_block_band *bands; /* from the base line up */
    uint32_t band_count;
    uint32_t thin;       /* blocks that have a band, but are nowhere half a pixel high */
    uint32_t hidden;     /* blocks that are not alive at the instant of any column */
    uint64_t rest_most;  /* most bytes of the rest, at any column's instant */
    uint64_t rest_count; /* blocks in it */
    struct mt_block_rest rests[MT_BLOCK_RESTS]; /* from the bands up */
    uint32_t rest_roles;                        /* of them */
    uint64_t grey_most; /* most bytes that are in no band and in no layer of the rest */
};

/* One strip of the plot: the state at its fullest instant. */
struct mt_block_column {
    double x;
    uint64_t event, allocated;
    const uint64_t *roles; /* sum = allocated; NULL: nothing yet */
};

/* A block where it is drawn: its columns, and its upper edge. */
struct mt_block_band {
    const struct mt_block_shape *shape;
    uint32_t first, end; /* columns */
    struct mt_point *edge;
    uint32_t edge_count;
    struct mt_box flat; /* the widest part in which its upper edge does not move */
};

/* If memory runs out, the drawing has failed. */
void mt_block_stack_build(struct mt_block_stack *stack);
/* The rest and the blocks, with their hover titles, from the top down. */
void mt_block_stack_draw(const struct mt_block_stack *stack);
/* The variation of its role's color in which a block is drawn. */
uint8_t mt_block_shade(const struct mt_block_shape *shape);
/* The line along the upper edge of all blocks, drawn over them. */
void mt_block_stack_outline(const struct mt_block_stack *stack);
/* y of a number of bytes, snapped to half a pixel. */
double mt_block_stack_y(const struct mt_block_stack *stack, uint64_t bytes);

/* The groups of blocks at the peak, and an inset that shows the peak event by event if it is too
 * narrow to be visible in the plot. */
struct mt_blocks_side {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_blocks *blocks;
    double x, y, width, bottom;
    bool keyed;             /* blocks of the inset have keys */
    bool has_inset, beside; /* beside: the inset is to the right of the groups */
};
void mt_blocks_side(const struct mt_blocks_side *side);
double mt_blocks_groups_height(const struct mt_blocks *blocks);
#define MT_BLOCKS_INSET_HEIGHT 190.0

#endif
