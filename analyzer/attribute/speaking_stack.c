#include "speaking_stack.h"

#include "site.h"

#include <string.h>

void mt_speaking_stack_init(struct mt_speaking_stack *speaking, struct mt_arena *arena,
                            const struct mt_symbols *symbols)
{
    memset(speaking, 0, sizeof *speaking);
    speaking->arena = arena;
    speaking->symbols = symbols;
}

/* A copy with twice the room. */
static void *regrown(struct mt_arena *arena, const void *old, uint32_t count, uint32_t capacity,
                     size_t element_bytes)
{
    void *bigger = mt_arena_array(arena, capacity, element_bytes);

    if (count)
        memcpy(bigger, old, count * element_bytes);
    return bigger;
}

static uint32_t doubled(uint32_t wanted)
{
    return wanted < UINT32_MAX / 2 ? wanted * 2 : wanted;
}

static void learn_frames(struct mt_speaking_stack *speaking)
{
    uint32_t wanted = speaking->symbols->frame_count, capacity = doubled(wanted);

    if (wanted > speaking->frame_capacity) {
        uint8_t *plumbing = regrown(speaking->arena, speaking->plumbing, speaking->frame_count,
                                    capacity, sizeof *plumbing);
        speaking->plumbing = plumbing;
        speaking->frame_capacity = capacity;
    }
    for (; speaking->frame_count < wanted; speaking->frame_count++)
        speaking->plumbing[speaking->frame_count] =
            mt_frame_is_plumbing(speaking->symbols, speaking->frame_count);
}

static void make_room(struct mt_speaking_stack *speaking, uint32_t wanted)
{
    uint32_t capacity = doubled(wanted), *node;
    uint8_t *depth;

    if (wanted <= speaking->stack_capacity)
        return;
    node = regrown(speaking->arena, speaking->node, speaking->stack_count, capacity, sizeof *node);
    depth =
        regrown(speaking->arena, speaking->depth, speaking->stack_count, capacity, sizeof *depth);
    speaking->node = node;
    speaking->depth = depth;
    speaking->stack_capacity = capacity;
}

static void learn_stack(struct mt_speaking_stack *speaking, uint32_t id)
{
    const struct mt_stack *stack = &speaking->symbols->stacks[id];
    bool has_parent = stack->parent < id;
    uint8_t above = has_parent ? speaking->depth[stack->parent] : 0;
    bool silent = stack->frame >= speaking->frame_count || speaking->plumbing[stack->frame];

    if (silent || above == MT_SPEAKING_DEPTH) {
        speaking->node[id] = has_parent ? speaking->node[stack->parent] : MT_NO_ID;
        speaking->depth[id] = above;
    } else {
        speaking->node[id] = id;
        speaking->depth[id] = (uint8_t)(above + 1);
    }
}

static void learn(struct mt_speaking_stack *speaking)
{
    learn_frames(speaking);
    make_room(speaking, speaking->symbols->stack_count);
    for (; speaking->stack_count < speaking->symbols->stack_count; speaking->stack_count++)
        learn_stack(speaking, speaking->stack_count);
}

void mt_speaking_stack_get(struct mt_speaking_stack *speaking, uint32_t stack,
                           uint32_t frames[MT_SPEAKING_DEPTH], uint32_t *count)
{
    const struct mt_stack *stacks = speaking->symbols->stacks;
    uint32_t depth;

    *count = 0;
    if (stack >= speaking->symbols->stack_count)
        return;
    if (stack >= speaking->stack_count) {
        learn(speaking);
    }
    depth = speaking->depth[stack];
    if (depth == 0) {
        frames[0] = stacks[stack].frame;
        *count = 1;
        return;
    }
    *count = depth;
    for (uint32_t node = speaking->node[stack]; depth > 0; node = speaking->node[node]) {
        frames[--depth] = stacks[node].frame;
        if (depth == 0)
            break;
        node = stacks[node].parent;
    }
}
