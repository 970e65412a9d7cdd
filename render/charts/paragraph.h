/* Text in several lines, which break between words. */
#ifndef MT_RENDER_PARAGRAPH_H
#define MT_RENDER_PARAGRAPH_H

#include "draw.h"

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
