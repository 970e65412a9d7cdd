/* Every holding walks from the root to its leaf through a table of (parent, what) -> node, and adds
 * its bytes on the way. Then siblings are sorted, and the nodes are laid out in the order in which
 * a picture draws them. */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "grow.h"
#include "holding.h"
#include "icicle.h"
#include "map.h"
#include "phase.h"
#include "process_memory.h"
#include "site.h"
#include "sorted.h"
#include "symbols.h"
#include "ties.h"
#include "units.h"
#include "work_kinds.h"

/* What nodes of an icicle are called, and its stacks as lines. */

static const char *no_stack_label(struct mt_arena *arena, const struct mt_node *node)
{
    if (node->is_initial)
        return "allocated before recording started";
    if (node->is_engine && !strcmp(node->phase_name, "backward"))
        return "autograd engine";
    if (!*node->phase_name)
        return "no stack recorded";
    return mt_arena_printf(arena, "%s, in %s", node->is_engine ? "autograd engine" : "no stack",
                           node->phase_name);
}

const char *mt_node_label(struct mt_arena *arena, const struct mt_symbols *symbols,
                          const struct mt_node *node)
{
    char size[MT_UNITS_TEXT], count[MT_UNITS_TEXT];

    switch (node->kind) {
    case MT_NODE_ROOT: return "all";
    case MT_NODE_FRAME: return mt_frame_label(arena, symbols, node->frame);
    case MT_NODE_NO_STACK: return no_stack_label(arena, node);
    case MT_NODE_TIED:
        return mt_tie_label(arena, symbols, node->tie, (struct mt_site){node->frame, node->own});
    case MT_NODE_BLOCKS: break;
    }
    if (!node->block_bytes)
        return mt_arena_printf(arena, "%s", mt_weigh_format(count, MT_WEIGH_COUNT, node->blocks));
    return mt_arena_printf(arena, "%s × %s", mt_format_count(count, node->blocks),
                           mt_format_bytes(size, node->block_bytes));
}

static void add_name(struct mt_buf *out, const char *name)
{
    for (; name && *name; name++)
        mt_buf_add_char(out, *name == ';' || *name == '\n' || *name == '\r' ? ':' : *name);
}

static void add_path(const struct mt_icicle *icicle, const struct mt_symbols *symbols,
                     uint32_t index, struct mt_buf *out)
{
    uint32_t path[MT_NAMED_FRAMES_DEPTH + 3], count = 0;
    struct mt_arena names = {0};

    for (; index; index = icicle->nodes[index].parent)
        path[count++] = index;
    while (count-- > 0) {
        add_name(out, mt_node_label(&names, symbols, &icicle->nodes[path[count]]));
        mt_buf_add_char(out, count ? ';' : ' ');
    }
    mt_arena_release(&names);
}

void mt_icicle_fold(const struct mt_icicle *icicle, const struct mt_symbols *symbols,
                    bool with_blocks, struct mt_buf *out)
{
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];
        uint64_t weight = with_blocks ? 0 : node->own_weight;

        if (with_blocks && node->kind == MT_NODE_BLOCKS)
            weight = node->weight;
        if (weight == 0)
            continue;
        add_path(icicle, symbols, i, out);
        mt_buf_add_u64(out, weight);
        mt_buf_add_char(out, '\n');
    }
}

const char *mt_weigh_name(enum mt_weigh weigh)
{
    static const char *const names[] = {"allocated", "requested", "count"};
    _Static_assert(sizeof names / sizeof *names == MT_WEIGH_KINDS, "one entry for each");

    return names[weigh];
}

char *mt_weigh_format(char text[MT_UNITS_TEXT], enum mt_weigh weigh, uint64_t weight)
{
    if (weigh != MT_WEIGH_COUNT)
        return mt_format_bytes(text, weight);
    return strcat(mt_format_count(text, weight), weight == 1 ? " block" : " blocks");
}

static uint64_t weight_of(const struct mt_holding *holding, enum mt_weigh weigh)
{
    switch (weigh) {
    case MT_WEIGH_ALLOCATED: break;
    case MT_WEIGH_REQUESTED: return holding->requested_bytes;
    case MT_WEIGH_COUNT: return holding->blocks;
    }
    return holding->bytes;
}

static bool is_phase(uint32_t phase_count, int32_t phase)
{
    return phase >= 0 && (uint32_t)phase < phase_count;
}

/* Parents come before their children, so this ends. */
static int32_t around(const struct mt_phase *phases, int32_t phase)
{
    return phases[phase].parent < phase ? phases[phase].parent : MT_NO_PHASE;
}

