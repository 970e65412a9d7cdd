#include "kept_blocks.h"

#include <stdlib.h>

void mt_kept_blocks_init(struct mt_kept_blocks *kept, struct mt_arena *arena, uint32_t capacity)
{
    *kept = (struct mt_kept_blocks){.capacity = capacity};
    kept->heap = mt_arena_array(arena, capacity, sizeof *kept->heap);
}

/* Whether a goes before b; b is then the one that is kept. */
static bool is_less(const struct mt_kept_block *a, const struct mt_kept_block *b)
{
    if (a->score < b->score || a->score > b->score)
        return a->score < b->score;
    return a->shape.birth_event > b->shape.birth_event;
}

static void swap(struct mt_kept_block *a, struct mt_kept_block *b)
{
    struct mt_kept_block moved = *a;

    *a = *b;
    *b = moved;
}

static uint32_t sift_up(struct mt_kept_block *heap, uint32_t at)
{
    for (; at && is_less(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&heap[at], &heap[(at - 1) / 2]);
    return at;
}

static uint32_t sift_down(struct mt_kept_block *heap, uint32_t count)
{
    uint32_t at = 0, child;

    for (; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], &heap[at]))
            break;
        swap(&heap[at], &heap[child]);
    }
    return at;
}

static struct mt_block_shape shape_of(const struct mt_block_life *life)
{
    return (struct mt_block_shape){.addr = life->addr,
                                   .block_bytes = life->block_bytes,
                                   .requested_bytes = life->requested_bytes,
                                   .birth_t_ns = life->birth_t_ns,
                                   .birth_event = life->birth_event,
                                   .end_t_ns = life->end_t_ns,
                                   .end_event = life->end_event,
                                   .stack = life->stack,
                                   .tied = life->tied,
                                   .tie = (enum mt_tie)life->tie,
                                   .phase = life->phase,
                                   .role = (enum mt_role)life->role,
                                   .initial = life->initial,
                                   .place = MT_NO_ID};
}

struct mt_block_shape *mt_kept_blocks_add(struct mt_kept_blocks *kept,
                                          const struct mt_block_life *life, double score)
{
    struct mt_kept_block block = {.score = score, .shape.birth_event = life->birth_event};
    uint32_t at;

    if (kept->count == kept->capacity && is_less(&block, &kept->heap[0]))
        return NULL;
    block.shape = shape_of(life);
    if (kept->count < kept->capacity) {
        kept->heap[kept->count] = block;
        at = sift_up(kept->heap, kept->count++);
    } else {
        kept->heap[0] = block;
        at = sift_down(kept->heap, kept->count);
    }
    return &kept->heap[at].shape;
}

static int by_birth(const void *a, const void *b)
{
    const struct mt_block_shape *x = a, *y = b;

    if (x->birth_event != y->birth_event)
        return x->birth_event < y->birth_event ? -1 : 1;
    if (x->block_bytes != y->block_bytes)
        return x->block_bytes < y->block_bytes ? 1 : -1;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

struct mt_block_shape *mt_kept_blocks_list(const struct mt_kept_blocks *kept,
                                           struct mt_arena *arena)
{
    struct mt_block_shape *blocks = mt_arena_array(arena, (size_t)kept->count + 1, sizeof *blocks);

    for (uint32_t i = 0; i < kept->count; i++)
        blocks[i] = kept->heap[i].shape;
    qsort(blocks, kept->count, sizeof *blocks, by_birth);
    return blocks;
}
