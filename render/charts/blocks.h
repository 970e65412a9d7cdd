/* Shared by the parts of the chart that draws single blocks: the stack of blocks in the plot, the
 * same stack in an inset, and the groups beside the plot. The rest is all memory that is not drawn
 * as single blocks. */
#ifndef MT_RENDER_BLOCKS_H
#define MT_RENDER_BLOCKS_H

#include "blocks_model.h"
#include "chart.h"
#include "time_axis.h"

#define MT_BLOCK_RESTS     3 /* maximum number of roles that have a layer of the rest */
#define MT_BLOCK_REST_TINT 11

/* The rest of one role, drawn as a layer. The layers are stacked on top of the bands. */
struct mt_block_rest {
    enum mt_role role;
    uint64_t most_bytes; /* maximum over the columns */
    uint64_t *upper;     /* by column: bytes below the upper edge of the layer */
};

/* Blocks that are stacked over a time axis. The plot has one stack, and the inset has another. */
struct mt_block_stack {
    struct mt_drawing *drawing;
    const struct mt_report *report; /* for phases and the origin of times */
    const struct mt_block_set *set;
    struct mt_time_axis axis;
    struct mt_box plot;
    uint64_t top;          /* bytes at the upper edge of the plot */
    bool keyed;            /* draws blocks with keys (block_key.h) */
    uint32_t most_corners; /* limit for the sum of all outlines: columns become wider and small
                              blocks move to the rest until the sum fits */

    /* filled by mt_block_stack_build */
    double column_width;
    struct mt_block_column *columns;
    uint32_t column_count;
    struct mt_block_band *bands; /* from the base line up */
    uint32_t band_count;
    /* blocks without a band because they are less than half a pixel high everywhere */
    uint32_t thin;
    /* blocks without a band because they are not alive at the instant of any column */
    uint32_t hidden;
    uint64_t rest_most;                         /* bytes of the rest, maximum over the columns */
    uint64_t rest_count;                        /* number of blocks in the rest */
    struct mt_block_rest rests[MT_BLOCK_RESTS]; /* the lowest layer first */
    uint32_t rest_roles;                        /* number of layers in rests */
    /* gray bytes, which no band and no layer contains: maximum over the columns */
    uint64_t grey_most;
};

/* A vertical strip of the plot. It shows the instant within the strip at which the most memory is
 * allocated. */
struct mt_block_column {
    double x;
    uint64_t event, allocated;
    /* bytes by role, which add up to `allocated`; NULL before the first event */
    const uint64_t *roles;
};

/* The area in which a block is drawn: its columns and its upper edge. */
struct mt_block_band {
    const struct mt_block_shape *shape;
    uint32_t first, end; /* columns */
    struct mt_point *edge;
    uint32_t edge_count;
    /* the widest part in which both edges are horizontal; it has room for a label */
    struct mt_box flat;
};

/* Fills column_width and the fields after it. */
void mt_block_stack_build(struct mt_block_stack *stack);
/* Draws the rest and the blocks with their hover text, from the top of the stack down. */
void mt_block_stack_draw(const struct mt_block_stack *stack);
/* Returns the shade in which a block is drawn (`shade` of struct mt_paint). It distinguishes
 * neighbors of the same role. */
uint8_t mt_block_shade(const struct mt_block_shape *shape);
/* Draws a line along the top of the stack. Call it after mt_block_stack_draw, which would cover the
 * line. */
void mt_block_stack_outline(const struct mt_block_stack *stack);
/* Returns the y of a level of the stack, rounded to half a pixel. */
double mt_block_stack_y(const struct mt_block_stack *stack, uint64_t bytes);

/* The area next to the plot or below it. It lists the largest groups of blocks at the peak. If the
 * peak is too narrow to be visible in the plot, an inset shows the peak event by event. */
struct mt_blocks_side {
    struct mt_drawing *drawing;
    const struct mt_report *report;
    const struct mt_blocks *blocks;
    double x, y, width, bottom;
    bool keyed;             /* draws the blocks of the inset with keys */
    bool has_inset, beside; /* beside: the inset is to the right of the groups */
};
#define MT_BLOCKS_INSET_HEIGHT 190.0

#endif
