/* Returns the frames of a stack without plumbing, root first. Fast enough for every event. */
#ifndef MT_ANALYZER_SPEAKING_STACK_H
#define MT_ANALYZER_SPEAKING_STACK_H

#include "arena.h"
#include "symbols.h"

/* Deeper frames are omitted: the caller above represents them. */
#define MT_SPEAKING_DEPTH 24

struct mt_speaking_stack {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    uint8_t *plumbing; /* by frame */
    uint32_t *node;    /* by stack: its innermost ancestor that is not plumbing */
    uint8_t *depth;    /* by stack: number of such frames down to that one */
    uint32_t frame_count, frame_capacity, stack_count, stack_capacity;
};

/* Both are borrowed. */
void mt_speaking_stack_init(struct mt_speaking_stack *speaking, struct mt_arena *arena,
                            const struct mt_symbols *symbols);

/* Fills frames[] with the frames of `stack`, and *count: 0 for MT_NO_ID; a stack of only plumbing
 * gives its innermost frame. O(count), plus O(1) once for every stack and frame of the trace. */
void mt_speaking_stack_get(struct mt_speaking_stack *speaking, uint32_t stack,
                           uint32_t frames[MT_SPEAKING_DEPTH], uint32_t *count);

#endif
