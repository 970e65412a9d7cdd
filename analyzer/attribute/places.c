/* Parents have lower ids than their children: one walk down the ids gives each
 * node the kinds of everything below it. */
#include "places.h"

#include "grow.h"
#include "map.h"
#include "site.h"

#include <stdlib.h>
#include <string.h>

#define FORWARD  ((1u << MT_PHASE_FORWARD) | (1u << MT_PHASE_LOSS))
#define BACKWARD (1u << MT_PHASE_BACKWARD)

_Static_assert(MT_PHASE_OPTIMIZER < 8, "kinds are bits of a byte");

/* OPTIMIZER is 7 and ZERO_GRAD 6: both change parameters or what belongs to them. */
#define UPDATE ((1u << MT_PHASE_OPTIMIZER) | (1u << MT_PHASE_ZERO_GRAD))

enum mt_status mt_places_update(struct mt_places *places, const struct mt_symbols *symbols)
{
    enum mt_status status = mt_grow_zeroed(&places->used, &places->capacity, symbols->stack_count,
                                           sizeof *places->used);

    places->symbols = symbols;
    if (status == MT_OK)
        places->count = symbols->stack_count;
    return status;
}

void mt_places_release(struct mt_places *places)
{
    free(places->nodes);
    free(places->place);
    free(places->used);
    memset(places, 0, sizeof *places);
}

static const struct mt_frame *frame_of(const struct mt_places *places, uint32_t node)
{
    static const struct mt_frame none = {0, 0, 0};
    uint32_t frame = places->symbols->stacks[node].frame;

    return frame < places->symbols->frame_count ? &places->symbols->frames[frame] : &none;
}

static bool is_python(const struct mt_places *places, uint32_t frame)
{
    enum mt_origin origin = mt_frame_origin(places->symbols, frame);

    return origin != MT_ORIGIN_NATIVE && origin != MT_ORIGIN_ENGINE;
}

static enum mt_status place_node(const struct mt_places *places, struct mt_map *known,
                                 const bool *python, uint32_t id)
{
    const struct mt_stack *stack = &places->symbols->stacks[id];
    struct mt_place_node *node = &places->nodes[id];
    uint32_t parent = stack->parent < id ? places->nodes[stack->parent].self : MT_NO_ID;
    uint64_t key = (uint64_t)parent << 32 | stack->frame;
    uint32_t self;

    if (stack->frame >= places->symbols->frame_count || !python[stack->frame]) {
        node->self = parent;
        return MT_OK;
    }
    self = mt_map_get(known, key);
    if (self != MT_MAP_NONE) {
        node->self = self;
        return MT_OK;
    }
    node->self = id;
    node->parent = parent;
    node->depth = parent == MT_NO_ID ? 1 : places->nodes[parent].depth + 1;
    return mt_map_set(known, key, id);
}

static enum mt_status make_tree(struct mt_places *places)
{
    uint32_t frames = places->symbols->frame_count;
    bool *python = calloc((size_t)frames + 1, sizeof *python);
    struct mt_map known = {0};
    enum mt_status status = MT_ERR_MEMORY;

    free(places->nodes);
    places->nodes = calloc((size_t)places->count + 1, sizeof *places->nodes);
    if (python && places->nodes)
        status = MT_OK;
    for (uint32_t i = 0; !status && i < frames; i++)
        python[i] = is_python(places, i);
    for (uint32_t i = 0; !status && i < places->count; i++)
        status = place_node(places, &known, python, i);
    mt_map_release(&known);
    free(python);
    return status;
}

/* A body: a function, called from one node. */
static uint64_t body_key(const struct mt_places *places, uint32_t node)
{
    const struct mt_frame *frame = frame_of(places, node);
    uint64_t function = (uint64_t)frame->function << 32 | frame->file;

    return mt_hash_u64(function) ^ places->nodes[node].parent;
}

static bool does_parts(uint32_t below)
{
    return !!(below & FORWARD) + !!(below & BACKWARD) + !!(below & UPDATE) >= 2;
}