int32_t mt_shown_phase(const struct mt_phase *phases, uint32_t phase_count, int32_t phase)
{
    while (is_phase(phase_count, phase) && phases[phase].is_plumbing)
        phase = around(phases, phase);
    return is_phase(phase_count, phase) ? phase : MT_NO_PHASE;
}

bool mt_phase_is_backward(const struct mt_phase *phases, uint32_t phase_count, int32_t phase)
{
    while (is_phase(phase_count, phase)) {
        if (mt_phase_kind_of(phases[phase].name) == MT_PHASE_BACKWARD)
            return true;
        phase = around(phases, phase);
    }
    return false;
}

struct tree {
    struct mt_arena *arena;
    const struct mt_symbols *symbols;
    const struct mt_phase *phases;
    uint32_t phase_count;
    uint64_t first_event;
    enum mt_weigh weigh;
    struct mt_node *nodes;
    uint32_t count;
    size_t capacity;
    struct mt_map children;     /* hash of (parent, identity) -> node */
    struct mt_site_table sites; /* empty until something is tied */
};

static bool is_same(const struct mt_node *node, const struct mt_node *like)
{
    if (node->parent != like->parent || node->kind != like->kind)
        return false;
    switch (node->kind) {
    case MT_NODE_FRAME: return node->frame == like->frame;
    case MT_NODE_NO_STACK:
        return node->is_engine == like->is_engine && node->is_initial == like->is_initial &&
               !strcmp(node->phase_name, like->phase_name);
    case MT_NODE_TIED:
        return node->tie == like->tie && node->frame == like->frame && node->own == like->own;
    case MT_NODE_BLOCKS: return node->role == like->role && node->block_bytes == like->block_bytes;
    case MT_NODE_ROOT: break;
    }
    return true;
}

static uint64_t hash_node(const struct mt_node *node)
{
    uint64_t hash = mt_hash_u64((uint64_t)node->parent << 8 | (uint64_t)node->kind);

    switch (node->kind) {
    case MT_NODE_FRAME: return mt_hash_u64(hash ^ node->frame);
    case MT_NODE_NO_STACK:
        hash ^= mt_hash_bytes(node->phase_name, strlen(node->phase_name));
        return mt_hash_u64(hash ^ (node->is_engine ? 1u : 0u) ^ (node->is_initial ? 2u : 0u));
    case MT_NODE_TIED:
        return mt_hash_u64(hash ^ mt_hash_u64((uint64_t)node->frame << 32 | node->own) ^
                           (uint64_t)node->tie);
    case MT_NODE_BLOCKS:
        return mt_hash_u64(hash ^ mt_hash_u64(node->block_bytes) ^ (uint64_t)node->role);
    case MT_NODE_ROOT: break;
    }
    return hash;
}

static void add_node(struct tree *tree, const struct mt_node *node)
{
    if (tree->count >= UINT32_MAX / 4)
        mt_memory_end();
    mt_grow_to(&tree->nodes, &tree->capacity, (size_t)tree->count + 1, sizeof *tree->nodes);
    tree->nodes[tree->count++] = *node;
}

/* The child of like->parent that is like this, made if there is none. */
static void find_or_add(struct tree *tree, const struct mt_node *like, uint32_t *index)
{
    uint64_t key = hash_node(like);

    for (;; key++) {
        uint32_t found = mt_map_get(&tree->children, key);

        if (found == MT_MAP_NONE)
            break;
        if (is_same(&tree->nodes[found], like)) {
            *index = found;
            return;
        }
    }
    *index = tree->count;
    add_node(tree, like);
    mt_map_put(&tree->children, key, *index);
}

static void count_in(const struct tree *tree, uint32_t index, const struct mt_holding *holding)
{
    struct mt_node *node = &tree->nodes[index];

    node->weight += weight_of(holding, tree->weigh);
    node->bytes += holding->bytes;
    node->blocks += holding->blocks;
    node->requested_bytes += holding->requested_bytes;
}

static void descend(struct tree *tree, struct mt_node like, const struct mt_holding *holding,
                    uint32_t *at)
{
    like.parent = *at;
    like.depth = tree->nodes[*at].depth + 1;
    find_or_add(tree, &like, at);
    count_in(tree, *at, holding);
}

static struct mt_node no_stack_node(const struct tree *tree, const struct mt_holding *holding)
{
    struct mt_node node = {.kind = MT_NODE_NO_STACK,
                           .frame = MT_NO_ID,
                           .phase = MT_NO_PHASE,
                           .phase_name = "",
                           .is_initial = holding->first_birth_event < tree->first_event};

