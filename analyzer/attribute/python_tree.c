/* The tree of stacks reduced to Python frames, and what is below each of its nodes. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "frame_judge.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "python_tree.h"
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
    uint32_t id = tree->count;
    const struct mt_stack *stack = &symbols->stacks[id];
    struct mt_python_node *node = &tree->nodes[id];
    uint32_t parent = stack->parent < id ? tree->nodes[stack->parent].self : MT_NO_ID;
    uint64_t key = (uint64_t)parent << 32 | stack->frame;

    *node = (struct mt_python_node){parent, MT_NO_ID, 0};
    tree->count++;
    if (stack->frame >= tree->frame_count || !tree->is_python[stack->frame])
        return;
    uint32_t self = mt_map_get(&tree->known, key);
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
    free(places->line);
    free(places->model);
    free(places->program);
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
        uint32_t self = places->tree.nodes[id].self;

        if (self == MT_NO_ID)
            continue;
        below[self] |= places->used[id];
        if (self != id)
            continue;
        uint32_t parent = places->tree.nodes[id].parent;
        uint64_t key = body_key(places, id);
        if (parent != MT_NO_ID)
            below[parent] |= below[id];
        uint32_t sum = mt_map_get(bodies, key);
        mt_map_put(bodies, key, (sum == MT_MAP_NONE ? 0 : sum) | below[id]);
    }
}

/* Where a node is relative to a model: */
enum { BESIDE_MODEL, MODEL_BODY, IN_MODEL };

/* The bodies of functions `forward` that call modules at several lines: a program may call the
 * forward of its model without the module's __call__. (A function of the program with one such line
 * may have the loop around the model.) Value: the line, or SEVERAL. */
#define SEVERAL (UINT32_MAX - 1)

static void find_forwards(const struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                          struct mt_map *forwards)
{
    for (uint32_t id = 0; id < places->count; id++) {
        const struct mt_python_node *node = &places->tree.nodes[id];
        uint32_t parent = node->parent;

        if (node->self != id || parent == MT_NO_ID ||
            (mt_stack_kind(kinds, id) & MT_STACK_KIND_MASK) != MT_PHASE_FORWARD ||
            (mt_stack_kind(kinds, parent) & MT_STACK_KIND_MASK) != MT_PHASE_UNKNOWN ||
            !mt_frame_is_forward(places->symbols, places->symbols->stacks[parent].frame))
            continue;
        uint32_t line = frame_of(places, parent)->line;
        line = line < SEVERAL ? line : 0; /* no line of a file */
        uint32_t known = mt_map_get(forwards, body_key(places, parent));
        mt_map_put(forwards, body_key(places, parent),
                   known == MT_MAP_NONE || known == line ? line : SEVERAL);
    }
}

/* The lines of the outermost module's forward are one place each. What is below is a part of one
 * pass, whatever repeats there. */
static uint8_t find_model(const struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                          const struct mt_map *forwards, uint32_t id)
{
    uint32_t parent = places->tree.nodes[id].parent;
    uint8_t outer = parent == MT_NO_ID ? BESIDE_MODEL : places->model[parent];

    if (outer != BESIDE_MODEL)
        return IN_MODEL;
    if (mt_map_get(forwards, body_key(places, id)) == SEVERAL)
        return MODEL_BODY;
    if ((mt_stack_kind(kinds, id) & MT_STACK_KIND_MASK) != MT_PHASE_FORWARD ||
        mt_frame_is_plumbing(places->symbols, places->symbols->stacks[id].frame))
        return BESIDE_MODEL;
    return MODEL_BODY;
}

static bool is_line(const struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                    uint32_t id)
{
    return places->model[id] == MODEL_BODY ||
           (places->model[id] == BESIDE_MODEL &&
            (mt_stack_kind(kinds, id) & MT_STACK_KIND_MASK) == MT_PHASE_UNKNOWN);
}

/* `plumbing`, by frame: 0 = not judged, 1 = no, 2 = yes. Judging reads texts. */
static bool is_of_program(const struct mt_loop_places *places, uint8_t *plumbing, uint32_t id)
{
    uint32_t frame = places->symbols->stacks[id].frame;

    if (places->model[id] != BESIDE_MODEL || frame >= places->symbols->frame_count)
        return false;
    if (!plumbing[frame])
        plumbing[frame] = mt_frame_is_plumbing(places->symbols, frame) ? 2 : 1;
    return plumbing[frame] == 1;
}

static void find_lines(struct mt_loop_places *places, const struct mt_stack_kinds *kinds)
{
    struct mt_map forwards = {0};
    uint8_t *plumbing = mt_memory_zeroed((size_t)places->symbols->frame_count + 1, 1);

    find_forwards(places, kinds, &forwards);
    for (uint32_t id = 0; id < places->count; id++) {
        const struct mt_python_node *node = &places->tree.nodes[id];

        if (node->self != id) {
            places->line[id] = node->self == MT_NO_ID ? MT_NO_ID : places->line[node->self];
            continue;
        }
        places->model[id] = find_model(places, kinds, &forwards, id);
        places->program[id] = is_of_program(places, plumbing, id) ? id
                              : node->parent == MT_NO_ID          ? MT_NO_ID
                                                                  : places->program[node->parent];
        if (is_line(places, kinds, id))
            places->line[id] = id;
        else
            places->line[id] = node->parent == MT_NO_ID ? MT_NO_ID : places->line[node->parent];
    }
    mt_map_release(&forwards);
    free(plumbing);
}