/* What happens below each node, and in each body. */
static enum mt_status sum_up(const struct mt_places *places, uint8_t *below, struct mt_map *bodies)
{
    for (uint32_t id = places->count; id-- > 0;) {
        uint32_t self = places->nodes[id].self, parent, sum;
        uint64_t key;

        if (self == MT_NO_ID)
            continue;
        below[self] |= places->used[id];
        if (self != id)
            continue;
        parent = places->nodes[id].parent;
        key = body_key(places, id);
        if (parent != MT_NO_ID)
            below[parent] |= below[id];
        sum = mt_map_get(bodies, key);
        if (mt_map_set(bodies, key, (sum == MT_MAP_NONE ? 0 : sum) | below[id]))
            return MT_ERR_MEMORY;
    }
    return MT_OK;
}

/* How deep a node is in what a model does: */
enum { BESIDE_MODEL, MODEL_BODY, IN_MODEL };

/* The lines of the outermost module's forward are places, too: a model that is
 * called again and again from one line turns there. */
static uint8_t find_model(const struct mt_places *places, const struct mt_stack_kinds *kinds,
                          const uint8_t *model, uint32_t id)
{
    uint32_t parent = places->nodes[id].parent;
    uint8_t outer = parent == MT_NO_ID ? BESIDE_MODEL : model[parent];

    if ((mt_stack_kind(kinds, id) & MT_STACK_KIND_MASK) != MT_PHASE_FORWARD)
        return outer == BESIDE_MODEL ? BESIDE_MODEL : IN_MODEL;
    if (outer != BESIDE_MODEL)
        return IN_MODEL;
    return mt_frame_is_plumbing(places->symbols, places->symbols->stacks[id].frame) ? BESIDE_MODEL
                                                                                    : MODEL_BODY;
}

/* Does node `id` do a part of the work that others in its body do not? */
static bool is_place(const struct mt_places *places, const struct mt_stack_kinds *kinds,
                     const struct mt_map *bodies, const uint8_t *model, uint32_t id)
{
    if (bodies)
        return does_parts(mt_map_get(bodies, body_key(places, id)));
    return model[id] == MODEL_BODY ||
           (mt_stack_kind(kinds, id) & MT_STACK_KIND_MASK) == MT_PHASE_UNKNOWN;
}

static void find_places(struct mt_places *places, const struct mt_stack_kinds *kinds,
                        const struct mt_map *bodies, uint8_t *model)
{
    for (uint32_t id = 0; id < places->count; id++) {
        const struct mt_place_node *node = &places->nodes[id];

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

enum mt_status mt_places_find(struct mt_places *places, const struct mt_stack_kinds *kinds,
                              bool is_training)
{
    uint8_t *below = calloc((size_t)places->count + 1, 1);
    struct mt_map bodies = {0};
    enum mt_status status = make_tree(places);

    free(places->place);
    places->place = malloc(((size_t)places->count + 1) * sizeof *places->place);
    if (!below || !places->place)
        status = MT_ERR_MEMORY;
    if (!status && is_training)
        status = sum_up(places, below, &bodies);
    if (!status) {
        memset(below, 0, places->count);
        find_places(places, kinds, is_training ? &bodies : NULL, below);
    }
    mt_map_release(&bodies);
    free(below);
    return status;
}

bool mt_places_turn(const struct mt_places *places, uint32_t from, uint32_t to,
                    struct mt_turn *turn)
{
    const struct mt_place_node *nodes = places->nodes;
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

struct mt_turn mt_places_at(const struct mt_places *places, uint32_t place)
{
    return (struct mt_turn){places->nodes[place].parent, frame_of(places, place)->line};
}

bool mt_places_encloses(const struct mt_places *places, uint32_t outer, uint32_t inner)
{
    while (places->nodes[inner].depth > places->nodes[outer].depth)
        inner = places->nodes[inner].parent;
    return inner == outer;
}
