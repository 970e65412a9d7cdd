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

/* Returns the longest text for a frame that fits into `width`. Most frames have the texts
 * "embed  model.py:47", "embed :47" and "embed". A common name (forward, step, ...) alone
 * identifies nothing, so its shorter texts show the place: "linear:134" and "linear", or ":47" in
 * the user's own code. If none fits, shortens the last text: "emb…", or "". */
const char *mt_cell_frame_text(struct mt_drawing *drawing, const struct mt_symbols *symbols,
                               uint32_t frame, double width);

/* Returns the width for text in a box, in pixels, without the margins. */
double mt_cell_room(const struct mt_cell_box *box);

/* Draws `text`, shortened to fit, and `amount` in bold at the right edge if there is room for both.
 * Returns true if it drew something. */
bool mt_cell_write(struct mt_drawing *drawing, const struct mt_cell_box *box, const char *text,
                   const char *amount);

/* Text in several lines, which break between words. */

struct mt_paragraph {
    double x, width;
    double size, pitch; /* size: of the font; pitch: distance between lines */
    enum mt_weight weight;
    enum mt_color color;
    /* 0 = no limit; text that exceeds the limit is cut and ends with an ellipsis */
    uint32_t most_lines;
    const char *role;
};

/* Returns the number of lines that the text takes. */
uint32_t mt_paragraph_lines(struct mt_drawing *drawing, const struct mt_paragraph *paragraph,
                            const char *text);

/* Draws the text. The first baseline is y. Returns the baseline for a line after the text. Breaks
 * words that are wider than a line. */
double mt_paragraph_draw(struct mt_drawing *drawing, const struct mt_paragraph *paragraph, double y,
                         const char *text);

#endif
