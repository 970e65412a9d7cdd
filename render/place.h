/* Places a label: tries about 100 positions around its target and takes the one that covers
 * least. Deterministic. */
#ifndef MT_RENDER_PLACE_H
#define MT_RENDER_PLACE_H

#include "draw.h"

struct mt_box {
    double x, y, width, height;
};

/* Something that a label should not cover. */
struct mt_obstacle {
    struct mt_box box;
    double weight; /* cost of a covered square pixel; see MT_PLACE_* */
};

#define MT_PLACE_TINT  0.02 /* filled areas: a label on them is readable, but not pretty */
#define MT_PLACE_LINE  3.0  /* curves, grid lines, markers */
#define MT_PLACE_MARK  9e5  /* rings, flags, folds, leaders: never, but a leader may cross them */
#define MT_PLACE_TEXT  1e6  /* other text: never, and no leader crosses it */
#define MT_PLACE_LIMIT 5e5  /* a label with at least this score should be left out */

struct mt_placer {
    struct mt_arena *arena; /* borrowed */
    struct mt_box frame;    /* labels stay inside */
    struct mt_obstacle *obstacles;
    size_t count, capacity;
};

void mt_placer_init(struct mt_placer *placer, struct mt_arena *arena, struct mt_box frame);

/* If memory runs out, the obstacle is ignored. */
void mt_placer_avoid(struct mt_placer *placer, struct mt_box box, double weight);

/* Returns the best box of width x height for a label of the point (x, y), which a leader
 * connects: near the point, otherwise anywhere in the frame. No leader crosses the text of
 * another label. Later labels avoid the box, unless its score, which is returned, reaches
 * MT_PLACE_LIMIT. */
double mt_placer_label(struct mt_placer *placer, double x, double y, double width, double height,
                       struct mt_box *best);

/* Returns the cost of what `box` would cover; 0 = nothing. */
double mt_placer_cost(const struct mt_placer *placer, const struct mt_box *box);

/* Square pixels that two boxes share. */
double mt_box_overlap(const struct mt_box *a, const struct mt_box *b);

/* The ink that a TEXT operation may cover. */
struct mt_box mt_text_box(const struct mt_op *op);

#endif
