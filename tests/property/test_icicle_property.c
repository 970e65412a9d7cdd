/* Random holdings as a tree: sums are right, siblings are sorted, and the folded stacks, drawn by
 * another implementation, have the same widths. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "icicle.h"
#include "phase.h"
#include "site.h"

enum { MAX_HOLDINGS = 120, FRAMES = 30, STACKS = 60, PHASES = 6 };

struct world {
    struct mt_arena arena;
    struct mt_symbols symbols;
    struct mt_phase phases[PHASES];
    struct mt_holding holdings[MAX_HOLDINGS];
    uint32_t count;
    uint64_t bytes, requested_bytes, blocks;
};

static void make_symbols(struct world *world)
{
    static const char *const files[] = {
        "/app/train.py", "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
        "/venv/lib/python3.12/site-packages/torch/optim/adam.py", "??"};
    static const char *const functions[] = {"forward", "_call_impl", "a;b", "step", "n::f(int)"};
    uint32_t frames[FRAMES], stack;

    assert_int_equal(mt_symbols_init(&world->symbols), MT_OK);
    for (uint32_t i = 0; i < FRAMES; i++) {
        const char *file = files[linear_below(4)], *function = functions[linear_below(5)];
        uint32_t file_id, function_id;

        assert_int_equal(mt_symbols_string(&world->symbols, file, strlen(file), &file_id), MT_OK);
        assert_int_equal(
            mt_symbols_string(&world->symbols, function, strlen(function), &function_id), MT_OK);
        assert_int_equal(mt_symbols_frame(&world->symbols, function_id, file_id, i + 1, &frames[i]),
                         MT_OK);
    }
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t count = world->symbols.stack_count;
        uint32_t parent = count && linear_below(6) ? count - 1 - linear_below(count) / 2 : MT_NO_ID;

        assert_int_equal(
            mt_symbols_stack(&world->symbols, parent, frames[linear_below(FRAMES)], &stack), MT_OK);
    }
}

static void make_world(struct world *world)
{
    static const char *const names[PHASES] = {"step#0",   "forward", "nccl:all_reduce",
                                              "backward", "nccl:x",  "forward"};
    static const int32_t parents[PHASES] = {MT_NO_PHASE, 0, MT_NO_PHASE, 0, 3, 0};

    memset(world, 0, sizeof *world);
    make_symbols(world);
    for (int i = 0; i < PHASES; i++)
        world->phases[i] = (struct mt_phase){.name = names[i],
                                             .path = names[i],
                                             .parent = parents[i],
                                             .is_step = i == 0,
                                             .is_plumbing = i == 2 || i == 4};
    world->count = linear_below(MAX_HOLDINGS);
    for (uint32_t i = 0; i < world->count; i++) {
        struct mt_holding *holding = &world->holdings[i];
        uint32_t stack = linear_below(STACKS + 10);

        holding->stack = stack < world->symbols.stack_count ? stack : MT_NO_ID;
        holding->tied = MT_NO_ID;
        holding->tie =
            holding->stack == MT_NO_ID ? (enum mt_tie)linear_below(MT_TIE_COUNT) : MT_TIE_NONE;
        if (holding->tie == MT_TIE_PARAMETER || holding->tie == MT_TIE_FORWARD)
            holding->tied = linear_below(world->symbols.stack_count);
        holding->phase = (int32_t)linear_below(PHASES + 1) - 1;
        holding->role = (enum mt_role)linear_below(MT_ROLE_COUNT);
        holding->block_bytes = 512u << linear_below(20);
        holding->blocks = 1 + linear_below(9);
        holding->bytes = holding->blocks * holding->block_bytes;
        holding->first_birth_event = 1 + linear_below(40);
        holding->requested_bytes = holding->bytes - linear_below(512);
        world->bytes += holding->bytes;
        world->requested_bytes += holding->requested_bytes;
        world->blocks += holding->blocks;
    }
}

static struct mt_icicle *build(struct world *world, bool reversed, enum mt_weigh weigh)
{
    struct mt_icicle_options options = {.reversed = reversed, .weigh = weigh, .first_event = 7};
    struct mt_icicle *icicle;

    mt_icicle_build(&world->arena, world->holdings, world->count, world->phases, PHASES,
                    &world->symbols, &options, &icicle);
    return icicle;
}

/* Sums, places and order of the nodes right below one. */
static void check_node(const struct mt_icicle *icicle, uint32_t index)
{
    const struct mt_node *node = &icicle->nodes[index], *before = NULL;
    const uint64_t weights[] = {node->bytes, node->requested_bytes, node->blocks};
    uint64_t bytes = 0, blocks = 0, own = 0, weight = 0, own_weight = 0;

    assert_int_equal(node->weight, weights[icicle->weigh]);

    for (uint32_t i = index + 1; i < node->end; i = icicle->nodes[i].end) {
        const struct mt_node *child = &icicle->nodes[i];

        assert_int_equal(child->parent, index);
        assert_int_equal(child->depth, node->depth + 1);
        assert_int_equal(child->offset, node->offset + weight);
        assert_true(!before || before->weight >= child->weight);
        weight += child->weight;
        own_weight += child->kind == MT_NODE_BLOCKS ? child->weight : 0;
        bytes += child->bytes;
        blocks += child->blocks;
        own += child->kind == MT_NODE_BLOCKS ? child->bytes : 0;
        before = child;
    }
    assert_int_equal(node->own_bytes, own);
    assert_int_equal(node->own_weight, own_weight);
    if (node->kind == MT_NODE_BLOCKS) {
        assert_int_equal(node->end, index + 1);
        assert_int_equal(node->bytes, node->blocks * node->block_bytes);
    } else {
        assert_int_equal(bytes, node->bytes);
        assert_int_equal(blocks, node->blocks);
    }
}

