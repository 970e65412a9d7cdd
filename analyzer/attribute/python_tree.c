#include "python_tree.h"

#include "frame_judge.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>

static void make_room(struct mt_python_tree *tree, const struct mt_symbols *symbols)
{
    mt_grow_to(&tree->is_python, &tree->frame_capacity, symbols->frame_count,
               sizeof *tree->is_python);
    mt_grow_to(&tree->nodes, &tree->capacity, symbols->stack_count, sizeof *tree->nodes);
}

static void judge_frame(struct mt_python_tree *tree, const struct mt_symbols *symbols)
{
    enum mt_frame_rank rank = mt_judge_frame(symbols, tree->frame_count).rank;

    tree->is_python[tree->frame_count++] = mt_rank_is_python(rank);
}

static void add_stack(struct mt_python_tree *tree, const struct mt_symbols *symbols)
{
    uint32_t id = tree->count, self;
    const struct mt_stack *stack = &symbols->stacks[id];
    struct mt_python_node *node = &tree->nodes[id];
    uint32_t parent = stack->parent < id ? tree->nodes[stack->parent].self : MT_NO_ID;
    uint64_t key = (uint64_t)parent << 32 | stack->frame;

    *node = (struct mt_python_node){parent, MT_NO_ID, 0};
    tree->count++;
    if (stack->frame >= tree->frame_count || !tree->is_python[stack->frame])
        return;
    self = mt_map_get(&tree->known, key);
    if (self != MT_MAP_NONE) {
        node->self = self;
        return;
    }
    *node =
        (struct mt_python_node){id, parent, parent == MT_NO_ID ? 1 : tree->nodes[parent].depth + 1};
    mt_map_put(&tree->known, key, id);
}

void mt_python_tree_update(struct mt_python_tree *tree, const struct mt_symbols *symbols)
{
    make_room(tree, symbols);
    while (tree->frame_count < symbols->frame_count)
        judge_frame(tree, symbols);
    while (tree->count < symbols->stack_count)
        add_stack(tree, symbols);
}

void mt_python_tree_release(struct mt_python_tree *tree)
{
    mt_map_release(&tree->known);
    free(tree->nodes);
    free(tree->is_python);
    memset(tree, 0, sizeof *tree);
}
