/* Marks of stacks. A stack has the mark of its innermost frame that has a mark. Each frame and each
 * stack is judged once. */
#ifndef MT_ANALYZER_STACK_MARKS_H
#define MT_ANALYZER_STACK_MARKS_H

#include "status.h"
#include "symbols.h"

/* Zeroed memory is an empty table. */
struct mt_stack_marks {
    uint8_t *stacks;
    uint32_t count;
};

/* Returns the mark of a frame, 0 = none. */
typedef uint8_t mt_frame_judge(const struct mt_symbols *symbols, const struct mt_frame *frame);

/* Marks all stacks; does nothing if the table is complete. O(frames + stacks), at any depth. */
void mt_stack_marks_make(struct mt_stack_marks *marks, const struct mt_symbols *symbols,
                         mt_frame_judge *judge);
void mt_stack_marks_release(struct mt_stack_marks *marks);

/* Returns 0 for a stack that is not in the table. */
static inline uint8_t mt_stack_mark(const struct mt_stack_marks *marks, uint32_t stack)
{
    return stack < marks->count ? marks->stacks[stack] : 0;
}

#endif
