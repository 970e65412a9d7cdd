/* Roles of the blocks of an XLA program, also of programs without gradients. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frame_judge.h"
#include "grow.h"
#include "heaps.h"
#include "holding.h"
#include "map.h"
#include "process_memory.h"
#include "roles.h"
#include "sorted.h"
#include "util.h"
#include "xla_names.h"
#include "xla_roles.h"
#include "xla_runs.h"

/* Roles in a program of XLA that computes no gradients: no operation of its modules belongs to a
 * backward pass, and no library made state of an optimizer. The rules count runs of the program's
 * own module (xla_runs.h):
 *
 *   KV cache    outlives four of them and ends before the last one, because each request makes its
 *               own; some operation must write a part of an array. Other long-lived blocks of the
 *               same stacks are also cache. At least two such blocks of a size exist at the same
 *               time: keys and values
 *   parameters  exist before the first run, and still after the last
 *
 * A cache that the module updates in place looks like a parameter if there is one request. So if
 * operations write parts of arrays and no request replaced a cache, parameters stay unknown. */

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

        if (!is_replaced(inference, block))
            continue;
        uint32_t before = mt_map_get(&last, block->size_bytes);
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

/* After the other rules: sets roles that are not known. O(blocks log runs). */
static void xla_inference_find(struct mt_xla_block *blocks, uint64_t count,
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

#define MT_XLA_END (UINT32_C(1) << 31)

/* Kept blocks outlive this many runs; temporaries of an initializer do not. */
#define RUNS_OF_A_KEPT_BLOCK 4

/* Roles by parts of file paths, in order. Inside jit or a gradient function of a library the
 * program's own function makes the blocks: OTHER. The table has only the parts of libraries that
 * make parameters or state: other parts load checkpoints, fetch batches, compute losses, and
 * programs are in folders such as flax/examples. */
static const struct {
    const char *folder;
    enum mt_role role;
} makers[] = {
    {"optax/_src/", MT_ROLE_OPTIMIZER_STATE},
    {"optax/transforms/", MT_ROLE_OPTIMIZER_STATE},
    {"optax/contrib/", MT_ROLE_OPTIMIZER_STATE},
    {"flax/nnx/transforms/", MT_ROLE_OTHER},
    {"equinox/_jit", MT_ROLE_OTHER},
    {"equinox/_ad", MT_ROLE_OTHER},
    {"flax/nnx/", MT_ROLE_PARAMETERS},
    {"flax/linen/", MT_ROLE_PARAMETERS},
    {"flax/core/", MT_ROLE_PARAMETERS},
    {"equinox/nn/", MT_ROLE_PARAMETERS},
    {"equinox/_module", MT_ROLE_PARAMETERS},
    {"haiku/_src/", MT_ROLE_PARAMETERS},
};

void mt_xla_roles_init(struct mt_xla_roles *roles, const struct mt_symbols *symbols, bool is_on)
{
    memset(roles, 0, sizeof *roles);
    roles->symbols = symbols;
    roles->is_on = is_on;
}

void mt_xla_roles_release(struct mt_xla_roles *roles)
{
    free(roles->blocks);
    free(roles->threads);
    free(roles->waiting);
    free(roles->stacks);
    free(roles->log);
    mt_xla_runs_release(&roles->runs);
    mt_map_release(&roles->lists);
    memset(roles, 0, sizeof *roles);
}

static struct mt_xla_list *thread_at(struct mt_xla_roles *roles, uint16_t id)
{
    mt_grow_zeroed_to(&roles->threads, &roles->thread_capacity, id + 1u, sizeof *roles->threads);
    return &roles->threads[id];
}

/* Assigns the waiting blocks to this run. */
static void begin_run(struct mt_xla_roles *roles, struct mt_xla_list *thread, uint32_t run)
{
    for (uint32_t at = thread->first; at; at = roles->blocks[at - 1].next)
        roles->blocks[at - 1].run = run;
    *thread = (struct mt_xla_list){0, 0};
}

void mt_xla_roles_range(struct mt_xla_roles *roles, const struct mt_event *event)
{
    size_t runs = roles->runs.count;

    if (!roles->is_on)
        return;
    mt_xla_runs_range(&roles->runs, roles->symbols, event);
    if (roles->runs.count == runs)
        return;
    struct mt_xla_list *thread = thread_at(roles, event->thread);
    begin_run(roles, thread, (uint32_t)runs);
}

/* The first row that matches the file, or NULL. */
static const enum mt_role *role_of_file(const char *file)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(makers); i++)
        if (mt_path_has(file, makers[i].folder))
            return &makers[i].role;
    return NULL;
}

