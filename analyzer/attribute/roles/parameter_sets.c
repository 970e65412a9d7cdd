#include "parameter_sets.h"

#include <stdlib.h>
#include <string.h>

#include "early_roles.h"
#include "frame_judge.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "sorted.h"
#include "symbols.h"
#include "work_kinds.h"

/* Later allocations are no evidence: the first turns of a program suffice. */
#define BLOCKS_MAX (UINT64_C(1) << 20)

#define CALLS_MAX 4096

/* Fewer blocks may have the sizes of parameters by chance, and so may blocks with a smaller share
 * of the gradients' bytes. */
#define MIN_BLOCKS        3
#define MIN_HOOKED_BLOCKS 16
#define MIN_SHARE_PERCENT 10

/* The sizes of other blocks may be equal by chance. */
#define NEARLY_ALL_PERCENT 90

#define MAX_UPDATES 8

void mt_parameter_sets_release(struct mt_parameter_sets *sets)
{
    free(sets->blocks);
    free(sets->heirs);
    free(sets->step_calls);
    free(sets->call_units);
    free(sets->roles);
    memset(sets, 0, sizeof *sets);
}

void mt_parameter_sets_forget_blocks(struct mt_parameter_sets *sets)
{
    free(sets->blocks);
    free(sets->heirs);
    sets->blocks = NULL;
    sets->heirs = NULL;
    sets->count = sets->capacity = sets->heir_count = sets->heir_capacity = 0;
}

static void note_call(struct mt_parameter_sets *sets, const struct mt_set_block *block)
{
    if (!block->calls || block->calls > CALLS_MAX)
        return;
    mt_grow_zeroed_to(&sets->call_units, &sets->call_capacity, block->calls,
                      sizeof *sets->call_units);
    sets->call_count = block->calls;
    uint32_t *largest = &sets->call_units[block->calls - 1];
    *largest = block->units > *largest ? block->units : *largest;
}

void mt_parameter_sets_birth(struct mt_parameter_sets *sets, const struct mt_set_block *block)
{
    sets->newest = *block;
    if (block->place == MT_SET_NOWHERE)
        note_call(sets, block);
    if (block->place == MT_SET_NOWHERE || block->allocation >= BLOCKS_MAX)
        return;
    mt_grow_to(&sets->blocks, &sets->capacity, sets->count + 1, sizeof *sets->blocks);
    sets->blocks[sets->count++] = *block;
}

static struct mt_set_block *block_of(const struct mt_parameter_sets *sets, uint64_t allocation)
{
    size_t low = 0;

    MT_BISECT(low, allocation < BLOCKS_MAX ? sets->count : 0, middle,
              sets->blocks[middle].allocation < allocation);
    return low < sets->count && sets->blocks[low].allocation == allocation ? &sets->blocks[low]
                                                                           : NULL;
}

void mt_parameter_sets_end(struct mt_parameter_sets *sets, const struct mt_set_block *end)
{
    struct mt_set_block *block = block_of(sets, end->allocation), *newest = &sets->newest;

    if (newest->allocation == end->allocation)
        newest->place = MT_SET_NOWHERE;
    if (!block)
        return;
    block->has_ended = true;
    block->is_short = end->is_short;
    block->outlives_call = end->calls > block->calls;
    if (newest->place < (block->place == MT_SET_SETUP ? MT_SET_BACKWARD : MT_SET_PAUSE) ||
        end->is_short || newest->units != block->units || block->place == MT_SET_BACKWARD ||
        newest->allocation >= BLOCKS_MAX)
        return;
    mt_grow_to(&sets->heirs, &sets->heir_capacity, sets->heir_count + 1, sizeof *sets->heirs);
    sets->heirs[sets->heir_count++] =
        (struct mt_set_heir){block->allocation, newest->allocation, newest->stack};
    newest->place = MT_SET_NOWHERE;
}

void mt_parameter_sets_step(struct mt_parameter_sets *sets, uint32_t calls)
{
    if (sets->step_count && sets->step_calls[sets->step_count - 1] == calls)
        return;
    mt_grow_to(&sets->step_calls, &sets->step_capacity, sets->step_count + 1,
               sizeof *sets->step_calls);
    sets->step_calls[sets->step_count++] = calls;
}

