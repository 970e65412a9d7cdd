/* Places labels. Tries about 100 positions around the target of a label and selects the one that
 * covers the least. The result is deterministic. */
#ifndef MT_RENDER_PLACE_H
#define MT_RENDER_PLACE_H

#include "draw.h"

struct mt_box {
    double x, y, width, height;
};

/* Something that a label should not cover. */
struct mt_obstacle {
    struct mt_box box;
    double weight; /* cost for each square pixel that a label covers: MT_PLACE_* */
};

#define MT_PLACE_TINT  0.02 /* filled areas: a label on them is readable */
#define MT_PLACE_LINE  3.0  /* curves, grid lines, markers */
#define MT_PLACE_MARK  9e5  /* rings, flags, folds, leaders: never covered; a leader may cross */
#define MT_PLACE_TEXT  1e6  /* other text: no label covers it, and no leader crosses it */
#define MT_PLACE_LIMIT 5e5  /* omit a label if its score is at least this */
#define MT_PLACE_CLEAR 4000 /* the score of a label that covers no data is lower */

struct mt_placer {
    struct mt_arena *arena; /* borrowed */
    struct mt_box frame;    /* all labels are inside this box */
    double limit;           /* labels with at least this score are omitted: MT_PLACE_LIMIT */
    struct mt_obstacle *obstacles;
    size_t count, capacity;
};

void mt_placer_init(struct mt_placer *placer, struct mt_arena *arena, struct mt_box frame);

void mt_placer_avoid(struct mt_placer *placer, struct mt_box box, double weight);

/* Finds the best box of width x height for the label of the point (x, y). A leader connects the
 * label and the point. Searches near the point; if the label would cover data there, anywhere in
 * the frame. The leader does not cross the text of other labels. Returns the score of the box. If
 * it is below placer->limit, later labels avoid the box. */
double mt_placer_label(struct mt_placer *placer, double x, double y, double width, double height,
                       struct mt_box *best);

/* Returns the cost of the obstacles that `box` would cover; 0 = it covers none. */
double mt_placer_cost(const struct mt_placer *placer, const struct mt_box *box);

/* Returns the area that two boxes share, in square pixels. */
double mt_box_overlap(const struct mt_box *a, const struct mt_box *b);

/* Returns a box that contains the letters of a TEXT operation. */
struct mt_box mt_text_box(const struct mt_op *op);

#endif