/* Flax has optimizers that call optax, and jit that calls the program: from the innermost frame
 * outwards, any match other than parameters has priority. */
static enum mt_role maker_of(const struct mt_symbols *symbols, uint32_t stack)
{
    enum mt_role role = MT_ROLE_OTHER;

    for (; stack != MT_NO_ID; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        const enum mt_role *found = role_of_file(mt_symbols_text(symbols, frame->file));

        if (found && *found != MT_ROLE_PARAMETERS)
            return *found;
        if (found)
            role = *found;
    }
    return role;
}

/* Computed once for each stack. */
static enum mt_role made_by(struct mt_xla_roles *roles, uint32_t stack)
{
    size_t old = roles->stack_capacity;

    if (stack == MT_NO_ID || stack >= roles->symbols->stack_count)
        return MT_ROLE_OTHER;
    mt_grow_to(&roles->stacks, &roles->stack_capacity, (size_t)stack + 1, sizeof *roles->stacks);
    if (roles->stack_capacity > old)
        memset(roles->stacks + old, 0, roles->stack_capacity - old);
    if (!roles->stacks[stack])
        roles->stacks[stack] = (uint8_t)(maker_of(roles->symbols, stack) + 1);
    return (enum mt_role)(roles->stacks[stack] - 1);
}

/* Blocks of other heaps also have an entry, but are never tracked. */
static struct mt_xla_block *block_at(struct mt_xla_roles *roles, uint64_t allocation)
{
    if (allocation >= MT_XLA_END - 1)
        return NULL;
    mt_grow_to(&roles->blocks, &roles->capacity, (size_t)allocation + 1, sizeof *roles->blocks);
    while (roles->count <= allocation)
        roles->blocks[roles->count++] = (struct mt_xla_block){
            .run = MT_NO_ID, .ended = MT_NO_ID, .stack = MT_NO_ID, .role = MT_ROLE_OTHER};
    return &roles->blocks[allocation];
}

static void append(struct mt_xla_roles *roles, uint32_t *first, uint32_t *last, uint64_t allocation)
{
    uint32_t number = (uint32_t)allocation + 1;

    roles->blocks[allocation].next = 0;
    if (*last)
        roles->blocks[*last - 1].next = number;
    else
        *first = number;
    *last = number;
}

static void note(struct mt_xla_roles *roles, uint64_t allocation, uint32_t end)
{
    mt_grow_to(&roles->log, &roles->log_capacity, roles->log_count + 1, sizeof *roles->log);
    roles->log[roles->log_count++] = ((uint32_t)allocation + 1) | end;
}

void mt_xla_roles_birth(struct mt_xla_roles *roles, const struct mt_event *event,
                        uint64_t allocation)
{
    if (!roles->is_on || strcmp(mt_heap_name(roles->symbols, event->heap), MT_XLA_HEAP) != 0)
        return;
    struct mt_xla_list *thread = thread_at(roles, event->thread);
    struct mt_xla_block *block = block_at(roles, allocation);
    enum mt_role role = made_by(roles, event->stack);
    if (!thread || !block || role == (enum mt_role)MT_ROLE_COUNT)
        mt_memory_end();
    block->is_followed = true;
    block->size_bytes = event->size_bytes;
    block->born = (uint32_t)roles->runs.count;
    block->stack = event->stack;
    block->role = (uint8_t)role;
    block->run = mt_xla_runs_current(&roles->runs, event->thread);
    if (block->run == MT_NO_ID)
        append(roles, &thread->first, &thread->last, allocation);
    note(roles, allocation, 0);
}