    if (node.is_initial)
        return node;
    node.phase = mt_shown_phase(tree->phases, tree->phase_count, holding->phase);
    node.is_engine = mt_phase_is_backward(tree->phases, tree->phase_count, holding->phase);
    if (node.phase != MT_NO_PHASE)
        node.phase_name = tree->phases[node.phase].name;
    return node;
}

/* What the blocks belong to, if that is more than the phase. */
static void descend_tie(struct tree *tree, const struct mt_holding *holding, uint32_t *at)
{
    struct mt_node node = {
        .kind = MT_NODE_TIED, .phase = MT_NO_PHASE, .tie = holding->tie, .frame = MT_NO_ID};

    node.own = MT_NO_ID;
    if (tree->nodes[*at].is_initial ||
        (holding->tie != MT_TIE_LIBRARY && holding->tied == MT_NO_ID))
        return;
    if (holding->tied != MT_NO_ID) {
        mt_site_table_update(&tree->sites, tree->symbols);
        struct mt_site site = mt_site_table_at(&tree->sites, holding->tied);
        node.frame = site.frame;
        node.own = site.own;
    }
    descend(tree, node, holding, at);
}

static void add_holding(struct tree *tree, struct mt_named_frames *named,
                        const struct mt_holding *holding, bool reversed)
{
    uint32_t frames[MT_NAMED_FRAMES_DEPTH], count, at = 0;
    struct mt_node leaf = {.kind = MT_NODE_BLOCKS,
                           .frame = MT_NO_ID,
                           .phase = holding->phase,
                           .role = holding->role,
                           .block_bytes = holding->block_bytes};

    mt_named_frames_get(named, holding->stack, frames, &count);
    count_in(tree, 0, holding);
    if (count == 0)
        descend(tree, no_stack_node(tree, holding), holding, &at);
    if (count == 0)
        descend_tie(tree, holding, &at);
    for (uint32_t i = 0; i < count; i++) {
        struct mt_node node = {.kind = MT_NODE_FRAME,
                               .frame = frames[reversed ? count - 1 - i : i],
                               .phase = MT_NO_PHASE};
        descend(tree, node, holding, &at);
    }
    descend(tree, leaf, holding, &at);
}

struct child {
    uint32_t parent, node;
    enum mt_node_kind kind;
    uint64_t weight, block_bytes;
    const char *name, *file;
    uint32_t line;
    enum mt_role role;
};

static struct child describe(const struct tree *tree, uint32_t index)
{
    const struct mt_node *node = &tree->nodes[index];
    struct child child = {.parent = node->parent,
                          .node = index,
                          .kind = node->kind,
                          .weight = node->weight,
                          .block_bytes = node->block_bytes,
                          .role = node->role,
                          .name = "",
                          .file = ""};

    if (node->kind == MT_NODE_FRAME && node->frame < tree->symbols->frame_count) {
        const struct mt_frame *frame = &tree->symbols->frames[node->frame];

        child.name = mt_symbols_text(tree->symbols, frame->function);
        child.file = mt_symbols_text(tree->symbols, frame->file);
        child.line = frame->line;
    } else if (node->kind == MT_NODE_NO_STACK) {
        child.name = node->phase_name;
    } else if (node->kind == MT_NODE_TIED) {
        child.name = mt_tie_label(tree->arena, tree->symbols, node->tie,
                                  (struct mt_site){node->frame, node->own});
    }
    return child;
}

MT_DEFINE_ORDER(compare_children, struct child,
                MT_ASCENDING(parent) || MT_DESCENDING(weight) || MT_ASCENDING(kind) ||
                    MT_BY_TEXT(name) || MT_BY_TEXT(file) || MT_ASCENDING(line) ||
                    MT_DESCENDING(block_bytes) || MT_ASCENDING(role) || MT_ASCENDING(node))

/* All nodes but the root, by parent, then as siblings stand. */
static struct child *sorted_children(const struct tree *tree)
{
    struct child *children = mt_memory_new(tree->count * sizeof *children);

    for (uint32_t i = 1; i < tree->count; i++)
        children[i - 1] = describe(tree, i);
    if (tree->count > 1)
        qsort(children, tree->count - 1, sizeof *children, compare_children);
    return children;
}

/* Siblings are a run in `children`; a cursor for each node walks along its
 * run. The next node in picture order is the first child of the last one, or
 * the next sibling of the nearest node around it that has one left. */
