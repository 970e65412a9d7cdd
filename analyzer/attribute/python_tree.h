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
    uint32_t *line;  /* by stack: its innermost line outside of models or in the forward of the
                        outermost module, MT_NO_ID = none */
    uint8_t *used;   /* by stack: bits of kinds that happened directly there */
    uint32_t count;
    size_t capacity;

    /* PRIVATE */
    struct mt_python_tree tree;
    uint8_t *model;    /* by node: where it is relative to a model */
    uint32_t *program; /* by node: the innermost line of the program around it, MT_NO_ID */
};

/* The bit of a kind in `used`. */
static inline uint8_t mt_loop_places_bit(uint8_t kind)
{
    return (uint8_t)(1u << (kind & 7));
}

/* Makes room for all existing stacks; new ones are unused. */
void mt_loop_places_update(struct mt_loop_places *places, const struct mt_symbols *symbols);

/* Finds lines and places, once `used` is known. Without work of different parts (`is_training`
 * false) every line is a place. */
void mt_loop_places_find(struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                         bool is_training);
void mt_loop_places_release(struct mt_loop_places *places);

static inline uint32_t mt_loop_places_of(const struct mt_loop_places *places, uint32_t stack)
{
    return places->place && stack < places->count ? places->place[stack] : MT_NO_ID;
}

static inline uint32_t mt_loop_places_line(const struct mt_loop_places *places, uint32_t stack)
{
    return places->line && stack < places->count ? places->line[stack] : MT_NO_ID;
}

/* Position to which control returned. */
struct mt_turn {
    uint32_t body; /* node whose callee turns, MT_NO_ID = the one at the roots */
    uint32_t line; /* of it */
    uint32_t at;   /* node of that line */
    uint32_t from; /* the line that control left */
};

/* Whether control that moves from place `from` to `to` returns. O(depth). */
bool mt_loop_places_turn(const struct mt_loop_places *places, uint32_t from, uint32_t to,
                         struct mt_turn *turn);

/* Whether place `inner` was called from place `outer`, directly or indirectly. O(depth). */
bool mt_loop_places_encloses(const struct mt_loop_places *places, uint32_t outer, uint32_t inner);

/* The turn of a loop around one line. */
struct mt_turn mt_loop_places_at(const struct mt_loop_places *places, uint32_t place);

/* How control moves between two lines, and where their stacks part: nodes with one parent. */
enum mt_line_move {
    MT_LINE_SAME,
    MT_LINE_OUT,     /* back in a caller */
    MT_LINE_IN,      /* into a callee */
    MT_LINE_ON,      /* to a later line of the function in which they part */
    MT_LINE_BACK,    /* to an earlier one */
    MT_LINE_CALLEES, /* one line calls both functions */
};
struct mt_line_parting {
    uint32_t from, to;
};
enum mt_line_move mt_line_move_between(const struct mt_loop_places *places, uint32_t from,
                                       uint32_t to, struct mt_line_parting *parting);

/* Whether the line is one of the outermost module's forward. */
bool mt_line_is_of_forward(const struct mt_loop_places *places, uint32_t line);

/* The innermost line of the program around a node: not of a model, and not of plumbing. MT_NO_ID:
 * none. */
static inline uint32_t mt_line_of_program(const struct mt_loop_places *places, uint32_t node)
{
    return node == MT_NO_ID ? MT_NO_ID : places->program[node];
}

/* The function that a node is in, and from where it was called. */
uint64_t mt_line_body(const struct mt_loop_places *places, uint32_t node);

/* Whether both lines are of one function, wherever it was called. */
bool mt_line_is_of_function(const struct mt_loop_places *places, uint32_t a, uint32_t b);

/* Whether line `inner` is in the loop in which control returns from line `end` to node `at` of the
 * same function. O(depth). */
bool mt_line_is_in_loop(const struct mt_loop_places *places, uint32_t inner, uint32_t at,
                        uint32_t end);

#endif