struct size {
    uint32_t gradients; /* in a turn; of the sizes of workspaces none count */
    uint32_t setup;     /* kept blocks of setup so far */
    uint32_t states;    /* that the optimizer keeps */
};

/* A function of the program that changes parameters. */
struct update {
    uint32_t function, file; /* strings */
    uint32_t line;           /* the last one seen */
    uint64_t units;          /* of gradients' sizes, made by it between parts */
    uint32_t first_calls, last_calls;
};

/* The stack of the first blocks that a stack replaces. */
struct heir_vote {
    uint32_t stack;
    uint8_t place;
    uint32_t blocks;
    uint64_t units, paired_units, state_units;
};

/* Kinds of frames. */
enum { OF_TORCH = 1, OF_OPTIMIZER = 2, OF_LOOP = 4 };

struct search {
    struct mt_parameter_sets *sets;
    const struct mt_symbols *symbols;
    const struct mt_stack_kinds *kinds;
    struct mt_map size_index; /* units -> index */
    struct size *sizes;
    size_t size_count, size_capacity;
    uint64_t gradient_units, state_units;
    uint32_t *ranks;                    /* of a kept block of setup among those of its size */
    const struct mt_set_block **sorted; /* kept blocks of setup and of pauses, by stack */
    size_t sorted_count;
    struct update updates[MAX_UPDATES];
    size_t update_count;
    uint8_t *frames;       /* kinds, by frame */
    uint32_t *own_updates; /* by stack: 1 + frame; 0 = none */
    bool has_optimizer;    /* of torch.optim */
    uint8_t *is_extra;     /* by stack: a set of setup beyond the parameters */
    struct heir_vote *votes;
    size_t vote_count, vote_capacity;
};

static struct size *size_of(struct search *search, uint32_t units)
{
    uint32_t index = mt_map_get(&search->size_index, units);

    if (index == MT_MAP_NONE) {
        mt_grow_to(&search->sizes, &search->size_capacity, search->size_count + 1,
                   sizeof *search->sizes);
        index = (uint32_t)search->size_count++;
        search->sizes[index] = (struct size){0};
        mt_map_put(&search->size_index, units, index);
    }
    return &search->sizes[index];
}

MT_DEFINE_POINTER_ORDER(by_stack, struct mt_set_block,
                        MT_ASCENDING(place) || MT_ASCENDING(stack) || MT_ASCENDING(calls) ||
                            MT_ASCENDING(units) || MT_BY_PLACE)

MT_DEFINE_POINTER_ORDER(by_units, struct mt_set_block, MT_ASCENDING(units) || MT_ASCENDING(calls))

/* Sets the gradients of each size: the median over the turns that have some. */
static void count_gradients(struct search *search)
{
    const struct mt_parameter_sets *sets = search->sets;
    uint32_t *turns = mt_memory_zeroed(sets->count + 1, sizeof *turns);
    size_t count = 0;

    for (size_t i = 0; i < sets->count; i++)
        if (sets->blocks[i].place == MT_SET_BACKWARD && !sets->blocks[i].is_short &&
            !mt_is_workspace((uint64_t)sets->blocks[i].units * 512))
            search->sorted[count++] = &sets->blocks[i];
    qsort(search->sorted, count, sizeof *search->sorted, by_units);
    for (size_t i = 0, next; i < count; i = next) {
        uint32_t units = search->sorted[i]->units, calls = 0;
        size_t turn_count = 0;

        for (next = i; next < count && search->sorted[next]->units == units; next++) {
            if (next == i || search->sorted[next]->calls != calls)
                turns[turn_count++] = 0;
            calls = search->sorted[next]->calls;
            turns[turn_count - 1]++;
        }
        qsort(turns, turn_count, sizeof *turns, mt_ascending_u32);
        size_of(search, units)->gradients = turns[turn_count / 2];
        search->gradient_units += (uint64_t)turns[turn_count / 2] * units;
    }
    free(turns);
}

/* Blocks of setup and of the optimizer by size, and those that may be in sets, by stack. */
static void sort_blocks(struct search *search)
{
    const struct mt_parameter_sets *sets = search->sets;

    for (size_t i = 0; i < sets->count; i++) {
        const struct mt_set_block *block = &sets->blocks[i];
        struct size *size = size_of(search, block->units);

        if (block->is_short || mt_is_workspace((uint64_t)block->units * 512))
            continue;
        if (block->place == MT_SET_SETUP)
            search->ranks[i] = size->setup++;
        if (block->place == MT_SET_OPTIMIZER) {
            size->states++;
            search->state_units += block->units;
        }
        if ((block->place == MT_SET_SETUP || block->place == MT_SET_PAUSE) &&
            block->stack < search->kinds->stack_count)
            search->sorted[search->sorted_count++] = block;
    }
    qsort(search->sorted, search->sorted_count, sizeof *search->sorted, by_stack);
}