static void lay_out(const struct tree *tree, const struct child *children, uint32_t *cursor,
                    struct mt_icicle *icicle)
{
    uint32_t total = tree->count - 1, *place = cursor + tree->count, at = 0;

    for (uint32_t i = total; i-- > 0;)
        cursor[children[i].parent] = i;
    icicle->nodes[0] = tree->nodes[0];
    icicle->count = 1;
    place[0] = 0;
    while (icicle->count < tree->count) {
        while (cursor[at] >= total || children[cursor[at]].parent != at) {
            icicle->nodes[place[at]].end = icicle->count;
            at = tree->nodes[at].parent;
        }
        at = children[cursor[at]++].node;
        place[at] = icicle->count++;
        icicle->nodes[place[at]] = tree->nodes[at];
        icicle->nodes[place[at]].parent = place[tree->nodes[at].parent];
    }
    for (; at; at = tree->nodes[at].parent)
        icicle->nodes[place[at]].end = icicle->count;
    icicle->nodes[0].end = icicle->count;
}

/* Left edges, depth, and what each node holds itself. `filled` counts the weight
 * of the children that have their place. */
static void measure(struct mt_icicle *icicle, uint64_t *filled)
{
    for (uint32_t i = 1; i < icicle->count; i++) {
        struct mt_node *node = &icicle->nodes[i], *parent = &icicle->nodes[node->parent];

        node->offset = parent->offset + filled[node->parent];
        filled[node->parent] += node->weight;
        if (node->depth > icicle->depth)
            icicle->depth = node->depth;
        if (node->kind == MT_NODE_BLOCKS) {
            parent->own_weight += node->weight;
            parent->own_bytes += node->bytes;
            parent->own_blocks += node->blocks;
        }
    }
}

/* Of most of a node's own bytes; leaves of one role may have several sizes. */
static void name_roles(struct mt_icicle *icicle)
{
    for (uint32_t i = 0; i < icicle->count; i++) {
        uint64_t bytes[MT_ROLE_COUNT] = {0};
        struct mt_node *node = &icicle->nodes[i];

        if (node->kind == MT_NODE_BLOCKS || !node->own_blocks)
            continue;
        for (uint32_t j = i + 1; j < node->end; j = icicle->nodes[j].end)
            if (icicle->nodes[j].kind == MT_NODE_BLOCKS)
                bytes[icicle->nodes[j].role] += icicle->nodes[j].bytes;
        for (unsigned role = 1; role < MT_ROLE_COUNT; role++)
            if (bytes[role] > bytes[node->role])
                node->role = (enum mt_role)role;
    }
}

static void finish(const struct tree *tree, struct mt_icicle *icicle)
{
    struct child *children = sorted_children(tree);
    uint32_t *cursor = mt_memory_new(2 * tree->count * sizeof *cursor);
    uint64_t *filled = mt_memory_zeroed(tree->count, sizeof *filled);

    icicle->nodes = mt_arena_array(tree->arena, tree->count, sizeof *icicle->nodes);
    memset(cursor, 0xff, tree->count * sizeof *cursor);
    lay_out(tree, children, cursor, icicle);
    measure(icicle, filled);
    name_roles(icicle);
    free(children);
    free(cursor);
    free(filled);
}

void mt_icicle_build(struct mt_arena *arena, const struct mt_holding *holdings,
                     uint32_t holding_count, const struct mt_phase *phases, uint32_t phase_count,
                     const struct mt_symbols *symbols, const struct mt_icicle_options *options,
                     struct mt_icicle **out)
{
    struct tree tree = {.arena = arena,
                        .symbols = symbols,
                        .phases = phases,
                        .phase_count = phase_count,
                        .first_event = options ? options->first_event : 0,
                        .weigh = options ? options->weigh : MT_WEIGH_ALLOCATED};
    struct mt_node root = {.kind = MT_NODE_ROOT, .frame = MT_NO_ID, .phase = MT_NO_PHASE};
    struct mt_icicle *icicle = mt_arena_alloc(arena, sizeof *icicle);
    struct mt_named_frames named;

    add_node(&tree, &root);
    mt_named_frames_init(&named, arena, symbols);
    for (uint32_t i = 0; i < holding_count; i++)
        add_holding(&tree, &named, &holdings[i], options && options->reversed);
    finish(&tree, icicle);
    mt_map_release(&tree.children);
    mt_site_table_release(&tree.sites);
    free(tree.nodes);
    icicle->weigh = tree.weigh;
    *out = icicle;
}
