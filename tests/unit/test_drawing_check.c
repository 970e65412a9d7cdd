/* Breaks each rule of a display list alone. The check must name the rule. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "drawing_check.h"
#include "util.h"

/* One operation of each kind, in this order. */
enum { RECT, PATH, LINE, CIRCLE, CELLS, BEGIN, TEXT, END, OPS };

static struct mt_grid_cell cells[2];

static void draw_something(struct mt_drawing *drawing)
{
    const struct mt_paint paint = {.fill = MT_COLOR_GOOD, .stroke = MT_COLOR_BAD};
    const struct mt_text_style style = {.size = 10, .color = MT_COLOR_TEXT};
    const struct mt_point points[] = {{0, 0}, {100, 50}, {20, 30}};
    const struct mt_grid grid = {10, 10, 40, 40, 4};

    cells[0] = (struct mt_grid_cell){0, 0, 2, 3};
    cells[1] = (struct mt_grid_cell){4, 0, 6, 10};
    mt_drawing_init(drawing, 100, 50, "test");
    mt_drawing_describe(drawing, "Title \xE2\x80\x94", "Words");
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_draw_rect(drawing, 0, 0, 100, 50, &paint, "two\nlines", "cell");
    mt_draw_path(drawing, points, 3, true, false, &paint, NULL, "curve");
    mt_draw_line(drawing, 1, 2, 3, 4, &paint);
    mt_draw_circle(drawing, 50, 25, 5, &paint, NULL, NULL);
    mt_draw_cells(drawing, &grid, cells, 2, &paint, NULL);
    mt_draw_group_begin(drawing, NULL, NULL);
    mt_draw_text(drawing, 10, 20, "text", &style, NULL);
    mt_draw_group_end(drawing);
}

#define FAULTS(X)                                                                                  \
    X("drawing->width", drawing->width = NAN)                                                      \
    X("drawing->height", drawing->height = 0)                                                      \
    X("is_id", drawing->id = "a\"b")                                                               \
    X("is_id", drawing->id = NULL)                                                                 \
    X("drawing->title", drawing->title = "\xC3")                                                   \
    X("drawing->description", drawing->description = "\x1b[1m")                                    \
    X("op_capacity", drawing->op_capacity = OPS - 1)                                               \
    X("metadata_count", drawing->metadata_count = 9)                                               \
    X("is_key", drawing->metadata[0].key = "a key")                                                \
    X("is_key", drawing->metadata[0].key = NULL)                                                   \
    X("metadata[i].value", drawing->metadata[0].value = "\xFF")                                    \
    X("op->title", ops[RECT].title = "\xE2\x80\xAE")                                               \
    X("op->role", ops[RECT].role = "\x80")                                                         \
    X("paint->fill", ops[RECT].paint.fill = MT_COLOR_COUNT)                                        \
    X("paint->stroke", ops[PATH].paint.stroke = MT_COLOR_COUNT)                                    \
    X("stroke_width", ops[PATH].paint.stroke_width = INFINITY)                                     \
    X("stroke_width", ops[PATH].paint.stroke_width = -1)                                           \
    X("opacity", ops[RECT].paint.opacity = 1.5)                                                    \
    X("opacity", ops[RECT].paint.opacity = NAN)                                                    \
    X("radius", ops[RECT].paint.radius = -1)                                                       \
    X("shade", ops[RECT].paint.shade = 4)                                                          \
    X("tint", ops[RECT].paint.tint = 17)                                                           \
    X("hatched", (ops[RECT].paint.hatched = true, ops[RECT].paint.fill = MT_COLOR_NONE))           \
    X("is_inside", ops[RECT].x = NAN)                                                              \
    X("is_inside", ops[RECT].y = -1)                                                               \
    X("is_inside", ops[RECT].width = -1)                                                           \
    X("is_inside", ops[RECT].width = 101)                                                          \
    X("is_inside", ops[RECT].height = INFINITY)                                                    \
    X("is_inside", ops[PATH].points[1].y = 51)                                                     \
    X("is_inside", ops[LINE].points[0].x = NAN)                                                    \
    X("op->points", ops[PATH].points = NULL)                                                       \
    X("point_count == 2", ops[LINE].point_count = 1)                                               \
    X("op->width > 0", ops[CIRCLE].width = 0)                                                      \
    X("is_inside", ops[CIRCLE].x = 98)                                                             \
    X("op->unit", ops[CELLS].unit = 0)                                                             \
    X("op->cells", ops[CELLS].cells = NULL)                                                        \
    X("cell->width && cell->height", cells[0].height = 0)                                          \
    X("cell->x + cell->width", cells[1].width = 7)                                                 \
    X("cell->y + cell->height", cells[1].height = 11)                                              \
    X("last->y < cell->y", cells[0].x = 5)                                                         \
    X("is_inside", ops[CELLS].x = 61)                                                              \
    X("op->text", ops[TEXT].text = NULL)                                                           \
    X("op->text", ops[TEXT].text = "\xC0\x80")                                                     \
    X("style->size", ops[TEXT].style.size = 0)                                                     \
    X("style->weight", ops[TEXT].style.weight = (enum mt_weight)2)                                 \
    X("style->anchor", ops[TEXT].style.anchor = (enum mt_anchor)3)                                 \
    X("style->color", ops[TEXT].style.color = MT_COLOR_NONE)                                       \
    X("text_width", ops[TEXT].text_width = NAN)                                                    \
    X("is_inside", ops[TEXT].x = 95)                                                               \
    X("is_inside", ops[TEXT].y = 1)                                                                \
    X("a kind of operation", ops[RECT].kind = (enum mt_op_kind)99)                                 \
    X("open_groups", ops[END].kind = MT_OP_GROUP_BEGIN)                                            \
    X("open_groups", ops[BEGIN].kind = MT_OP_GROUP_END)

#define FAULT_WORDS(words, statement) words,
#define FAULT_CASE(words, statement)                                                               \
    if (at++ == fault)                                                                             \
        (void)(statement);

static const char *const rules[] = {FAULTS(FAULT_WORDS)};

static void breaks(struct mt_drawing *drawing, size_t fault)
{
    struct mt_op *ops = drawing->ops;
    size_t at = 0;

    FAULTS(FAULT_CASE)
}

TEST(a_sound_list_passes)
{
    struct mt_drawing drawing;
    const char *why = NULL;

    draw_something(&drawing);
    assert_int_equal(drawing.op_count, OPS);
    assert_true(mt_drawing_is_sound(&drawing, &why));
    mt_drawing_release(&drawing);
}

TEST(every_broken_rule_is_named)
{
    for (size_t fault = 0; fault < MT_ARRAY_LEN(rules); fault++) {
        struct mt_drawing drawing;
        const char *why = "nothing";

        draw_something(&drawing);
        breaks(&drawing, fault);
        if (mt_drawing_is_sound(&drawing, &why) || !strstr(why, rules[fault]))
            fail_msg("fault %zu, \"%s\", is told as \"%s\"", fault, rules[fault], why);
        mt_drawing_release(&drawing);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