static const struct mt_frame *frame_of(const struct search *search, uint32_t stack)
{
    return &search->symbols->frames[search->symbols->stacks[stack].frame];
}

static uint64_t function_key(const struct mt_frame *frame)
{
    return (uint64_t)frame->function << 32 | frame->file;
}

/* Sets the kind of each frame. The loop's functions are those that call the model, outside of it.
 */
static void judge_frames(struct search *search)
{
    const struct mt_symbols *symbols = search->symbols;
    uint32_t stack = search->sets->model_stack - 1, outer = stack;
    struct mt_map loop = {0};

    for (; stack < search->kinds->stack_count; stack = symbols->stacks[stack].parent)
        if (search->kinds->frames[symbols->stacks[stack].frame] & MT_STACK_KIND_MASK)
            outer = symbols->stacks[stack].parent;
    for (; outer < search->kinds->stack_count; outer = symbols->stacks[outer].parent)
        mt_map_put(&loop, function_key(frame_of(search, outer)), 1);
    for (uint32_t i = 0; i < search->kinds->frame_count; i++) {
        const char *file = mt_symbols_text(symbols, symbols->frames[i].file);

        if (mt_path_has(file, "torch/"))
            search->frames[i] |= OF_TORCH;
        if (mt_path_has(file, "torch/optim/"))
            search->frames[i] |= OF_OPTIMIZER;
        if (mt_map_get(&loop, function_key(&symbols->frames[i])) != MT_MAP_NONE)
            search->frames[i] |= OF_LOOP;
        search->has_optimizer |= !!(search->frames[i] & OF_OPTIMIZER);
    }
    mt_map_release(&loop);
}

/* Sets, by stack, the frame through which it works on parameters: the outermost one of the program
 * below torch.optim; in a program without it, the outermost one that the loop calls. */
static void find_own_updates(struct search *search)
{
    bool *is_below = mt_memory_zeroed((size_t)search->kinds->stack_count + 1, sizeof *is_below);

    for (uint32_t i = 0; i < search->kinds->stack_count; i++) {
        const struct mt_stack *stack = &search->symbols->stacks[i];
        const uint8_t kind = search->frames[stack->frame];
        const bool has_outer = stack->parent < i;

        is_below[i] = !search->has_optimizer || (has_outer && is_below[stack->parent]);
        search->own_updates[i] = has_outer ? search->own_updates[stack->parent] : 0;
        if (!search->own_updates[i] && is_below[i] && !(kind & OF_TORCH) &&
            (search->has_optimizer || !(kind & OF_LOOP)))
            search->own_updates[i] = 1 + stack->frame;
        is_below[i] |= !!(kind & OF_OPTIMIZER);
    }
    free(is_below);
}

static const struct mt_frame *own_update(const struct search *search, uint32_t stack)
{
    const uint32_t frame = stack < search->kinds->stack_count ? search->own_updates[stack] : 0;

    return frame ? &search->symbols->frames[frame - 1] : NULL;
}

static struct update *update_of(struct search *search, const struct mt_frame *frame)
{
    for (size_t i = 0; i < search->update_count; i++)
        if (search->updates[i].function == frame->function &&
            search->updates[i].file == frame->file)
            return &search->updates[i];
    return NULL;
}

static void find_update(struct search *search, const struct mt_set_block *block)
{
    const struct mt_frame *frame = own_update(search, block->stack);
    struct update *update = frame ? update_of(search, frame) : NULL;

    if (!frame || (!update && search->update_count == MAX_UPDATES))
        return;
    if (!update) {
        update = &search->updates[search->update_count++];
        *update = (struct update){
            .function = frame->function, .file = frame->file, .first_calls = block->calls};
    }
    update->line = frame->line > update->line ? frame->line : update->line;
    update->last_calls = block->calls;
    update->units += size_of(search, block->units)->gradients ? block->units : 0;
}

