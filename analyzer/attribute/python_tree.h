/* The tree of stacks reduced to Python frames. If native frames were recorded, they vary between
 * equal calls of Python code. Without them, equal calls are the same node. */
#ifndef MT_ANALYZER_PYTHON_TREE_H
#define MT_ANALYZER_PYTHON_TREE_H

#include "map.h"
#include "status.h"
#include "symbols.h"

#include <stdbool.h>

struct mt_python_node {
    uint32_t self;   /* the first stack with these Python frames; MT_NO_ID: has none */
    uint32_t parent; /* of self: the next such stack outwards, MT_NO_ID */
    uint32_t depth;  /* of self: Python frames; 1 = has no parent */
};

/* Zeroed memory is ready. */
struct mt_python_tree {
    struct mt_python_node *nodes; /* by stack */
    uint32_t count;
    /* PRIVATE */
    size_t capacity;
    bool *is_python; /* by frame */
    uint32_t frame_count;
    size_t frame_capacity;
    struct mt_map known; /* parent and frame -> self */
};

/* Adds new entries of `symbols`. O(new stacks and frames). */
void mt_python_tree_update(struct mt_python_tree *tree, const struct mt_symbols *symbols);
void mt_python_tree_release(struct mt_python_tree *tree);

/* The node of a stack; MT_NO_ID for one without Python frames, and for one that the tree does not
 * have. */
static inline uint32_t mt_python_node_of(const struct mt_python_tree *tree, uint32_t stack)
{
    return stack < tree->count ? tree->nodes[stack].self : MT_NO_ID;
}

#endif
