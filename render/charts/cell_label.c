/* Text inside the areas of a chart: labels of cells, and paragraphs. */
#include <string.h>

#include "cell_label.h"
#include "draw.h"
#include "site.h"
#include "symbols.h"
#include "theme.h"
#include "util.h"

static double line_width(struct mt_drawing *drawing, const struct mt_paragraph *paragraph,
                         const char *text, size_t length)
{
    const char *part = mt_arena_text(&drawing->arena, text, length);

    return mt_text_room(part, paragraph->size, paragraph->weight);
}

/* Returns the number of bytes of the words that fit into a line; at least one word. */
static size_t line_length(struct mt_drawing *drawing, const struct mt_paragraph *paragraph,
                          const char *text)
{
    size_t best = strcspn(text, " ");

    while (text[best]) {
        size_t next = best + 1 + strcspn(text + best + 1, " ");
        if (line_width(drawing, paragraph, text, next) > paragraph->width)
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

#define SLACK 1.06 /* other fonts may be wider than the built-in one */

static double width_of(const char *text, enum mt_weight weight)
{
    return SLACK * mt_text_width(text, MT_CELL_TEXT, weight);
}

/* Returns true for a name that many classes have, such as forward. The place is more
 * informative. */
static bool says_nothing(const char *function)
{
    static const char *const names[] = {"forward", "__call__", "__init__", "step",
                                        "apply",   "backward", "run",      "<lambda>"};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        if (!strcmp(function, names[i]))
            return true;
    return false;
}

/* Returns "linear:134" for "linear.py:134", or "linear" if no_line is set. */
static const char *short_place(struct mt_drawing *drawing, const char *place, bool no_line)
{
    const char *dot = strrchr(place, '.'), *colon = strrchr(place, ':');
    size_t stem = dot ? (size_t)(dot - place) : colon ? (size_t)(colon - place) : strlen(place);

    return mt_arena_printf(&drawing->arena, "%.*s%s", (int)stem, place,
                           colon && !no_line ? colon : "");
}

const char *mt_cell_frame_text(struct mt_drawing *drawing, const struct mt_symbols *symbols,
                               uint32_t frame, double width)
{
    const char *function = mt_frame_function(&drawing->arena, symbols, frame);
    const char *place = mt_frame_position(&drawing->arena, symbols, frame);
    const char *line = strrchr(place, ':');
    bool is_user = mt_frame_origin(symbols, frame) == MT_ORIGIN_USER;
    const char *tries[6];
    size_t count = 0;

    if (*place)
        tries[count++] = mt_arena_printf(&drawing->arena, "%s  %s", function, place);
    if (line && (is_user || !says_nothing(function)))
        tries[count++] = mt_arena_printf(&drawing->arena, "%s %s", function, line);
    if (says_nothing(function) && *place) {
        tries[count++] = is_user ? line : short_place(drawing, place, false);
        if (!is_user)
            tries[count++] = short_place(drawing, place, true);
    } else {
        tries[count++] = function;
    }
    for (size_t i = 0; i < count; i++)
        if (tries[i] && width_of(tries[i], MT_REGULAR) <= width)
            return tries[i];
    return mt_text_fit(drawing, tries[count - 1] ? tries[count - 1] : function, MT_CELL_TEXT,
                       MT_REGULAR, width, false);
}

static double margin(const struct mt_cell_box *box)
{
    return box->centred || box->width < 48 ? 3 : 6;
}

double mt_cell_room(const struct mt_cell_box *box)
{
    return box->width - 2 * margin(box);
}

static void write_at(struct mt_drawing *drawing, const struct mt_cell_box *box, double x,
                     const char *text, enum mt_weight weight, enum mt_anchor anchor)
{
    struct mt_text_style style = {.size = MT_CELL_TEXT,
                                  .weight = weight,
                                  .anchor = anchor,
                                  .color = mt_theme_text_on(box->fill)};

    mt_draw_text(drawing, x, box->y + box->height / 2 + 0.36 * MT_CELL_TEXT, text, &style, "cell");
}

bool mt_cell_write(struct mt_drawing *drawing, const struct mt_cell_box *box, const char *text,
                   const char *amount)
{
    const char *fitted =
        mt_text_fit(drawing, text, MT_CELL_TEXT, MT_REGULAR, mt_cell_room(box), false);
    double used = *fitted ? width_of(fitted, MT_REGULAR) : 0;

    if (!*fitted)
        return false;
    if (box->centred)
        write_at(drawing, box, box->x + box->width / 2, fitted, MT_REGULAR, MT_ANCHOR_MIDDLE);
    else
        write_at(drawing, box, box->x + margin(box), fitted, MT_REGULAR, MT_ANCHOR_START);
    if (!box->centred && amount && !strcmp(fitted, text) &&
        used + 12 + width_of(amount, MT_SEMIBOLD) <= mt_cell_room(box))
        write_at(drawing, box, box->x + box->width - margin(box), amount, MT_SEMIBOLD,
                 MT_ANCHOR_END);
    return true;
}