/* Without torch.optim, functions that make little of what has the gradients' sizes, or only once,
 * are no updates. */
static void find_updates(struct search *search)
{
    const struct mt_parameter_sets *sets = search->sets;
    size_t kept = 0;

    for (size_t i = 0; i < sets->count; i++) {
        const struct mt_set_block *block = &sets->blocks[i];

        if (search->has_optimizer ? block->place == MT_SET_OPTIMIZER
                                  : block->place == MT_SET_OPTIMIZER ||
                                        (block->place == MT_SET_PAUSE && block->after_backward))
            find_update(search, block);
    }
    for (size_t i = 0; i < search->update_count; i++)
        if (search->has_optimizer ||
            (search->updates[i].units >= 2 * search->gradient_units &&
             search->updates[i].first_calls != search->updates[i].last_calls))
            search->updates[kept++] = search->updates[i];
    search->update_count = kept;
}

/* Length of the class in a qualified name: of "Adam.__init__" 4. */
static size_t class_length(const char *function)
{
    const char *dot = strrchr(function, '.');

    return dot ? (size_t)(dot - function) : 0;
}

/* Whether a constructor is of the class of an update, as far as names and lines show. */
static bool constructs(const struct search *search, const struct mt_frame *frame,
                       const struct update *update)
{
    const char *name = mt_symbols_text(search->symbols, frame->function);
    const char *other = mt_symbols_text(search->symbols, update->function);
    size_t length = class_length(name);

    return frame->file == update->file && frame->line < update->line &&
           !strcmp(name + length + (length > 0), "__init__") && length == class_length(other) &&
           !strncmp(name, other, length);
}

static bool is_made_by_constructor(const struct search *search, uint32_t stack)
{
    for (; stack < search->kinds->stack_count; stack = search->symbols->stacks[stack].parent)
        for (size_t i = 0; i < search->update_count; i++)
            if (constructs(search, frame_of(search, stack), &search->updates[i]))
                return true;
    return false;
}

static bool is_updated_by(struct search *search, uint32_t stack)
{
    const struct mt_frame *frame = own_update(search, stack);

    return frame && update_of(search, frame);
}

static void settle(const struct search *search, uint32_t stack, enum mt_role role)
{
    search->sets->roles[stack] = (uint8_t)(1 + role);
}

/* What sorted[begin, end), the blocks of one stack and turn, have in common with the gradients. */
struct match {
    uint64_t units, paired_units; /* at most `each` blocks for each gradient */
    uint64_t late_units;          /* after as many kept blocks of setup as gradients */
    uint64_t repeated_units;      /* after as many as the stack makes, and with state */
    bool outlives;                /* all are made after backward, and live through a call */
};

/* Blocks for each gradient: a loop over the names of an optimizer's state makes more than one. */
static uint32_t each_of(struct search *search, size_t begin, size_t end)
{
    uint64_t units = 0, gradient_units = 0;

    for (size_t i = begin; i < end; i++) {
        uint64_t own = search->sorted[i]->units,
                 gradients = size_of(search, (uint32_t)own)->gradients;

        units += gradients ? own : 0;
        if (i == begin || search->sorted[i - 1]->units != own)
            gradient_units += gradients * own;
    }
    return units < gradient_units * 3 / 2 ? 1 : units < gradient_units * 5 / 2 ? 2 : 3;
}

static struct match match_of(struct search *search, size_t begin, size_t end)
{
    struct match match = {.outlives = true};
    uint32_t each = each_of(search, begin, end);

    for (size_t i = begin, next; i < end; i = next) {
        uint32_t units = search->sorted[i]->units;
        const struct size *size = size_of(search, units);

        for (next = i; next < end && search->sorted[next]->units == units; next++) {
            const struct mt_set_block *block = search->sorted[next];
            uint32_t rank = search->ranks[block - search->sets->blocks];

            match.units += units;
            match.paired_units += next - i < (size_t)each * size->gradients ? units : 0;
            match.late_units += size->gradients && rank >= size->gradients ? units : 0;
            match.outlives &= block->outlives_call && block->after_backward;
        }
        if (size->states >= next - i &&
            search->ranks[search->sorted[i] - search->sets->blocks] >= next - i)
            match.repeated_units += (next - i) * (uint64_t)units;
    }
    return match;
}

