/* The tree of stacks reduced to Python frames, and what is below each of its nodes. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "frame_judge.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "python_tree.h"
#include "site.h"
#include "symbols.h"
#include "work_kinds.h"

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

/* Parents have lower ids than their children, so one walk down the ids gives each node the kinds of
 * everything below it. */

#define FORWARD  ((1u << MT_PHASE_FORWARD) | (1u << MT_PHASE_LOSS))
#define BACKWARD (1u << MT_PHASE_BACKWARD)

_Static_assert(MT_PHASE_OPTIMIZER < 8, "kinds are bits of a byte");

/* OPTIMIZER is 7 and ZERO_GRAD 6: both change parameters or what belongs to them. */
#define UPDATE ((1u << MT_PHASE_OPTIMIZER) | (1u << MT_PHASE_ZERO_GRAD))

void mt_loop_places_update(struct mt_loop_places *places, const struct mt_symbols *symbols)
{
    mt_grow_zeroed_to(&places->used, &places->capacity, symbols->stack_count, sizeof *places->used);
    places->symbols = symbols;
    places->count = symbols->stack_count;
}

void mt_loop_places_release(struct mt_loop_places *places)
{
    mt_python_tree_release(&places->tree);
    free(places->place);
    free(places->used);
    memset(places, 0, sizeof *places);
}

static const struct mt_frame *frame_of(const struct mt_loop_places *places, uint32_t node)
{
    static const struct mt_frame none = {0, 0, 0};
    uint32_t frame = places->symbols->stacks[node].frame;

    return frame < places->symbols->frame_count ? &places->symbols->frames[frame] : &none;
}

/* A body: a function, called from one node. */
static uint64_t body_key(const struct mt_loop_places *places, uint32_t node)
{
    const struct mt_frame *frame = frame_of(places, node);
    uint64_t function = (uint64_t)frame->function << 32 | frame->file;

    return mt_hash_u64(function) ^ places->tree.nodes[node].parent;
}

static bool does_parts(uint32_t below)
{
    return !!(below & FORWARD) + !!(below & BACKWARD) + !!(below & UPDATE) >= 2;
}

/* Sums the kinds below each node, and in each body. */
static void sum_up(const struct mt_loop_places *places, uint8_t *below, struct mt_map *bodies)
{
    for (uint32_t id = places->count; id-- > 0;) {
        uint32_t self = places->tree.nodes[id].self, parent, sum;
        uint64_t key;

        if (self == MT_NO_ID)
            continue;
        below[self] |= places->used[id];
        if (self != id)
            continue;
        parent = places->tree.nodes[id].parent;
        key = body_key(places, id);
        if (parent != MT_NO_ID)
            below[parent] |= below[id];
        sum = mt_map_get(bodies, key);
        mt_map_put(bodies, key, (sum == MT_MAP_NONE ? 0 : sum) | below[id]);
    }
}

/* Depth of a node relative to a model: */
enum { BESIDE_MODEL, MODEL_BODY, IN_MODEL };

/* The lines of the outermost module's forward are also places: a model that is called repeatedly
 * from one line turns there. */
static uint8_t find_model(const struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                          const uint8_t *model, uint32_t id)
{
    uint32_t parent = places->tree.nodes[id].parent;
    uint8_t outer = parent == MT_NO_ID ? BESIDE_MODEL : model[parent];

    if ((mt_stack_kind(kinds, id) & MT_STACK_KIND_MASK) != MT_PHASE_FORWARD)
        return outer == BESIDE_MODEL ? BESIDE_MODEL : IN_MODEL;
    if (outer != BESIDE_MODEL)
        return IN_MODEL;
    return mt_frame_is_plumbing(places->symbols, places->symbols->stacks[id].frame) ? BESIDE_MODEL
                                                                                    : MODEL_BODY;
}

/* Whether node `id` does a part of the work that others in its body do not. */
static bool is_place(const struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                     const struct mt_map *bodies, const uint8_t *model, uint32_t id)
{
    if (bodies)
        return does_parts(mt_map_get(bodies, body_key(places, id)));
    return model[id] == MODEL_BODY ||
           (mt_stack_kind(kinds, id) & MT_STACK_KIND_MASK) == MT_PHASE_UNKNOWN;
}

static void find_places(struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                        const struct mt_map *bodies, uint8_t *model)
{
    for (uint32_t id = 0; id < places->count; id++) {
        const struct mt_python_node *node = &places->tree.nodes[id];

        if (node->self != id) {
            places->place[id] = node->self == MT_NO_ID ? MT_NO_ID : places->place[node->self];
            continue;
        }
        model[id] = find_model(places, kinds, model, id);
        if (is_place(places, kinds, bodies, model, id))
            places->place[id] = id;
        else
            places->place[id] = node->parent == MT_NO_ID ? MT_NO_ID : places->place[node->parent];
    }
}

void mt_loop_places_find(struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                         bool is_training)
{
    uint8_t *below = mt_memory_zeroed((size_t)places->count + 1, 1);
    struct mt_map bodies = {0};

    mt_python_tree_update(&places->tree, places->symbols);
    free(places->place);
    places->place = mt_memory_new(((size_t)places->count + 1) * sizeof *places->place);
    if (is_training)
        sum_up(places, below, &bodies);
    memset(below, 0, places->count);
    find_places(places, kinds, is_training ? &bodies : NULL, below);
    mt_map_release(&bodies);
    free(below);
}

bool mt_loop_places_turn(const struct mt_loop_places *places, uint32_t from, uint32_t to,
                         struct mt_turn *turn)
{
    const struct mt_python_node *nodes = places->tree.nodes;
    const struct mt_frame *before, *after;

    while (nodes[from].depth > nodes[to].depth)
        from = nodes[from].parent;
    while (nodes[to].depth > nodes[from].depth)
        to = nodes[to].parent;
    if (from == to)
        return false;
    while (nodes[from].parent != nodes[to].parent) {
        from = nodes[from].parent;
        to = nodes[to].parent;
    }
    before = frame_of(places, from);
    after = frame_of(places, to);
    *turn = (struct mt_turn){nodes[from].parent, after->line};
    return before->function == after->function && before->file == after->file &&
           after->line < before->line;
}

struct mt_turn mt_loop_places_at(const struct mt_loop_places *places, uint32_t place)
{
    return (struct mt_turn){places->tree.nodes[place].parent, frame_of(places, place)->line};
}

bool mt_loop_places_encloses(const struct mt_loop_places *places, uint32_t outer, uint32_t inner)
{
    while (places->tree.nodes[inner].depth > places->tree.nodes[outer].depth)
        inner = places->tree.nodes[inner].parent;
    return inner == outer;
}