/* No plumbing, but in stacks of plumbing alone; no two siblings are the same. */
static void check_siblings(const struct world *world, const struct mt_icicle *icicle)
{
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];

        if (node->kind == MT_NODE_FRAME && mt_frame_is_plumbing(&world->symbols, node->frame))
            assert_int_equal(node->depth, 1);
        for (uint32_t j = node->end; j < icicle->nodes[node->parent].end;
             j = icicle->nodes[j].end) {
            const struct mt_node *other = &icicle->nodes[j];

            if (node->kind != other->kind)
                continue;
            assert_false(node->kind == MT_NODE_FRAME && node->frame == other->frame);
            assert_false(
                node->kind == MT_NODE_NO_STACK && !strcmp(node->phase_name, other->phase_name) &&
                node->is_engine == other->is_engine && node->is_initial == other->is_initial);
            assert_false(node->kind == MT_NODE_TIED && node->tie == other->tie &&
                         node->frame == other->frame && node->own == other->own);
            assert_false(node->kind == MT_NODE_BLOCKS && node->role == other->role &&
                         node->block_bytes == other->block_bytes);
        }
    }
}

/* Sum of the folded lines that begin with a path. */
static uint64_t folded_width(const char *folded, const char *path)
{
    size_t length = strlen(path);
    uint64_t sum = 0;

    while (*folded) {
        const char *end = strchr(folded, '\n'), *space = end;

        while (*space != ' ')
            space--;
        if ((size_t)(space - folded) >= length && !memcmp(folded, path, length) &&
            (folded[length] == ';' || folded + length == space))
            sum += strtoull(space, NULL, 10);
        folded = end + 1;
    }
    return sum;
}

static const char *folded_name(struct world *world, const struct mt_node *node)
{
    char *name =
        mt_arena_printf(&world->arena, "%s", mt_node_label(&world->arena, &world->symbols, node));

    for (char *at = name; *at; at++)
        if (*at == ';')
            *at = ':';
    return name;
}

/* Nodes with equal paths (one size, two roles) are one in the folded stacks. */
static void check_folded(struct world *world, const struct mt_icicle *icicle, bool with_blocks)
{
    const char **paths = mt_arena_array(&world->arena, icicle->count, sizeof *paths);
    struct mt_buf folded = {0};

    mt_icicle_fold(icicle, &world->symbols, with_blocks, &folded);
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];

        paths[i] = folded_name(world, node);
        if (node->parent)
            paths[i] = mt_arena_printf(&world->arena, "%s;%s", paths[node->parent], paths[i]);
    }
    for (uint32_t i = 1; i < icicle->count; i++) {
        uint64_t wanted = 0;

        if (icicle->nodes[i].kind == MT_NODE_BLOCKS && !with_blocks)
            continue;
        for (uint32_t j = 1; j < icicle->count; j++)
            wanted += !strcmp(paths[i], paths[j]) ? icicle->nodes[j].weight : 0;
        assert_int_equal(folded_width(folded.data, paths[i]), wanted);
    }
    mt_buf_release(&folded);
}