/* Sums of 2^20 numbers of 32 bits: products with 100 do not overflow. */
static bool is_most(uint64_t part, uint64_t whole)
{
    return whole && part * 100 >= whole * NEARLY_ALL_PERCENT;
}

static bool is_set(const struct search *search, const struct match *match, size_t blocks)
{
    return blocks >= MIN_BLOCKS && is_most(match->paired_units, match->units) &&
           match->units * 100 >= search->gradient_units * MIN_SHARE_PERCENT;
}

static size_t end_of_turn(const struct search *search, size_t begin)
{
    size_t end = begin;

    while (end < search->sorted_count &&
           search->sorted[end]->place == search->sorted[begin]->place &&
           search->sorted[end]->stack == search->sorted[begin]->stack &&
           search->sorted[end]->calls == search->sorted[begin]->calls)
        end++;
    return end;
}

/* Rules 1 and 2. */
static void judge_setup(struct search *search)
{
    for (size_t i = 0, next; i < search->sorted_count; i = next) {
        uint32_t stack = search->sorted[i]->stack;

        next = end_of_turn(search, i);
        if (search->sorted[i]->place != MT_SET_SETUP ||
            mt_stack_kind(search->kinds, stack) != MT_PHASE_UNKNOWN)
            continue;
        struct match match = match_of(search, i, next);
        if (!is_set(search, &match, next - i) || !is_most(match.late_units, match.units))
            continue;
        search->is_extra[stack] = 1;
        if (is_made_by_constructor(search, stack))
            settle(search, stack, MT_ROLE_OPTIMIZER_STATE);
    }
}

static struct heir_vote *vote_of(struct search *search, struct mt_map *index,
                                 const struct mt_set_block *heir)
{
    uint32_t at = mt_map_get(index, heir->stack);

    if (at == MT_MAP_NONE) {
        mt_grow_to(&search->votes, &search->vote_capacity, search->vote_count + 1,
                   sizeof *search->votes);
        at = (uint32_t)search->vote_count++;
        search->votes[at] = (struct heir_vote){.stack = heir->stack, .place = heir->place};
        mt_map_put(index, heir->stack, at);
    }
    return &search->votes[at];
}

/* The role of a block whose place another one takes; MT_ROLE_OTHER: unknown. */
static enum mt_role role_of_old(struct search *search, const struct mt_set_block *old,
                                const struct mt_set_block *heir)
{
    enum mt_role role;

    if (old->stack < search->kinds->stack_count &&
        mt_parameter_sets_role(search->sets, old->stack, &role))
        return role;
    if (old->place == MT_SET_OPTIMIZER)
        return MT_ROLE_OPTIMIZER_STATE;
    if (old->place != MT_SET_SETUP || !size_of(search, old->units)->gradients)
        return MT_ROLE_OTHER;
    if (old->stack >= search->kinds->stack_count || !search->is_extra[old->stack])
        return MT_ROLE_PARAMETERS;
    if (!is_updated_by(search, heir->stack)) /* without an optimizer, the loop may be one itself */
        return search->has_optimizer ? MT_ROLE_PARAMETERS : MT_ROLE_OTHER;
    settle(search, old->stack, MT_ROLE_OPTIMIZER_STATE);
    return MT_ROLE_OPTIMIZER_STATE;
}

/* The first blocks of a stack that makes heirs; NULL if `heir` is not one of those that replace
 * them. */
static const struct mt_set_block *first_of(const struct search *search,
                                           const struct mt_set_heir *heir,
                                           const struct mt_set_block **by)
{
    const struct mt_set_block *old = block_of(search->sets, heir->old);

    *by = block_of(search->sets, heir->heir);
    return old && *by && !(*by)->is_short && old->stack != heir->stack &&
                   heir->stack < search->kinds->stack_count
               ? old
               : NULL;
}

