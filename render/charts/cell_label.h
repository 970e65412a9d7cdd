/* Chooses the text of a cell in a chart of call stacks: as much as fits into the cell. */
#ifndef MT_RENDER_CELL_LABEL_H
#define MT_RENDER_CELL_LABEL_H

#include "draw.h"
#include "symbols.h"

#define MT_CELL_TEXT 12.0 /* size of text in cells */

/* A rectangle that contains text. */
struct mt_cell_box {
    double x, y, width, height;
    enum mt_color fill; /* the text color follows from it */
    bool centred;
};

/* Returns the name of a frame for a given width: "forward  train.py:47", "forward :47"; for names
 * that are common (forward, step, ...) the place: "linear:134", "linear" or ":47"; otherwise
 * "forw…", or "". */
const char *mt_cell_frame_text(struct mt_drawing *drawing, const struct mt_symbols *symbols,
                               uint32_t frame, double width);

/* Returns the width for text in a box, in pixels, without the margins. */
double mt_cell_room(const struct mt_cell_box *box);

/* Writes `text` (cut to fit), and `amount` in bold at the right edge if there is room for both.
 * Returns true if it wrote something. */
bool mt_cell_write(struct mt_drawing *drawing, const struct mt_cell_box *box, const char *text,
                   const char *amount);

#endif
