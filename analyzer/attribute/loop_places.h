/* Position of an event in the program's loops, from stacks. A place is a node of the tree of stacks
 * in a function body whose lines do different parts of the work (one calls the model, another
 * backward): the loop is there. Places in the same body are ordered by line, so when control
 * returns to a lower line, another turn has begun. */
#ifndef MT_ANALYZER_LOOP_PLACES_H
#define MT_ANALYZER_LOOP_PLACES_H

#include "python_tree.h"
#include "stack_kinds.h"

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