/* Rule 3. */
static void judge_heirs(struct search *search, void (*replaced)(void *, uint64_t), void *context)
{
    struct mt_parameter_sets *sets = search->sets;
    struct mt_map index = {0};
    const struct mt_set_block *by;

    for (size_t i = 0; i < sets->heir_count; i++) {
        const struct mt_set_block *old = first_of(search, &sets->heirs[i], &by);
        enum mt_role role =
            old && by->place != MT_SET_BACKWARD ? role_of_old(search, old, by) : MT_ROLE_OTHER;

        if (role == MT_ROLE_OTHER)
            continue;
        struct heir_vote *vote = vote_of(search, &index, by);
        vote->blocks++;
        vote->units += old->units;
        vote->state_units += role == MT_ROLE_OPTIMIZER_STATE ? old->units : 0;
        vote->paired_units += size_of(search, old->units)->gradients ? old->units : 0;
    }
    for (size_t i = 0; i < search->vote_count; i++) {
        const struct heir_vote *vote = &search->votes[i];
        bool is_whole = vote->blocks >= MIN_BLOCKS && is_most(vote->paired_units, vote->units) &&
                        vote->units >= search->gradient_units / 2;

        if (vote->place != MT_SET_OPTIMIZER && !is_whole)
            continue;
        if (is_most(vote->state_units, vote->units))
            settle(search, vote->stack, MT_ROLE_OPTIMIZER_STATE);
        else if (is_most(vote->units - vote->state_units, vote->units))
            settle(search, vote->stack, MT_ROLE_PARAMETERS);
    }
    for (size_t i = 0; i < sets->heir_count; i++) {
        const struct mt_set_block *old = first_of(search, &sets->heirs[i], &by);

        if (old && old->place == MT_SET_SETUP && sets->roles[by->stack])
            replaced(context, old->allocation);
    }
    mt_map_release(&index);
}

/* Whether a class makes the old block in its constructor, and the new one in a hook of backward. */
static bool is_replaced_by_hook(const struct search *search, const struct mt_set_block *old,
                                const struct mt_set_block *by)
{
    uint32_t stack = by->stack;

    if (by->place != MT_SET_BACKWARD || old->place != MT_SET_SETUP ||
        old->stack >= search->kinds->stack_count ||
        mt_stack_kind(search->kinds, old->stack) != MT_PHASE_UNKNOWN)
        return false;
    for (; stack < search->kinds->stack_count; stack = search->symbols->stacks[stack].parent) {
        const struct mt_frame *frame = frame_of(search, stack);
        const struct update update = {frame->function, frame->file, .line = frame->line};

        if (constructs(search, frame_of(search, old->stack), &update))
            return true;
    }
    return false;
}

/* Rule 6. */
static void judge_hooks(struct search *search)
{
    const struct mt_parameter_sets *sets = search->sets;
    uint64_t *units = mt_memory_zeroed(search->kinds->stack_count, sizeof *units);
    const struct mt_set_block *old, *by;

    for (size_t i = 0; i < sets->heir_count; i++)
        if ((old = first_of(search, &sets->heirs[i], &by)) && is_replaced_by_hook(search, old, by))
            units[old->stack] += old->units;
    for (size_t i = 0, next; i < search->sorted_count; i = next) {
        const uint32_t stack = search->sorted[i]->stack;
        uint64_t whole = 0;

        next = end_of_turn(search, i);
        for (size_t j = i; j < next; j++)
            whole += search->sorted[j]->units;
        if (search->sorted[i]->place == MT_SET_SETUP && next - i >= MIN_HOOKED_BLOCKS &&
            is_most(units[stack], whole))
            settle(search, stack, MT_ROLE_OPTIMIZER_STATE);
    }
    for (size_t i = 0; i < sets->heir_count; i++)
        if ((old = first_of(search, &sets->heirs[i], &by)) &&
            is_replaced_by_hook(search, old, by) &&
            sets->roles[old->stack] == 1 + MT_ROLE_OPTIMIZER_STATE && !sets->roles[by->stack])
            settle(search, by->stack, MT_ROLE_OPTIMIZER_STATE);
    free(units);
}

/* Whether the optimizer works before the next call of the model. */
static bool is_before_step(const struct mt_parameter_sets *sets, uint32_t calls)
{
    return sets->step_count &&
           bsearch(&calls, sets->step_calls, sets->step_count, sizeof calls, mt_ascending_u32);
}

/* The sets of a stack between the parts of steps. */
struct pauses {
    uint32_t sets;
    bool are_whole;       /* the stack keeps no other blocks, and all live through a call */
    bool are_before_step; /* some are made where the optimizer works before the next call */
};

/* Sets *next to the next stack. Another call may follow the last turn of a trace. */
static struct pauses pauses_of(struct search *search, size_t begin, size_t *next)
{
    const struct mt_set_block *first = search->sorted[begin];
    struct pauses pauses = {.are_whole = true};

