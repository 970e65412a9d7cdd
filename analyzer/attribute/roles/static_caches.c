/* What a program that only calls a model makes before the first call: key-value caches, and sets of
 * one block for each parameter. */
#include "parameter_sets.h"

#include <stdlib.h>

#include "grow.h"
#include "map.h"
#include "sorted.h"

/* Blocks that survive fewer calls may be inputs. */
#define MIN_CALLS 4

#define MIN_LAYERS 3

/* Of queries, keys and values, of the output, two of a feed-forward part, and two norms. */
#define MIN_LAYER_PARAMETERS 6

/* The counts of other sizes do not show the number of layers. */
#define LAYERS_PERCENT 90

/* Blocks of one size that stacks of a model's construction keep. */
struct of_size {
    uint64_t units; /* of all of them */
    uint32_t count;
};

MT_DEFINE_ORDER(by_units_descending, struct of_size, MT_DESCENDING(units))

static bool is_kept(const struct mt_set_block *block)
{
    return block->place == MT_SET_SETUP && !block->is_short;
}

static bool is_of_model(const struct mt_stack_kinds *kinds, const struct mt_set_block *block)
{
    return (mt_stack_kind(kinds, block->stack) & MT_STACK_KIND_MASK) == MT_PHASE_SETUP;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Each size of a layer's parameters exists once or several times for each layer. Returns the
 * greatest number of layers that allows this, or 0 if the layers have few parameters. */
static uint32_t layers_of(const struct mt_parameter_sets *sets, const struct mt_stack_kinds *kinds)
{
    struct mt_map index = {0};
    struct of_size *sizes = NULL;
    size_t count = 0, capacity = 0;
    uint64_t whole = 0, covered = 0;
    uint32_t layers = 0, parameters = 0;

    for (size_t i = 0; i < sets->count; i++) {
        const struct mt_set_block *block = &sets->blocks[i];
        uint32_t at = mt_map_get(&index, block->units);

        if (!is_kept(block) || !is_of_model(kinds, block))
            continue;
        if (at == MT_MAP_NONE) {
            at = (uint32_t)count++;
            mt_grow_to(&sizes, &capacity, count, sizeof *sizes);
            sizes[at] = (struct of_size){0};
            mt_map_put(&index, block->units, at);
        }
        sizes[at].units += block->units;
        sizes[at].count++;
    }
    if (count)
        qsort(sizes, count, sizeof *sizes, by_units_descending);
    for (size_t i = 0; i < count; i++)
        whole += sizes[i].count >= MIN_LAYERS ? sizes[i].units : 0;
    for (size_t i = 0; i < count && covered * 100 < whole * LAYERS_PERCENT; i++) {
        if (sizes[i].count < MIN_LAYERS)
            continue;
        layers = common_divisor(sizes[i].count, layers);
        covered += sizes[i].units;
    }
    for (size_t i = 0; i < count && layers; i++)
        parameters += sizes[i].count / layers;
    free(sizes);
    mt_map_release(&index);
    return parameters >= MIN_LAYER_PARAMETERS ? layers : 0;
}

/* Whether the model works on such a block, or on results from it, in more than a quarter of its
 * calls: a batch. A call that adds one token to a cache makes only smaller blocks. */
static bool is_batch(const struct mt_parameter_sets *sets, uint32_t units)
{
    size_t large = 0;

    for (size_t i = 0; i < sets->call_count; i++)
        large += sets->call_units[i] >= units;
    return large * 4 > sets->call_count;
}

/* Returns the end of the blocks that belong to a cache with blocks[begin], as far as sizes and
 * order show. *count is their number. */
static size_t end_of_run(const struct mt_parameter_sets *sets, const struct mt_stack_kinds *kinds,
                         size_t begin, uint32_t *count)
{
    const struct mt_set_block *first = &sets->blocks[begin];
    size_t end = begin;

    for (*count = 0; end < sets->count; end++) {
        const struct mt_set_block *block = &sets->blocks[end];

        if (!is_kept(block))
            continue;
        if (block->units != first->units || is_of_model(kinds, block))
            break;
        ++*count;
    }
    return end;
}

/* Whether one stack makes all blocks, or each of two makes half of them: keys and values. Sets
 * *other to the second stack, or to the first. */
static bool are_keys_and_values(const struct mt_parameter_sets *sets, size_t begin, size_t end,
                                uint32_t *other)
{
    uint32_t first = sets->blocks[begin].stack;
    size_t counts[2] = {0, 0};

    *other = first;
    for (size_t i = begin; i < end; i++) {
        uint32_t stack = sets->blocks[i].stack;

        if (!is_kept(&sets->blocks[i]))
            continue;
        if (stack != first && *other == first)
            *other = stack;
        if (stack != first && stack != *other)
            return false;
        counts[stack != first]++;
    }
    return *other == first || counts[0] == counts[1];
}

/* A batch has few blocks, none of them for each parameter. Batches have few sizes. */
#define MIN_TWINS      16
#define MIN_TWIN_SIZES 3

/* Blocks of one stack. */
struct twins {
    uint32_t stack, count, paired;              /* paired: with the size of a parameter */
    uint32_t units[MIN_TWIN_SIZES], size_count; /* the first sizes */
};

static void count_twin(struct twins *twins, uint32_t units, bool is_paired)
{
    uint32_t at = 0;

    while (at < twins->size_count && twins->units[at] != units)
        at++;
    if (at == twins->size_count && at < MIN_TWIN_SIZES)
        twins->units[twins->size_count++] = units;
    twins->count++;
    twins->paired += is_paired;
}

static void find_twins(struct mt_parameter_sets *sets, const struct mt_stack_kinds *kinds)
{
    struct mt_map sizes = {0}, index = {0};
    struct twins *twins = NULL;
    size_t count = 0, capacity = 0;

    for (size_t i = 0; i < sets->count; i++)
        if (is_kept(&sets->blocks[i]) && is_of_model(kinds, &sets->blocks[i]))
            mt_map_put(&sizes, sets->blocks[i].units, 1);
    for (size_t i = 0; i < sets->count; i++) {
        const struct mt_set_block *block = &sets->blocks[i];
        uint32_t at = mt_map_get(&index, block->stack);

        if (!is_kept(block) || is_of_model(kinds, block) || block->stack >= kinds->stack_count)
            continue;
        if (at == MT_MAP_NONE) {
            at = (uint32_t)count++;
            mt_grow_to(&twins, &capacity, count, sizeof *twins);
            twins[at] = (struct twins){.stack = block->stack};
            mt_map_put(&index, block->stack, at);
        }
        count_twin(&twins[at], block->units, mt_map_get(&sizes, block->units) != MT_MAP_NONE);
    }
    for (size_t i = 0; i < count; i++)
        if (twins[i].count >= MIN_TWINS && twins[i].paired == twins[i].count &&
            twins[i].size_count == MIN_TWIN_SIZES)
            sets->roles[twins[i].stack] = 1 + MT_ROLE_OTHER;
    free(twins);
    mt_map_release(&sizes);
    mt_map_release(&index);
}

void mt_static_caches_infer(struct mt_parameter_sets *sets, const struct mt_stack_kinds *kinds)
{
    const uint32_t layers = sets->newest.calls >= MIN_CALLS ? layers_of(sets, kinds) : 0;
    bool has_model = false;

    mt_grow_zeroed_to(&sets->roles, &sets->role_capacity, kinds->stack_count, sizeof *sets->roles);
    find_twins(sets, kinds);
    if (layers < MIN_LAYERS)
        return;
    for (size_t i = 0, next; i < sets->count; i = next) {
        const struct mt_set_block *block = &sets->blocks[i];
        uint32_t count, other;

        next = i + 1;
        if (!is_kept(block))
            continue;
        if (is_of_model(kinds, block)) {
            has_model = true;
            continue;
        }
        next = end_of_run(sets, kinds, i, &count);
        if (!has_model || count != 2 * layers || is_batch(sets, block->units) ||
            !are_keys_and_values(sets, i, next, &other) || block->stack >= kinds->stack_count ||
            other >= kinds->stack_count)
            continue;
        sets->roles[block->stack] = 1 + MT_ROLE_KV_CACHE;
        sets->roles[other] = 1 + MT_ROLE_KV_CACHE;
    }
}
