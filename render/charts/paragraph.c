#include "paragraph.h"

#include <string.h>

static double width_of(struct mt_drawing *drawing, const struct mt_paragraph *paragraph,
                       const char *text, size_t length)
{
    const char *part = mt_arena_text(&drawing->arena, text, length);

    return mt_text_room(part, paragraph->size, paragraph->weight);
}

/* Returns the number of bytes of the words that fit into a line; at least one word. */
static size_t line_length(struct mt_drawing *drawing, const struct mt_paragraph *paragraph,
                          const char *text)
{
    size_t best = strcspn(text, " "), next;

    while (text[best]) {
        next = best + 1 + strcspn(text + best + 1, " ");
        if (width_of(drawing, paragraph, text, next) > paragraph->width)
            break;
        best = next;
    }
    return best;
}

uint32_t mt_paragraph_lines(struct mt_drawing *drawing, const struct mt_paragraph *paragraph,
                            const char *text)
{
    uint32_t lines = 0;

    while (*text && (!paragraph->most_lines || lines < paragraph->most_lines)) {
        text += line_length(drawing, paragraph, text);
        text += *text == ' ';
        lines++;
    }
    return lines;
}

static void draw_line(struct mt_drawing *drawing, const struct mt_paragraph *paragraph, double y,
                      const char *text, bool is_word)
{
    const struct mt_text_style style = {
        .size = paragraph->size, .weight = paragraph->weight, .color = paragraph->color};

    mt_draw_text(
        drawing, paragraph->x, y,
        mt_text_fit(drawing, text, paragraph->size, paragraph->weight, paragraph->width, is_word),
        &style, paragraph->role);
}

double mt_paragraph_draw(struct mt_drawing *drawing, const struct mt_paragraph *paragraph, double y,
                         const char *text)
{
    uint32_t lines = 0;

    while (*text && (!paragraph->most_lines || lines < paragraph->most_lines)) {
        size_t length = line_length(drawing, paragraph, text);
        bool is_cut = text[length] && lines + 1 == paragraph->most_lines;
        const char *line = mt_arena_printf(&drawing->arena, "%.*s%s", (int)length, text,
                                           is_cut ? "\xE2\x80\xA6" : "");

        draw_line(drawing, paragraph, y, line, !strchr(line, ' '));
        text += length;
        text += *text == ' ';
        y += paragraph->pitch;
        lines++;
    }
    return y;
}
