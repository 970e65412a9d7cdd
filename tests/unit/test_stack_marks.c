/* Marks of stacks: the innermost marked frame decides, and depth costs nothing. */
#include "cmocka_all.h"

#include <string.h>

#include "finding.h"

static unsigned judged;

/* Lines 1 to 255 are marks. */
static uint8_t line_is_mark(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    (void)symbols;
    judged++;
    return (uint8_t)frame->line;
}

static uint32_t add(struct mt_symbols *symbols, uint32_t parent, uint32_t line)
{
    uint32_t frame, stack;

    assert_int_equal(mt_symbols_frame(symbols, 0, 0, line, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, parent, frame, &stack), MT_OK);
    return stack;
}

TEST(the_innermost_mark_decides)
{
    struct mt_symbols symbols = {0};
    struct mt_stack_marks marks = {0};

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    uint32_t root = add(&symbols, MT_NO_ID, 0);
    uint32_t marked = add(&symbols, root, 7);
    uint32_t below = add(&symbols, marked, 0);
    uint32_t again = add(&symbols, below, 9);
    mt_stack_marks_make(&marks, &symbols, line_is_mark);
    assert_int_equal(mt_stack_mark(&marks, root), 0);
    assert_int_equal(mt_stack_mark(&marks, marked), 7);
    assert_int_equal(mt_stack_mark(&marks, below), 7);
    assert_int_equal(mt_stack_mark(&marks, again), 9);
    assert_int_equal(mt_stack_mark(&marks, MT_NO_ID), 0);
    mt_stack_marks_release(&marks);
    mt_symbols_release(&symbols);
}

TEST(each_frame_is_judged_once)
{
    struct mt_symbols symbols = {0};
    struct mt_stack_marks marks = {0};
    uint32_t stack = MT_NO_ID;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (uint32_t i = 0; i < MT_MAX_STACK_DEPTH; i++)
        stack = add(&symbols, stack, i % 2 * 1024);
    judged = 0;
    mt_stack_marks_make(&marks, &symbols, line_is_mark);
    mt_stack_marks_make(&marks, &symbols, line_is_mark);
    assert_int_equal(judged, 2);
    assert_int_equal(mt_stack_mark(&marks, stack), 0);
    mt_stack_marks_release(&marks);
    mt_symbols_release(&symbols);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