    for (size_t at = *next = begin;
         at < search->sorted_count && search->sorted[at]->place == first->place &&
         search->sorted[at]->stack == first->stack;
         at = *next) {
        uint32_t calls = search->sorted[at]->calls;

        *next = end_of_turn(search, at);
        struct match match = match_of(search, at, *next);
        if (calls == search->sets->newest.calls)
            continue;
        pauses.sets++;
        pauses.are_whole &= is_set(search, &match, *next - at) && match.outlives;
        pauses.are_before_step |= is_before_step(search->sets, calls);
    }
    return pauses;
}

/* Rule 4. */
static void judge_pauses(struct search *search)
{
    const struct mt_parameter_sets *sets = search->sets;

    for (size_t i = 0, next; i < search->sorted_count; i = next) {
        const struct mt_set_block *first = search->sorted[i];
        struct pauses pauses = pauses_of(search, i, &next);

        if (first->place != MT_SET_PAUSE || !pauses.are_whole || sets->roles[first->stack])
            continue;
        if (pauses.sets > 1 && sets->step_count && !pauses.are_before_step)
            settle(search, first->stack, MT_ROLE_PARAMETERS);
        else if (pauses.sets == 1 && sets->newest.calls > first->calls + 1 &&
                 is_updated_by(search, first->stack))
            settle(search, first->stack, MT_ROLE_OPTIMIZER_STATE);
    }
}

/* Rule 5. */
static void judge_flat_gradients(struct search *search)
{
    uint32_t found = MT_NO_ID;
    size_t count = 0;

    if (search->gradient_units * 100 >= search->state_units)
        return;
    for (uint32_t i = 0; i < search->kinds->stack_count; i++)
        if (search->kinds->stacks[i] & MT_STACK_BUCKETS)
            return;
    for (size_t i = 0, next; i < search->sorted_count; i = next) {
        next = end_of_turn(search, i);
        if (search->sorted[i]->place != MT_SET_SETUP ||
            mt_stack_kind(search->kinds, search->sorted[i]->stack) != MT_PHASE_UNKNOWN)
            continue;
        struct match match = match_of(search, i, next);
        if (match.units * 100 < search->state_units * MIN_SHARE_PERCENT ||
            !is_most(match.repeated_units, match.units))
            continue;
        found = search->sorted[i]->stack;
        count++;
    }
    if (count == 1)
        settle(search, found, MT_ROLE_GRADIENTS);
}

/* Blocks that never ended live through the calls after them. */
static void finish_lives(struct mt_parameter_sets *sets)
{
    for (size_t i = 0; i < sets->count; i++)
        if (!sets->blocks[i].has_ended)
            sets->blocks[i].outlives_call = sets->newest.calls > sets->blocks[i].calls;
}

void mt_parameter_sets_infer(struct mt_parameter_sets *sets, const struct mt_symbols *symbols,
                             const struct mt_stack_kinds *kinds,
                             void (*replaced)(void *context, uint64_t allocation), void *context)
{
    struct search search = {.sets = sets, .symbols = symbols, .kinds = kinds};

    if (!sets->count || !kinds->stack_count)
        return;
    finish_lives(sets);
    mt_grow_to(&sets->roles, &sets->role_capacity, kinds->stack_count, sizeof *sets->roles);
    memset(sets->roles, 0, sets->role_capacity);
    search.ranks = mt_memory_zeroed(sets->count, sizeof *search.ranks);
    search.sorted = mt_memory_zeroed(sets->count, sizeof *search.sorted);
    search.frames = mt_memory_zeroed(kinds->frame_count, sizeof *search.frames);
    search.own_updates = mt_memory_zeroed(kinds->stack_count, sizeof *search.own_updates);
    search.is_extra = mt_memory_zeroed(kinds->stack_count, sizeof *search.is_extra);
    count_gradients(&search);
    sort_blocks(&search);
    judge_frames(&search);
    find_own_updates(&search);
    find_updates(&search);
    if (search.gradient_units) {
        judge_setup(&search);
        judge_hooks(&search);
        judge_heirs(&search, replaced, context);
        judge_pauses(&search);
    }
    judge_flat_gradients(&search);
    mt_map_release(&search.size_index);
    free(search.sizes);
    free(search.ranks);
    free(search.sorted);
    free(search.frames);
    free(search.own_updates);
    free(search.is_extra);
    free(search.votes);
}