/* Places of a program that trains: lines of bodies that do different parts of the work. */
static void find_parts(struct mt_loop_places *places)
{
    uint8_t *below = mt_memory_zeroed((size_t)places->count + 1, 1);
    struct mt_map bodies = {0};

    sum_up(places, below, &bodies);
    for (uint32_t id = 0; id < places->count; id++) {
        const struct mt_python_node *node = &places->tree.nodes[id];

        if (node->self != id)
            places->place[id] = node->self == MT_NO_ID ? MT_NO_ID : places->place[node->self];
        else if (does_parts(mt_map_get(&bodies, body_key(places, id))))
            places->place[id] = id;
        else
            places->place[id] = node->parent == MT_NO_ID ? MT_NO_ID : places->place[node->parent];
    }
    mt_map_release(&bodies);
    free(below);
}

void mt_loop_places_find(struct mt_loop_places *places, const struct mt_stack_kinds *kinds,
                         bool is_training)
{
    size_t bytes = ((size_t)places->count + 1) * sizeof *places->place;

    mt_python_tree_update(&places->tree, places->symbols);
    free(places->place);
    free(places->line);
    free(places->model);
    free(places->program);
    places->program = mt_memory_new(bytes);
    places->place = mt_memory_new(bytes);
    places->line = mt_memory_new(bytes);
    places->model = mt_memory_zeroed((size_t)places->count + 1, 1);
    find_lines(places, kinds);
    if (is_training)
        find_parts(places);
    else
        memcpy(places->place, places->line, bytes);
}

bool mt_line_is_of_forward(const struct mt_loop_places *places, uint32_t line)
{
    return places->model[line] == MODEL_BODY;
}

uint64_t mt_line_body(const struct mt_loop_places *places, uint32_t node)
{
    return body_key(places, node);
}

enum mt_line_move mt_line_move_between(const struct mt_loop_places *places, uint32_t from,
                                       uint32_t to, struct mt_line_parting *parting)
{
    const struct mt_python_node *nodes = places->tree.nodes;
    uint32_t depth = nodes[from].depth < nodes[to].depth ? nodes[from].depth : nodes[to].depth;
    bool same = from == to;

    while (nodes[from].depth > depth)
        from = nodes[from].parent;
    parting->from = from;
    if (from == to)
        return same ? MT_LINE_SAME : MT_LINE_OUT;
    while (nodes[to].depth > depth)
        to = nodes[to].parent;
    if (from == to)
        return MT_LINE_IN;
    while (nodes[from].parent != nodes[to].parent) {
        from = nodes[from].parent;
        to = nodes[to].parent;
    }
    *parting = (struct mt_line_parting){from, to};
    if (!mt_line_is_of_function(places, from, to))
        return MT_LINE_CALLEES;
    return frame_of(places, to)->line < frame_of(places, from)->line ? MT_LINE_BACK : MT_LINE_ON;
}

bool mt_line_is_of_function(const struct mt_loop_places *places, uint32_t a, uint32_t b)
{
    const struct mt_frame *frames[2] = {frame_of(places, a), frame_of(places, b)};

    return frames[0]->function == frames[1]->function && frames[0]->file == frames[1]->file;
}

bool mt_line_is_in_loop(const struct mt_loop_places *places, uint32_t inner, uint32_t at,
                        uint32_t end)
{
    const struct mt_frame *head = frame_of(places, at);

    if (inner == MT_NO_ID)
        return false;
    while (places->tree.nodes[inner].depth > places->tree.nodes[at].depth)
        inner = places->tree.nodes[inner].parent;
    const struct mt_frame *frame = frame_of(places, inner);
    return places->tree.nodes[inner].parent == places->tree.nodes[at].parent &&
           frame->function == head->function && frame->file == head->file &&
           frame->line >= head->line && frame->line <= end;
}

bool mt_loop_places_turn(const struct mt_loop_places *places, uint32_t from, uint32_t to,
                         struct mt_turn *turn)
{
    struct mt_line_parting parting = {from, to};

    if (mt_line_move_between(places, from, to, &parting) != MT_LINE_BACK)
        return false;
    *turn = mt_loop_places_at(places, parting.to);
    turn->from = frame_of(places, parting.from)->line;
    return true;
}

struct mt_turn mt_loop_places_at(const struct mt_loop_places *places, uint32_t place)
{
    uint32_t line = frame_of(places, place)->line;

    return (struct mt_turn){places->tree.nodes[place].parent, line, place, line};
}

bool mt_loop_places_encloses(const struct mt_loop_places *places, uint32_t outer, uint32_t inner)
{
    while (places->tree.nodes[inner].depth > places->tree.nodes[outer].depth)
        inner = places->tree.nodes[inner].parent;
    return inner == outer;
}
