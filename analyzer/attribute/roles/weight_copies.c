#include "weight_copies.h"

#include "grow.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

#define UNIT_BYTES  512
#define LARGE_UNITS 128 /* 64 KiB: smaller parameters are biases, no evidence on their own */
#define MAX_EARLY   (1u << 20)
#define MIN_COPIES  2
#define SHARE       4 /* of the bytes from before the first call that have copies */
#define ALONE_SHARE 8 /* of the blocks of a maker: an OOM, or another thread, parts a run */

void mt_weight_copies_release(struct mt_weight_copies *copies)
{
    free(copies->sizes);
    free(copies->makers);
    free(copies->early);
    free(copies->early_sizes);
    mt_map_release(&copies->size_of);
    mt_map_release(&copies->maker_of);
    mt_map_release(&copies->live);
    memset(copies, 0, sizeof *copies);
}

/* Old snapshots have only rounded sizes, so all are rounded. */
static uint32_t units_of(uint64_t bytes)
{
    uint64_t units = bytes / UNIT_BYTES + (bytes % UNIT_BYTES != 0);

    return (uint32_t)mt_min_u64(units, UINT32_MAX - 1);
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint64_t maker_key(uint32_t stack, uint32_t units)
{
    return (uint64_t)stack << 32 | units;
}

static void add_early(struct mt_weight_copies *copies, uint64_t allocation, uint64_t bytes)
{
    uint32_t units = units_of(bytes), half = units / 2 + units % 2;
    uint32_t size = mt_map_find(&copies->size_of, half);

    if (!half || copies->early_count == MAX_EARLY)
        return;
    if (size == MT_MAP_NONE) {
        size = (uint32_t)copies->size_count;
        mt_grow_to(&copies->sizes, &copies->size_capacity, copies->size_count + 1,
                   sizeof *copies->sizes);
        copies->sizes[copies->size_count++] = (struct mt_copy_size){.units = half};
        mt_map_put(&copies->size_of, half, size);
    }
    mt_grow_to(&copies->early, &copies->early_capacity, copies->early_count + 1,
               sizeof *copies->early);
    mt_grow_to(&copies->early_sizes, &copies->early_size_capacity, copies->early_count + 1,
               sizeof *copies->early_sizes);
    copies->early[copies->early_count] = allocation;
    copies->early_sizes[copies->early_count++] = size;
}

static uint32_t maker_of(struct mt_weight_copies *copies, const struct mt_copy_birth *birth)
{
    uint32_t units = units_of(birth->bytes);
    uint64_t key = maker_key(birth->stack, units);
    uint32_t size = birth->in_forward ? mt_map_get(&copies->size_of, units) : MT_MAP_NONE;

    if (size == MT_MAP_NONE)
        return MT_MAP_NONE;
    uint32_t maker = mt_map_find(&copies->maker_of, key);
    if (maker == MT_MAP_NONE) {
        maker = (uint32_t)copies->maker_count;
        mt_grow_to(&copies->makers, &copies->maker_capacity, copies->maker_count + 1,
                   sizeof *copies->makers);
        copies->makers[copies->maker_count++] =
            (struct mt_copy_maker){.stack = birth->stack, .size = size};
        mt_map_put(&copies->maker_of, key, maker);
    }
    copies->makers[maker].births++;
    return maker;
}

/* Counts a block that may be a copy. */
static void count(struct mt_weight_copies *copies, const struct mt_copy_run *run, uint32_t i)
{
    uint32_t at = copies->makers[run->makers[i]].size;
    struct mt_copy_size *size = &copies->sizes[at];

    size->in_call = size->call == run->call ? size->in_call + 1 : 1;
    size->call = run->call;
    size->most_in_call = greater(size->most_in_call, size->in_call);
    if (run->ended >> i & 1)
        return;
    size->most_alive = greater(size->most_alive, ++size->alive);
    mt_map_put(&copies->live, run->first + i, at);
}

static void close_run(struct mt_weight_copies *copies)
{
    struct mt_copy_run *run = &copies->run;
    bool is_followed = run->casts;

    for (uint32_t i = run->count; i-- > 0;) {
        if (run->makers[i] != MT_MAP_NONE && is_followed)
            count(copies, run, i);
        else if (run->makers[i] != MT_MAP_NONE)
            copies->makers[run->makers[i]].alone++;
        is_followed |= !(run->ended >> i & 1);
    }
    run->count = 0;
}

void mt_weight_copies_birth(struct mt_weight_copies *copies, const struct mt_copy_birth *birth)
{
    struct mt_copy_run *run = &copies->run;

    if (birth->is_early) {
        add_early(copies, birth->allocation, birth->bytes);
        return;
    }
    if (run->count &&
        (run->stack != birth->stack || run->call != birth->call ||
         run->count == MT_ARRAY_LEN(run->makers) || run->first + run->count != birth->allocation))
        close_run(copies);
    if (!run->count) {
        run->first = birth->allocation;
        run->ended = 0;
        run->stack = birth->stack;
        run->call = birth->call;
        run->casts = birth->casts;
    }
    run->makers[run->count++] = maker_of(copies, birth);
}

void mt_weight_copies_end(struct mt_weight_copies *copies, uint64_t allocation)
{
    struct mt_copy_run *run = &copies->run;

    if (allocation >= run->first && allocation - run->first < run->count) {
        run->ended |= UINT64_C(1) << (allocation - run->first);
        return;
    }
    uint32_t size = copies->live.count ? mt_map_take(&copies->live, allocation) : MT_MAP_NONE;
    if (size != MT_MAP_NONE)
        copies->sizes[size].alive--;
}

/* Copies of a size that exist together. If the parts of the model are called one by one, each call
 * makes few of them: then those that live at one time count. */
static uint32_t copies_of(const struct mt_copy_size *size, bool by_call)
{
    uint32_t most = size->most_alive;

    if (by_call && size->most_in_call < most)
        most = size->most_in_call;
    return most <= size->parameters ? most : 0;
}

static bool are_copies(const struct mt_weight_copies *copies, bool by_call)
{
    uint64_t paired = 0, whole = 0, blocks = 0;

    for (size_t i = 0; i < copies->size_count; i++) {
        const struct mt_copy_size *size = &copies->sizes[i];
        uint32_t found = size->units >= LARGE_UNITS ? copies_of(size, by_call) : 0;

        whole += (uint64_t)size->parameters * size->units;
        paired += (uint64_t)found * size->units;
        blocks += found;
    }
    return blocks >= MIN_COPIES && paired >= whole / SHARE;
}

static bool is_steady(const struct mt_copy_maker *maker)
{
    return maker->alone <= maker->births / ALONE_SHARE;
}

/* Marks the makers; biases count where weights are cast. */
static void mark(struct mt_weight_copies *copies)
{
    struct mt_map stacks = {0};

    for (int large = 1; large >= 0; large--)
        for (size_t i = 0; i < copies->maker_count; i++) {
            struct mt_copy_maker *maker = &copies->makers[i];
            const struct mt_copy_size *size = &copies->sizes[maker->size];

            if (!size->is_copy || !is_steady(maker) || (size->units >= LARGE_UNITS) != large)
                continue;
            maker->is_copy = large || mt_map_get(&stacks, maker->stack) != MT_MAP_NONE;
            if (large)
                mt_map_put(&stacks, maker->stack, 1);
        }
    mt_map_release(&stacks);
}

void mt_weight_copies_finish(struct mt_weight_copies *copies,
                             bool (*is_parameter)(const void *context, uint64_t allocation),
                             const void *context)
{
    copies->run.count = 0; /* what follows it is unknown */
    if (!copies->maker_count)
        return;
    for (size_t i = 0; i < copies->early_count; i++)
        copies->sizes[copies->early_sizes[i]].parameters += is_parameter(context, copies->early[i]);
    bool by_call = are_copies(copies, true);
    if (!by_call && !are_copies(copies, false)) {
        copies->maker_count = 0; /* mt_weight_copies_has has nothing to search */
        return;
    }
    for (size_t i = 0; i < copies->size_count; i++)
        copies->sizes[i].is_copy = copies_of(&copies->sizes[i], by_call) > 0;
    mark(copies);
}

bool mt_weight_copies_has(const struct mt_weight_copies *copies, uint32_t stack, uint64_t bytes)
{
    uint32_t maker = copies->maker_count
                         ? mt_map_get(&copies->maker_of, maker_key(stack, units_of(bytes)))
                         : MT_MAP_NONE;

    return maker != MT_MAP_NONE && copies->makers[maker].is_copy;
}
