/* The display list: the operations that draw a chart, and the words that fit into a width. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arena.h"
#include "draw.h"
#include "ascii.h"
#include "foreign_text.h"
#include "glyphs.h"
#include "process_memory.h"
#include "units.h"

#define MAX_LOST_SHARE 3 /* cut within a word if whole words would lose more than a third */

static bool begins_number(const char *word)
{
    word += strspn(word, "(+~<");
    return *word >= '0' && *word <= '9';
}

static size_t word_begin(const char *text, size_t at)
{
    while (at && text[at - 1] != ' ')
        at--;
    return at;
}

/* Moves a cut in a number to the beginning of the number, because a truncated number is a different
 * number, and a number without its unit is meaningless. */
static size_t cut_before_number(const char *text, size_t head)
{
    size_t word = text[head] == ' ' ? head + strspn(text + head, " ") : word_begin(text, head);
    size_t before = word;

    if (!text[head])
        return head;
    if (word < head && begins_number(text + word))
        return word;
    while (before && text[before - 1] == ' ')
        before--;
    before = word_begin(text, before);
    return before < word && begins_number(text + before) && mt_unit_length(text + word) ? before
                                                                                        : head;
}

static bool is_mark(char c)
{
    return c && strchr(" ._/:,;-+=<>()[]", c);
}

/* Returns true if a word ends or begins between two characters. */
static bool is_between_words(const char *text, size_t at)
{
    return !at || !text[at] || is_mark(text[at]) || is_mark(text[at - 1]) ||
           (mt_is_lower(text[at - 1]) && mt_is_upper(text[at]));
}

/* Removes marks before the cut: "Layer" instead of "Layer." */
static size_t without_marks(const char *text, size_t head)
{
    size_t at = head;

    while (at && is_mark(text[at - 1]) && !strchr(")]>", text[at - 1]))
        at--;
    return at ? at : head;
}

size_t mt_cut_head(const char *text, size_t head)
{
    size_t whole = cut_before_number(text, head), at = whole;

    while (!is_between_words(text, at))
        at--;
    at = at ? without_marks(text, at) : at;
    if (whole - at > whole / MAX_LOST_SHARE || begins_number(text + word_begin(text, at)))
        return whole;
    return at;
}

const char *mt_cut_tail(const char *text, const char *tail)
{
    size_t begin = (size_t)(tail - text), most = strlen(tail) / MAX_LOST_SHARE, at = begin;

    while (!is_between_words(text, at) || (text[at] && strchr("._:,;-+=>)]", text[at])))
        at++;
    return at - begin <= most && text[at] ? text + at : tail;
}

#define ELLIPSIS       "\xE2\x80\xA6"
#define MIN_CHARACTERS 3

/* How much wider text may be in another font of a viewer than in the built-in outlines. */
#define FONT_SLACK 1.04
/* share of the room for the end of a text that is cut in the middle, because the end is more
 * informative */
#define TAIL_SHARE 0.6

/* Width of DejaVu Sans relative to the built-in outlines, measured on the texts of the charts. The
 * median is +7% in regular and +17% in bold, which browsers show for semibold. The maximum is +22%,
 * for figures with a unit. */
#define REGULAR_ROOM  1.08
#define SEMIBOLD_ROOM 1.22

/* Returns true if the character needs no escape. Hover text may have line ends; in a label, a line
 * end is drawn as a space. */
static bool stands_for_itself(const struct mt_foreign_char *c)
{
    return c->is_shown || c->code == '\n' || c->code == '\t';
}

static bool all_stand_for_themselves(struct mt_foreign_text text)
{
    struct mt_foreign_char c;

    while (mt_foreign_next(&text, &c))
        if (!stands_for_itself(&c))
            return false;
    return true;
}

static char *copy_escaped(struct mt_drawing *drawing, struct mt_foreign_text text)
{
    struct mt_buf escaped = {0};
    struct mt_foreign_char c;
    char escape[MT_FOREIGN_ESCAPE];
    char *copy = NULL;

    while (mt_foreign_next(&text, &c))
        if (stands_for_itself(&c))
            mt_buf_add(&escaped, c.bytes, c.length);
        else
            mt_buf_add(&escaped, escape, mt_foreign_escape(&c, escape));
    copy = mt_arena_text(&drawing->arena, escaped.data, escaped.length);
    mt_buf_release(&escaped);
    return copy;
}

