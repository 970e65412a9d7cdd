#include "process_memory.h"
#include "stack_marks.h"

#include <stdlib.h>
#include <string.h>

/* Parents come before their children, so one pass in order of ids is enough. */
static void mark_stacks(struct mt_stack_marks *marks, const struct mt_symbols *symbols,
                        const uint8_t *frames)
{
    for (uint32_t id = 0; id < symbols->stack_count; id++) {
        const struct mt_stack *stack = &symbols->stacks[id];
        uint8_t own = stack->frame < symbols->frame_count ? frames[stack->frame] : 0;

        if (!own && stack->parent < id)
            own = marks->stacks[stack->parent];
        marks->stacks[id] = own;
    }
    marks->count = symbols->stack_count;
}

void mt_stack_marks_make(struct mt_stack_marks *marks, const struct mt_symbols *symbols,
                         mt_frame_judge *judge)
{
    uint8_t *frames;

    if (marks->count == symbols->stack_count)
        return;
    mt_stack_marks_release(marks);
    frames = mt_memory_new((size_t)symbols->frame_count + 1);
    marks->stacks = mt_memory_new((size_t)symbols->stack_count + 1);
    for (uint32_t id = 0; id < symbols->frame_count; id++)
        frames[id] = judge(symbols, &symbols->frames[id]);
    mark_stacks(marks, symbols, frames);
    free(frames);
}

void mt_stack_marks_release(struct mt_stack_marks *marks)
{
    free(marks->stacks);
    memset(marks, 0, sizeof *marks);
}