void mt_xla_roles_end(struct mt_xla_roles *roles, uint64_t allocation)
{
    struct mt_xla_block *block = allocation < roles->count ? &roles->blocks[allocation] : NULL;

    if (!block || !block->is_followed || block->ended != MT_NO_ID)
        return;
    block->ended = (uint32_t)roles->runs.count;
    note(roles, allocation, MT_XLA_END);
}

/* The results of that size without a role. */
static struct mt_xla_list *list_of(struct mt_xla_roles *roles, uint64_t size_bytes)
{
    uint32_t index = mt_map_get(&roles->lists, size_bytes);

    if (index != MT_MAP_NONE)
        return &roles->waiting[index];
    mt_grow_to(&roles->waiting, &roles->waiting_capacity, (size_t)roles->waiting_count + 1,
               sizeof *roles->waiting);
    mt_map_put(&roles->lists, size_bytes, roles->waiting_count);
    roles->waiting[roles->waiting_count] = (struct mt_xla_list){0, 0};
    return &roles->waiting[roles->waiting_count++];
}

/* Whether it ends before another module runs. */
static bool is_temporary(const struct mt_xla_block *block)
{
    return block->run != MT_NO_ID && block->ended != MT_NO_ID && block->ended <= block->run + 1;
}

static bool is_kept(const struct mt_xla_roles *roles, const struct mt_xla_block *block)
{
    uint32_t ended = block->ended == MT_NO_ID ? (uint32_t)roles->runs.count : block->ended;

    return ended - block->born >= RUNS_OF_A_KEPT_BLOCK;
}

/* Removes the oldest live result from the list and gives it the role. */
static void take_over(struct mt_xla_roles *roles, struct mt_xla_list *list, uint8_t role,
                      const bool *has_ended)
{
    while (list->first) {
        uint32_t at = list->first - 1;

        list->first = roles->blocks[at].next;
        if (!list->first)
            list->last = 0;
        if (has_ended[at])
            continue;
        roles->blocks[at].role = role;
        return;
    }
}

/* Goes through allocations and frees again: when a block with a role ends, it passes the role
 * on. */
static void hand_on(struct mt_xla_roles *roles, bool *has_ended)
{
    for (size_t i = 0; i < roles->log_count; i++) {
        uint32_t at = (roles->log[i] & ~MT_XLA_END) - 1;
        struct mt_xla_block *block = &roles->blocks[at];
        bool has_role = block->role != MT_ROLE_OTHER;

        if (block->run == MT_NO_ID || block->role == MT_ROLE_TEMPORARIES)
            continue;
        struct mt_xla_list *list = list_of(roles, block->size_bytes);
        if (!(roles->log[i] & MT_XLA_END) && !has_role)
            append(roles, &list->first, &list->last, at);
        if (roles->log[i] & MT_XLA_END) {
            has_ended[at] = true;
            if (has_role)
                take_over(roles, list, block->role, has_ended);
        }
    }
}

/* A block that ends in its run is a temporary, and a block that its maker did not keep does not
 * have the maker's role. */
static void judge_lives(struct mt_xla_roles *roles)
{
    for (uint64_t i = 0; i < roles->count; i++) {
        struct mt_xla_block *block = &roles->blocks[i];

        if (is_temporary(block))
            block->role = MT_ROLE_TEMPORARIES;
        else if (block->role != MT_ROLE_OTHER && !is_kept(roles, block))
            block->role = MT_ROLE_OTHER;
    }
}

void mt_xla_roles_finish(struct mt_xla_roles *roles, uint8_t *codes, uint64_t count)
{
    bool *has_ended;

    if (!roles->runs.count || !roles->count)
        return;
    has_ended = mt_memory_zeroed(roles->count, sizeof *has_ended);
    judge_lives(roles);
    hand_on(roles, has_ended);
    xla_inference_find(roles->blocks, roles->count, &roles->runs);
    for (uint64_t i = 0; i < roles->count && i < count; i++)
        if (roles->blocks[i].role != MT_ROLE_OTHER && !mt_role_code_is_recorded(codes[i]))
            codes[i] = (uint8_t)(MT_ROLE_CODE_XLA + roles->blocks[i].role);
    free(has_ended);
}
