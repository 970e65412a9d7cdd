/* Text in several lines, broken between words. */
#ifndef MT_RENDER_PARAGRAPH_H
#define MT_RENDER_PARAGRAPH_H

#include "draw.h"

struct mt_paragraph {
    double x, width;
    double size, pitch; /* font size; distance between lines */
    enum mt_weight weight;
    enum mt_color color;
    uint32_t most_lines; /* 0 = no limit; a text that is cut ends with an ellipsis */
    const char *role;
};

/* Returns the number of lines that the text takes. */
uint32_t mt_paragraph_lines(struct mt_drawing *drawing, const struct mt_paragraph *paragraph,
                            const char *text);

/* The first baseline is y. Returns the baseline of the line after the last. Breaks a word that is
 * wider than a line. */
double mt_paragraph_draw(struct mt_drawing *drawing, const struct mt_paragraph *paragraph, double y,
                         const char *text);

#endif