/* Copies text and escapes characters that must not be shown, so that back ends never get them. */
static const char *copy_text(struct mt_drawing *drawing, const char *text)
{
    const char *copy;

    if (!text)
        return NULL;
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    if (all_stand_for_themselves(foreign))
        copy = mt_arena_text(&drawing->arena, text, strlen(text));
    else
        copy = copy_escaped(drawing, foreign);
    return copy;
}

static struct mt_op *add_op(struct mt_drawing *drawing, enum mt_op_kind kind)
{
    if (drawing->op_count == drawing->op_capacity) {
        size_t capacity = drawing->op_capacity ? drawing->op_capacity * 2 : 256;
        struct mt_op *ops = mt_arena_array(&drawing->arena, capacity, sizeof *ops);

        if (drawing->op_count)
            memcpy(ops, drawing->ops, drawing->op_count * sizeof *ops);
        drawing->ops = ops;
        drawing->op_capacity = capacity;
    }
    struct mt_op *op = &drawing->ops[drawing->op_count++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    return op;
}

static struct mt_op *add_shape(struct mt_drawing *drawing, enum mt_op_kind kind,
                               const struct mt_paint *paint, const char *title, const char *role)
{
    struct mt_op *op = add_op(drawing, kind);

    if (!op)
        return NULL;
    if (paint)
        op->paint = *paint;
    op->title = copy_text(drawing, title);
    op->role = copy_text(drawing, role);
    return op;
}

void mt_drawing_init(struct mt_drawing *drawing, double width, double height, const char *id)
{
    memset(drawing, 0, sizeof *drawing);
    drawing->width = width;
    drawing->height = height;
    drawing->id = copy_text(drawing, id);
}

void mt_drawing_release(struct mt_drawing *drawing)
{
    if (!drawing)
        return;
    mt_arena_release(&drawing->arena);
    memset(drawing, 0, sizeof *drawing);
}

void mt_drawing_describe(struct mt_drawing *drawing, const char *title, const char *description)
{
    drawing->title = copy_text(drawing, title);
    drawing->description = copy_text(drawing, description);
}

void mt_drawing_metadata(struct mt_drawing *drawing, const char *key, const char *value)
{
    size_t most = sizeof drawing->metadata / sizeof drawing->metadata[0];

    if (drawing->metadata_count == most)
        return;
    drawing->metadata[drawing->metadata_count].key = copy_text(drawing, key);
    drawing->metadata[drawing->metadata_count++].value = copy_text(drawing, value);
}

void mt_draw_rect(struct mt_drawing *drawing, double x, double y, double width, double height,
                  const struct mt_paint *paint, const char *title, const char *role)
{
    struct mt_op *op = add_shape(drawing, MT_OP_RECT, paint, title, role);

    if (!op)
        return;
    op->x = x;
    op->y = y;
    op->width = width;
    op->height = height;
}

void mt_draw_cells(struct mt_drawing *drawing, const struct mt_grid *grid,
                   const struct mt_grid_cell *cells, size_t count, const struct mt_paint *paint,
                   const char *role)
{
    struct mt_op *op =
        count <= UINT32_MAX ? add_shape(drawing, MT_OP_CELLS, paint, NULL, role) : NULL;

    if (!op)
        return;
    op->x = grid->x;
    op->y = grid->y;
    op->width = grid->width;
    op->height = grid->height;
    op->unit = grid->unit;
    op->cells = cells;
    op->cell_count = (uint32_t)count;
}

static void set_points(struct mt_drawing *drawing, struct mt_op *op, const struct mt_point *points,
                       size_t count)
{
    if (count > UINT32_MAX)
        mt_memory_end();
    op->points = mt_arena_array(&drawing->arena, count ? count : 1, sizeof *points);
    if (count)
        memcpy(op->points, points, count * sizeof *points);
    op->point_count = (uint32_t)count;
}

void mt_draw_path(struct mt_drawing *drawing, const struct mt_point *points, size_t count,
                  bool closed, bool stepped, const struct mt_paint *paint, const char *title,
                  const char *role)
{
    struct mt_op *op = add_shape(drawing, MT_OP_PATH, paint, title, role);

    if (!op)
        return;
    op->closed = closed;
    op->stepped = stepped;
    set_points(drawing, op, points, count);
}

void mt_draw_line(struct mt_drawing *drawing, double x0, double y0, double x1, double y1,
                  const struct mt_paint *paint)
{
    struct mt_point points[2] = {{x0, y0}, {x1, y1}};
    struct mt_op *op = add_shape(drawing, MT_OP_LINE, paint, NULL, NULL);

    if (op)
        set_points(drawing, op, points, 2);
}

void mt_draw_circle(struct mt_drawing *drawing, double x, double y, double radius,
                    const struct mt_paint *paint, const char *title, const char *role)
{
    struct mt_op *op = add_shape(drawing, MT_OP_CIRCLE, paint, title, role);

    if (!op)
        return;
    op->x = x;
    op->y = y;
    op->width = radius;
}

double mt_draw_text(struct mt_drawing *drawing, double x, double y, const char *text,
                    const struct mt_text_style *style, const char *role)
{
    struct mt_op *op = add_shape(drawing, MT_OP_TEXT, NULL, NULL, role);

    if (!op)
        return 0;
    op->x = x;
    op->y = y;
    op->style = *style;
    op->text = copy_text(drawing, text);
    op->text_width = mt_text_width(op->text ? op->text : "", style->size, style->weight);
    return op->text_width;
}

void mt_draw_key(struct mt_drawing *drawing, const char *key)
{
    if (drawing->op_count)
        drawing->ops[drawing->op_count - 1].key = copy_text(drawing, key);
}

void mt_draw_group_begin(struct mt_drawing *drawing, const char *title, const char *role)
{
    add_shape(drawing, MT_OP_GROUP_BEGIN, NULL, title, role);
}

void mt_draw_group_end(struct mt_drawing *drawing)
{
    add_op(drawing, MT_OP_GROUP_END);
}

/* Returns the length of the longest beginning of `text` that is at most `width` wide, and sets its
 * number of characters. */
static size_t start_that_fits(const char *text, double size, enum mt_weight weight, double width,
                              size_t *characters)
{
    const struct mt_glyph_table *table = &mt_glyph_tables[weight];
    const char *at = text, *next = text;
    double limit = width * MT_GLYPH_EM / size, units = 0;
    uint32_t character;

    *characters = 0;
    while ((character = mt_utf8_next(&next))) {
        const struct mt_glyph *glyph = mt_glyph_find(table, character);
        units += glyph ? glyph->advance : MT_GLYPH_BOX_ADVANCE;
        if (units > limit)
            break;
        at = next;
        ++*characters;
    }
    return (size_t)(at - text);
}

/* Returns the longest suffix of `text` that is at most `width` wide. The whole text is `total`
 * wide. */
static const char *end_that_fits(const char *text, double size, enum mt_weight weight, double width,
                                 double total)
{
    size_t characters;
    const char *end = text + start_that_fits(text, size, weight, total - width, &characters);

    if (mt_text_width(end, size, weight) > width)
        mt_utf8_next(&end);
    return end;
}

double mt_text_room(const char *text, double size, enum mt_weight weight)
{
    return mt_text_width(text, size, weight) *
           (weight == MT_SEMIBOLD ? SEMIBOLD_ROOM : REGULAR_ROOM);
}

const char *mt_text_fit(struct mt_drawing *drawing, const char *text, double size,
                        enum mt_weight weight, double width, bool middle)
{
    double total = mt_text_width(text, size, weight);
    const char *tail = "";
    size_t head_characters, tail_characters;

    width /= FONT_SLACK;
    double room = width - mt_text_width(ELLIPSIS, size, weight);
    if (total > width && room <= 0)
        return "";
    text = copy_text(drawing, text);
    if (total <= width || !text)
        return text ? text : "";
    if (middle)
        tail = mt_cut_tail(text, end_that_fits(text, size, weight, room * TAIL_SHARE, total));
    start_that_fits(tail, size, weight, width, &tail_characters);
    size_t head = start_that_fits(text, size, weight, room - mt_text_width(tail, size, weight),
                                  &head_characters);
    head = mt_cut_head(text, head);
    if (head_characters + tail_characters < MIN_CHARACTERS || (!head && !*tail))
        return "";
    while (head && text[head - 1] == ' ')
        head--;
    return mt_arena_printf(&drawing->arena, "%.*s" ELLIPSIS "%s", (int)head, text, tail);
}
