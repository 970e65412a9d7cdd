/* The tree of stacks reduced to Python frames. If native frames were recorded, they vary between
 * equal calls of Python code. Without them, equal calls are the same node. */
#ifndef MT_ANALYZER_PYTHON_TREE_H
#define MT_ANALYZER_PYTHON_TREE_H

#include <stdbool.h>

#include "map.h"
#include "symbols.h"
#include "work_kinds.h"

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

/* Position of an event in the program's loops, from stacks. A place is a node of the tree of stacks
 * in a function body whose lines do different parts of the work (one calls the model, another
 * backward): the loop is there. Places in the same body are ordered by line, so when control
 * returns to a lower line, another turn has begun. */

struct mt_loop_places {
    const struct mt_symbols *symbols;
    uint32_t *place; /* by stack: its innermost place, MT_NO_ID = none */
    uint8_t *used;   /* by stack: bits of kinds that happened directly there */
    uint32_t count;
    size_t capacity;

    /* PRIVATE */
    struct mt_python_tree tree;
};

/* The bit of a kind in `used`. */
static inline uint8_t mt_loop_places_bit(uint8_t kind)
{
    return (uint8_t)(1u << (kind & 7));
}

/* Makes room for all existing stacks; new ones are unused. */
void mt_loop_places_update(struct mt_loop_places *places, const struct mt_symbols *symbols);

/* Finds the places, once `used` is known. Without work of different parts (`is_training` false)
 * every line outside of a model's call is a place, and so are those of the outermost module's
 * forward. */
void mt_loop_places_find(struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                         bool is_training);
void mt_loop_places_release(struct mt_loop_places *places);

static inline uint32_t mt_loop_places_of(const struct mt_loop_places *places, uint32_t stack)
{
    return places->place && stack < places->count ? places->place[stack] : MT_NO_ID;
}

/* Position to which control returned. */
struct mt_turn {
    uint32_t body; /* node whose callee turns, MT_NO_ID = the one at the roots */
    uint32_t line; /* of it */
};

/* Whether control that moves from place `from` to `to` returns. O(depth). */
bool mt_loop_places_turn(const struct mt_loop_places *places, uint32_t from, uint32_t to,
                         struct mt_turn *turn);

/* Whether place `inner` was called from place `outer`, directly or indirectly. O(depth). */
bool mt_loop_places_encloses(const struct mt_loop_places *places, uint32_t outer, uint32_t inner);

/* The turn of a loop around one line. */
struct mt_turn mt_loop_places_at(const struct mt_loop_places *places, uint32_t place);

#endif
