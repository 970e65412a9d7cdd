#include "xla_inference.h"

#include "grow.h"
#include "sorted.h"

#include <stdlib.h>

enum { MIN_RUNS = 4 };

/* Runs of the program's own module: their numbers, in order. */
struct inference {
    const struct mt_xla_block *blocks;
    uint64_t block_count;
    bool updates_slices;
    uint32_t *runs;
    size_t count, capacity;
    bool *caches; /* by stack: it made a cache */
    size_t cache_count;
    bool has_cache;
};

static void release(struct inference *inference)
{
    free(inference->runs);
    free(inference->caches);
}

static void gather_runs(struct inference *inference, const struct mt_xla_runs *runs,
                        uint32_t module)
{
    for (size_t i = 0; i < runs->count; i++) {
        if (runs->list[i].module != module)
            continue;
        mt_grow_to(&inference->runs, &inference->capacity, inference->count + 1,
                   sizeof *inference->runs);
        inference->runs[inference->count++] = (uint32_t)i;
    }
}

/* How many of them had begun when `run` runs of any module had begun. */
static size_t begun_until(const struct inference *inference, uint32_t run)
{
    return mt_sorted_count_below_u32(inference->runs, inference->count, run);
}

static size_t end_of(const struct inference *inference, const struct mt_xla_block *block)
{
    return block->ended == MT_NO_ID ? inference->count : begun_until(inference, block->ended);
}

static bool is_open(const struct inference *inference, const struct mt_xla_block *block)
{
    return block->is_followed && block->role == MT_ROLE_OTHER &&
           end_of(inference, block) - begun_until(inference, block->born) >= MIN_RUNS;
}

static bool is_replaced(const struct inference *inference, const struct mt_xla_block *block)
{
    return block->stack != MT_NO_ID && is_open(inference, block) &&
           end_of(inference, block) < inference->count;
}

/* Sizes with two such blocks in the same run: one per request is the working data of the loop. */
static void find_pairs(const struct inference *inference, struct mt_map *pairs)
{
    struct mt_map last = {0};

    for (uint64_t i = 0; i < inference->block_count; i++) {
        const struct mt_xla_block *block = &inference->blocks[i];
        uint32_t before;

        if (!is_replaced(inference, block))
            continue;
        before = mt_map_get(&last, block->size_bytes);
        if (before != MT_MAP_NONE &&
            begun_until(inference, block->born) < end_of(inference, &inference->blocks[before]))
            mt_map_put(pairs, block->size_bytes, 1);
        mt_map_put(&last, block->size_bytes, (uint32_t)i);
    }
    mt_map_release(&last);
}

/* Stacks of blocks that the program makes again for each request. */
static void find_caches(struct inference *inference)
{
    struct mt_map pairs = {0};

    find_pairs(inference, &pairs);
    for (uint64_t i = 0; i < inference->block_count; i++) {
        const struct mt_xla_block *block = &inference->blocks[i];

        if (!is_replaced(inference, block) || mt_map_get(&pairs, block->size_bytes) == MT_MAP_NONE)
            continue;
        mt_grow_zeroed_to(&inference->caches, &inference->cache_count, (size_t)block->stack + 1,
                          sizeof *inference->caches);
        inference->caches[block->stack] = inference->has_cache = true;
    }
    mt_map_release(&pairs);
}

static enum mt_role role_of(const struct inference *inference, const struct mt_xla_block *block)
{
    if (!is_open(inference, block))
        return MT_ROLE_OTHER;
    if (block->stack < inference->cache_count && inference->caches[block->stack])
        return MT_ROLE_KV_CACHE;
    if (begun_until(inference, block->born) == 0 && end_of(inference, block) == inference->count &&
        (inference->has_cache || !inference->updates_slices))
        return MT_ROLE_PARAMETERS;
    return MT_ROLE_OTHER;
}

static bool trains(const struct mt_xla_block *blocks, uint64_t count,
                   const struct mt_xla_runs *runs)
{
    bool has_state = false;

    for (uint64_t i = 0; i < count && !has_state; i++)
        has_state = blocks[i].role == MT_ROLE_OPTIMIZER_STATE;
    return has_state || runs->differentiates;
}

void mt_xla_inference_find(struct mt_xla_block *blocks, uint64_t count,
                           const struct mt_xla_runs *runs)
{
    struct inference inference = {
        .blocks = blocks, .block_count = count, .updates_slices = runs->updates_slices};
    uint32_t module = mt_xla_runs_main(runs);

    if (module == MT_NO_ID || trains(blocks, count, runs))
        return;
    gather_runs(&inference, runs, module);
    if (runs->updates_slices)
        find_caches(&inference);
    for (uint64_t i = 0; i < count; i++)
        if (blocks[i].role == MT_ROLE_OTHER)
            blocks[i].role = (uint8_t)role_of(&inference, &blocks[i]);
    release(&inference);
}