TEST(random_holdings_add_up)
{
    static struct world world;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_state = seed;
        make_world(&world);
        for (int reversed = 0; reversed < 2; reversed++) {
            enum mt_weigh weigh = (enum mt_weigh)(seed % MT_WEIGH_KINDS);
            struct mt_icicle *icicle = build(&world, reversed, weigh);
            const uint64_t totals[] = {world.bytes, world.requested_bytes, world.blocks};

            assert_int_equal(icicle->weigh, weigh);
            assert_int_equal(icicle->nodes[0].weight, totals[weigh]);
            assert_int_equal(icicle->nodes[0].bytes, world.bytes);
            assert_int_equal(icicle->nodes[0].blocks, world.blocks);
            assert_int_equal(icicle->nodes[0].end, icicle->count);
            for (uint32_t i = 0; i < icicle->count; i++) {
                check_node(icicle, i);
                assert_true(icicle->nodes[i].depth <= icicle->depth);
            }
            check_siblings(&world, icicle);
            check_folded(&world, icicle, true);
            check_folded(&world, icicle, false);
        }
        mt_symbols_release(&world.symbols);
        mt_arena_release(&world.arena);
    }
}

/* The same holdings in another order are the same picture. */
TEST(order_of_holdings_does_not_matter)
{
    static struct world world;
    struct mt_buf first = {0}, second = {0};

    random_state = 5;
    make_world(&world);
    mt_icicle_fold(build(&world, false, MT_WEIGH_ALLOCATED), &world.symbols, true, &first);
    for (uint32_t i = 0; i < world.count / 2; i++) {
        struct mt_holding swap = world.holdings[i];

        world.holdings[i] = world.holdings[world.count - 1 - i];
        world.holdings[world.count - 1 - i] = swap;
    }
    mt_icicle_fold(build(&world, false, MT_WEIGH_ALLOCATED), &world.symbols, true, &second);
    assert_true(first.length > 0);
    assert_string_equal(first.data, second.data);
    mt_buf_release(&first);
    mt_buf_release(&second);
    mt_symbols_release(&world.symbols);
    mt_arena_release(&world.arena);
}

TEST(phases_name_blocks_without_stack)
{
    static struct world world;

    random_state = 9;
    make_world(&world);
    assert_int_equal(mt_shown_phase(world.phases, PHASES, 4), 3);
    assert_int_equal(mt_shown_phase(world.phases, PHASES, 2), MT_NO_PHASE);
    assert_int_equal(mt_shown_phase(world.phases, PHASES, 99), MT_NO_PHASE);
    assert_true(mt_phase_is_backward(world.phases, PHASES, 4));
    assert_false(mt_phase_is_backward(world.phases, PHASES, 1));
    world.count = 1;
    world.holdings[0].stack = MT_NO_ID;
    world.holdings[0].tie = MT_TIE_NONE;
    world.holdings[0].tied = MT_NO_ID;
    world.holdings[0].first_birth_event = 7;
    world.holdings[0].phase = 4;
    assert_string_equal(mt_node_label(&world.arena, &world.symbols,
                                      &build(&world, false, MT_WEIGH_ALLOCATED)->nodes[1]),
                        "autograd engine");
    world.holdings[0].phase = 1;
    assert_string_equal(mt_node_label(&world.arena, &world.symbols,
                                      &build(&world, false, MT_WEIGH_ALLOCATED)->nodes[1]),
                        "no stack, in forward");
    world.holdings[0].first_birth_event = 6;
    assert_string_equal(mt_node_label(&world.arena, &world.symbols,
                                      &build(&world, false, MT_WEIGH_ALLOCATED)->nodes[1]),
                        "allocated before recording started");
    world.holdings[0].first_birth_event = 7;
    world.holdings[0].phase = MT_NO_PHASE;
    assert_string_equal(mt_node_label(&world.arena, &world.symbols,
                                      &build(&world, false, MT_WEIGH_ALLOCATED)->nodes[1]),
                        "no stack recorded");
    world.holdings[0].tie = MT_TIE_LIBRARY;
    world.holdings[0].phase = 4;
    assert_string_equal(mt_node_label(&world.arena, &world.symbols,
                                      &build(&world, false, MT_WEIGH_ALLOCATED)->nodes[2]),
                        "cuBLAS (no Python stack)");
    world.holdings[0].tie = MT_TIE_PHASE; /* that is said already */
    assert_int_equal(build(&world, false, MT_WEIGH_ALLOCATED)->count, 3);
    mt_symbols_release(&world.symbols);
    mt_arena_release(&world.arena);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
