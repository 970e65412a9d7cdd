/* Roles of blocks that were alive when the trace began: the first blocks, the evidence in them, and
 * the rules of early_blocks.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "early_blocks.h"
#include "grow.h"
#include "process_memory.h"
#include "role.h"
#include "util.h"
#include "work_kinds.h"

#define MT_EARLY_LIVES UINT32_MAX

/* Later allocations are not evidence: the first turns of a program suffice. */
#define MT_EARLY_BLOCKS_MAX (1u << 20)

/* No device has this much. Eight times the sum over MT_EARLY_BLOCKS_MAX blocks does not
 * overflow. */
#define MAX_BLOCK_BYTES ((uint64_t)1 << 40)

_Static_assert(MAX_BLOCK_BYTES <= UINT64_MAX / 8 / MT_EARLY_BLOCKS_MAX, "sums of sizes wrap");

void mt_early_blocks_release(struct mt_early_blocks *early)
{
    free(early->blocks);
    memset(early, 0, sizeof *early);
}

/* Frees outside of ranges have no evidence of their own: those before the first allocation belong
 * to its part. */
static void begin(struct mt_early_blocks *early, uint8_t kind, bool named)
{
    early->first_kind = kind;
    early->first_is_named = named;
    for (size_t i = 0; i < early->count; i++)
        if (early->blocks[i].ended != MT_EARLY_LIVES)
            early->blocks[i].end_kind = kind;
}

static void pass(struct mt_early_blocks *early, uint8_t kind, bool named)
{
    uint32_t clock = (uint32_t)early->count;

    if (!early->begun)
        begin(early, kind, named);
    else if (kind != early->first_kind && !early->first_part_end)
        early->first_part_end = clock;
    if (kind == MT_PHASE_BACKWARD && (!early->begun || early->last_kind != kind))
        early->turns++;
    early->begun = true;
    early->last_kind = kind;
    if (mt_early_is_part(kind)) {
        early->last_part_end = clock;
        early->saw_part = true;
    }
}

void mt_early_blocks_birth(struct mt_early_blocks *early, uint64_t allocation,
                           const struct mt_early_block *block)
{
    if ((!block->initial && !early->initial_count) || allocation >= MT_EARLY_BLOCKS_MAX)
        return;
    mt_grow_to(&early->blocks, &early->capacity, allocation + 1, sizeof *early->blocks);
    memset(early->blocks + early->count, 0,
           (allocation + 1 - early->count) * sizeof *early->blocks);
    early->blocks[allocation] = *block;
    early->blocks[allocation].bytes = mt_round_up(mt_min_u64(block->bytes, MAX_BLOCK_BYTES), 512);
    early->blocks[allocation].ended = MT_EARLY_LIVES;
    early->blocks[allocation].role = MT_ROLE_OTHER;
    early->count = allocation + 1;
    if (block->initial)
        early->initial_count = early->count;
    else
        pass(early, block->birth_kind, block->in_named_part);
}

void mt_early_blocks_end(struct mt_early_blocks *early, uint64_t allocation,
                         const struct mt_early_block *end)
{
    struct mt_early_block *block;

    if (allocation >= early->count)
        return;
    if (early->begun || end->end_kind != MT_PHASE_UNKNOWN)
        pass(early, end->end_kind, end->in_named_part);
    block = &early->blocks[allocation];
    block->ended = (uint32_t)early->count;
    block->end_turn = early->turns;
    block->end_kind = end->end_kind;
    block->died_in_part = end->died_in_part;
    block->left_behind = end->left_behind;
    block->role = end->role;
}

/* Two may share one graph, like those of a generator and its critic. */
#define TURNS_OF_WHAT_STAYS 3

/* Blocks of the state that the optimizer makes and frees, one for one: the last may remain. */
#define MAX_APART 20

/* Returns true if an initial block exists as long as the model works. */
static bool early_stays(const struct mt_early_blocks *early, const struct mt_early_block *block)
{
    if (block->ended == MT_EARLY_LIVES)
        return true;
    if (block->end_kind == MT_PHASE_ZERO_GRAD)
        return false;
    return block->end_turn >= TURNS_OF_WHAT_STAYS ||
           (block->ended >= early->last_part_end && !mt_early_is_part(block->end_kind));
}

static int by_size(const void *a, const void *b)
{
    const struct mt_early_block *x = *(const struct mt_early_block *const *)a;
    const struct mt_early_block *y = *(const struct mt_early_block *const *)b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static uint32_t birth_of(const struct mt_early_evidence *evidence,
                         const struct mt_early_block *block)
{
    return block->initial ? 0 : (uint32_t)(block - evidence->early->blocks);
}

/* Maximum number of the members in `chosen` that live at the same time. Members are sorted by
 * allocation. */
static uint32_t most_at_once(const struct mt_early_evidence *evidence,
                             const struct mt_early_sizes *sizes,
                             bool (*chosen)(const struct mt_early_block *))
{
    uint32_t count = 0, gone = 0, alive = 0, most = 0;

    for (size_t i = 0; i < sizes->count; i++)
        if (chosen(sizes->members[i]))
            evidence->ends[count++] = sizes->members[i]->ended;
    qsort(evidence->ends, count, sizeof *evidence->ends, by_value);
    for (size_t i = 0; i < sizes->count; i++) {
        if (!chosen(sizes->members[i]))
            continue;
        alive++;
        while (gone < count && evidence->ends[gone] <= birth_of(evidence, sizes->members[i]))
            gone++;
        most = alive - gone > most ? alive - gone : most;
    }
    return most;
}

static bool ends_cleared(const struct mt_early_block *block)
{
    return block->ended != MT_EARLY_LIVES && block->end_kind == MT_PHASE_ZERO_GRAD;
}

static bool is_gradient(const struct mt_early_block *block)
{
    if (block->initial)
        return ends_cleared(block);
    if (mt_is_workspace(block->bytes) && block->ended == MT_EARLY_LIVES)
        return false;
    return block->birth_kind == MT_PHASE_BACKWARD && !block->died_in_part;
}

/* Returns true if the end of the block is evidence for other blocks with the same kind of end. */
static bool early_is_witness(const struct mt_early_block *block)
{
    return !block->initial && block->ended != MT_EARLY_LIVES && !block->died_in_part;
}

static bool is_call(uint8_t kind)
{
    return kind == MT_PHASE_FORWARD || kind == MT_PHASE_LOSS;
}

/* Returns true if the trace begins in a call of the model after which no other part follows: the
 * call failed, or the trace ends in it. */
static bool early_is_one_call(const struct mt_early_blocks *early)
{
    return is_call(early->first_kind) && !early->first_is_named && !early->turns &&
           (!early->first_part_end || early->first_part_end >= early->last_part_end);
}

static bool is_kept(const struct mt_early_block *block)
{
    return !block->initial && is_call(block->birth_kind) && !block->died_in_part;
}

static bool is_left_behind(const struct mt_early_block *block)
{
    return is_kept(block) && (block->left_behind || block->ended == MT_EARLY_LIVES);
}

/* Whether the optimizer frees it. */
static bool ends_in_optimizer(const struct mt_early_block *block)
{
    return block->initial && block->ended != MT_EARLY_LIVES &&
           block->end_kind == MT_PHASE_OPTIMIZER;
}

/* Only the end exists of the part of backward in which the trace began. */
static bool is_of_whole_backward(const struct mt_early_blocks *early,
                                 const struct mt_early_block *block)
{
    bool in_first = early->first_kind == MT_PHASE_BACKWARD &&
                    (!early->first_part_end || block - early->blocks < early->first_part_end);

    return !block->initial && block->birth_kind == MT_PHASE_BACKWARD && !in_first;
}

/* These include gradients that are added to existing ones. */
static bool is_passed_by_backward(const struct mt_early_blocks *early,
                                  const struct mt_early_block *block)
{
    return block->died_in_part && is_of_whole_backward(early, block);
}

/* Work on one parameter, such as the root of Adam's second moment. */
static bool is_passed_by_optimizer(const struct mt_early_block *block)
{
    return !block->initial && block->birth_kind == MT_PHASE_OPTIMIZER && block->died_in_part;
}

static bool is_left_by_optimizer(const struct mt_early_block *block)
{
    return !block->initial && block->birth_kind == MT_PHASE_OPTIMIZER && !block->died_in_part;
}

/* Returns true if rules about sizes may decide the role of the block: no stack identifies it, and
 * it is not a block that a model's call left behind. */
static bool early_is_open(const struct mt_early_block *block)
{
    return block->role == MT_ROLE_OTHER && block->stack_kind != MT_PHASE_FORWARD &&
           block->stack_kind != MT_PHASE_LOSS;
}

/* `m = beta * m + ...`: each new block of the state replaces an old one. */
static void count_replaced(const struct mt_early_evidence *evidence, struct mt_early_sizes *sizes)
{
    uint32_t last = 0;

    for (size_t i = 0; i < sizes->count; i++)
        if (ends_in_optimizer(sizes->members[i])) {
            sizes->replaced++;
            last = sizes->members[i]->ended > last ? sizes->members[i]->ended : last;
        }
    for (size_t i = 0; i < sizes->count; i++)
        sizes->replacements +=
            is_left_by_optimizer(sizes->members[i]) && birth_of(evidence, sizes->members[i]) < last;
}

/* Returns true if the optimizer replaces blocks of this size one for one. The block that it makes
 * when it frees the last one is not counted. In contrast, an optimizer that makes its state and
 * frees the gradients leaves more blocks than it frees. */
static bool early_are_replaced(const struct mt_early_sizes *sizes)
{
    uint32_t more = sizes->replacements > sizes->replaced ? sizes->replacements - sizes->replaced
                                                          : sizes->replaced - sizes->replacements;

    return sizes->replaced > 1 && more <= 1 + sizes->replaced / MAX_APART;
}

static void weigh(const struct mt_early_evidence *evidence, struct mt_early_sizes *sizes)
{
    for (size_t i = 0; i < sizes->count; i++) {
        const struct mt_early_block *block = sizes->members[i];

        sizes->left_behind += is_left_behind(block);
        sizes->kept += is_kept(block);
        sizes->born_late += is_gradient(block) && is_of_whole_backward(evidence->early, block);
        sizes->passed += is_passed_by_backward(evidence->early, block);
        sizes->updated += is_passed_by_optimizer(block);
        sizes->clears_gradients |= is_gradient(block) && ends_cleared(block);
        if (!block->initial || !early_stays(evidence->early, block))
            continue;
        sizes->stay += early_is_open(block);
        sizes->end_late += early_is_open(block) && block->ended != MT_EARLY_LIVES;
        sizes->by_calls += block->role == MT_ROLE_OTHER && !early_is_open(block);
        sizes->parameters += block->role == MT_ROLE_PARAMETERS;
        sizes->states += block->role == MT_ROLE_OPTIMIZER_STATE;
    }
    sizes->gradients = most_at_once(evidence, sizes, is_gradient);
    count_replaced(evidence, sizes);
}

static bool is_evidence(const struct mt_early_blocks *early, const struct mt_early_block *block)
{
    return block->initial || is_gradient(block) || is_left_behind(block) ||
           early_is_witness(block) || is_left_by_optimizer(block) ||
           is_passed_by_backward(early, block) || is_passed_by_optimizer(block);
}

static void early_ends_add(struct mt_early_ends *ends, const struct mt_early_block *block)
{
    ends->bytes[block->role] += block->bytes;
}

/* Gathers the evidence. O(n log n). Zeroed memory with `early` set is ready; release it even after
 * an error. */
static void early_evidence_gather(struct mt_early_evidence *evidence)
{
    const struct mt_early_blocks *early = evidence->early;

    evidence->sorted = mt_memory_zeroed(early->count + 1, sizeof *evidence->sorted);
    evidence->sizes = mt_memory_zeroed(early->count + 1, sizeof *evidence->sizes);
    evidence->ends = mt_memory_zeroed(early->count + 1, sizeof *evidence->ends);
    for (size_t i = 0; i < early->count; i++) {
        const struct mt_early_block *block = &early->blocks[i];

        if (block->bytes && is_evidence(early, block))
            evidence->sorted[evidence->sorted_count++] = block;
    }
    qsort(evidence->sorted, evidence->sorted_count, sizeof *evidence->sorted, by_size);
    for (size_t i = 0; i < evidence->sorted_count; i++) {
        const struct mt_early_block **at = &evidence->sorted[i];
        struct mt_early_sizes *sizes = &evidence->sizes[evidence->size_count];

        if (!i || at[-1]->device != at[0]->device || at[-1]->bytes != at[0]->bytes) {
            sizes->members = at;
            sizes->bytes = at[0]->bytes;
            evidence->size_count++;
        } else {
            sizes--;
        }
        sizes->count++;
    }
    for (size_t i = 0; i < evidence->size_count; i++) {
        struct mt_early_sizes *sizes = &evidence->sizes[i];

        weigh(evidence, sizes);
        if (!sizes->stay && !sizes->parameters)
            sizes->gradients = 0; /* no parameters: other results of backward */
        evidence->gradient_bytes += sizes->gradients * sizes->bytes;
        evidence->cleared_bytes += sizes->clears_gradients ? sizes->gradients * sizes->bytes : 0;
        evidence->stay_bytes += sizes->stay * sizes->bytes;
        evidence->replaced_bytes += early_are_replaced(sizes) ? sizes->replaced * sizes->bytes : 0;
    }
    for (size_t i = 0; i < early->count; i++)
        if (early_is_witness(&early->blocks[i]))
            early_ends_add(&evidence->by_kind[early->blocks[i].end_kind], &early->blocks[i]);
}

uint32_t mt_early_beyond_parameters(const struct mt_early_sizes *sizes)
{
    uint32_t parameters =
        sizes->gradients > sizes->parameters ? sizes->gradients - sizes->parameters : 0;

    return sizes->stay > parameters ? sizes->stay - parameters : 0;
}

struct mt_early_sizes *mt_early_sizes_of(const struct mt_early_evidence *evidence,
                                         const struct mt_early_sizes *like, uint64_t bytes)
{
    for (size_t low = 0, high = evidence->size_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        struct mt_early_sizes *sizes = &evidence->sizes[middle];
        uint16_t device = sizes->members[0]->device, wanted = like->members[0]->device;

        if (device == wanted && sizes->bytes == bytes)
            return sizes;
        if (device < wanted || (device == wanted && sizes->bytes < bytes))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool mt_early_are_workspaces(const struct mt_early_sizes *sizes)
{
    return mt_is_workspace(sizes->bytes) && sizes->stay <= MT_WORKSPACES_MAX;
}

static void early_evidence_release(struct mt_early_evidence *evidence)
{
    free(evidence->ends);
    free(evidence->sizes);
    free(evidence->sorted);
    memset(evidence, 0, sizeof *evidence);
}

static uint32_t less(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

enum mt_role mt_initial_role_by_stack(enum mt_phase_kind kind, bool kept)
{
    switch (kind) {
    case MT_PHASE_OPTIMIZER: return kept ? MT_ROLE_OPTIMIZER_STATE : MT_ROLE_TEMPORARIES;
    case MT_PHASE_SETUP: return MT_ROLE_PARAMETERS;
    case MT_PHASE_BACKWARD: return MT_ROLE_GRADIENTS;
    case MT_PHASE_FORWARD:
    case MT_PHASE_LOSS: return kept ? MT_ROLE_OTHER : MT_ROLE_ACTIVATIONS;
    default: return MT_ROLE_OTHER;
    }
}

static enum mt_role most_of(const struct mt_early_ends *ends)
{
    int most = MT_ROLE_OTHER;

    for (int role = 0; role < MT_ROLE_COUNT; role++)
        if (ends->bytes[role] > ends->bytes[most])
            most = role;
    return (enum mt_role)most;
}

/* The role of other blocks of the size with that end, otherwise of most bytes with that end. */
static enum mt_role find_role_of_end(const struct mt_early_evidence *evidence,
                                     const struct mt_early_sizes *sizes, uint8_t kind)
{
    struct mt_early_ends alike = {{0}};
    bool any = false;

    for (size_t i = 0; i < sizes->count; i++) {
        const struct mt_early_block *block = sizes->members[i];

        if (!early_is_witness(block) || block->end_kind != kind)
            continue;
        early_ends_add(&alike, block);
        any = true;
    }
    return most_of(any ? &alike : &evidence->by_kind[kind]);
}

/* Once for each size and kind. */
static enum mt_role role_of_end(struct mt_early_evidence *evidence,
                                const struct mt_early_sizes *sizes, uint8_t kind)
{
    uint8_t *known = &evidence->end_roles[kind & MT_STACK_KIND_MASK];

    if (evidence->end_sizes != sizes)
        memset(evidence->end_roles, 0, sizeof evidence->end_roles);
    evidence->end_sizes = sizes;
    if (!*known)
        *known = (uint8_t)(1 + find_role_of_end(evidence, sizes, kind));
    return (enum mt_role)(*known - 1);
}

static enum mt_role role_of_freed(struct mt_early_evidence *evidence,
                                  const struct mt_early_block *block,
                                  const struct mt_early_sizes *sizes)
{
    const struct mt_early_blocks *early = evidence->early;
    bool in_first = block->end_kind == early->first_kind &&
                    (!early->first_part_end || block->ended <= early->first_part_end);
    enum mt_role role;

    if (block->end_kind == MT_PHASE_ZERO_GRAD)
        return MT_ROLE_GRADIENTS;
    if (block->end_kind == MT_PHASE_OPTIMIZER && early_are_replaced(sizes))
        return MT_ROLE_OPTIMIZER_STATE;
    if (block->end_kind == MT_PHASE_BACKWARD && in_first)
        return MT_ROLE_ACTIVATIONS;
    if (mt_early_is_part(block->end_kind) && in_first)
        return MT_ROLE_TEMPORARIES;
    role = role_of_end(evidence, sizes, block->end_kind);
    if (role != MT_ROLE_OTHER)
        return role;
    if (sizes->gradients)
        return MT_ROLE_GRADIENTS;
    if (mt_early_is_part(block->end_kind))
        return MT_ROLE_ACTIVATIONS;
    return block->end_kind == MT_PHASE_DATA ? MT_ROLE_INPUTS : MT_ROLE_OTHER;
}

static uint32_t take(uint32_t *left, uint32_t most)
{
    uint32_t taken = less(*left, most);

    *left -= taken;
    return taken;
}

/* How the blocks of a size that stay divide into roles, in order of their addresses. */
struct shares {
    uint32_t parameters, gradients, states, workspaces, activations;
};

/* Rule 6: of the blocks per parameter one is the parameter, and one may be its gradient, allocated
 * before or in the trace. */
static struct shares shares_of_each(const struct mt_early_evidence *evidence,
                                    const struct mt_early_sizes *sizes)
{
    const struct mt_early_blocks *early = evidence->early;
    uint32_t each = evidence->each;
    uint32_t sets = evidence->updates ? mt_early_pairs(evidence, sizes)
                                      : (sizes->stay + sizes->gradients) / each;
    bool has_gradients =
        early->turns || early->first_kind == MT_PHASE_OPTIMIZER || each == MT_EARLY_MAX_EACH;
    uint32_t left = sizes->stay;
    struct shares shares = {0, 0, 0, 0, 0};

    shares.parameters = take(&left, sets);
    if (has_gradients && sets > sizes->gradients)
        shares.gradients = take(&left, sets - sizes->gradients);
    shares.states = left;
    return shares;
}

static struct shares shares_of(const struct mt_early_evidence *evidence,
                               const struct mt_early_sizes *sizes)
{
    const struct mt_early_sizes *half =
        sizes->bytes % 1024 == 0 ? mt_early_sizes_of(evidence, sizes, sizes->bytes / 2) : NULL;
    uint32_t left = sizes->stay, known = sizes->parameters;
    uint32_t states = evidence->states * sizes->gradients, third = 0;
    struct shares shares = {0, 0, 0, 0, 0};

    if (evidence->each && !mt_early_are_workspaces(sizes) &&
        (evidence->updates ? mt_early_pairs(evidence, sizes) > 0
                           : (left + sizes->gradients) % evidence->each == 0))
        return shares_of_each(evidence, sizes);
    states += half ? evidence->wide_states * half->gradients : 0;
    states -= less(states, sizes->states);
    if (evidence->third_is_open)
        third = less(states, sizes->gradients);
    if (known)
        shares.gradients = take(&left, known > sizes->gradients ? known - sizes->gradients : 0);
    else
        shares.parameters = take(&left, sizes->gradients);
    shares.states = take(&left, states - third);
    (void)take(&left, third); /* state or a copy of the model */
    if (evidence->in_pieces && !sizes->gradients && mt_early_left_over(evidence, sizes) &&
        left % evidence->states == 0)
        shares.states += take(&left, left);
    if (evidence->in_buckets && mt_early_left_over(evidence, sizes))
        shares.gradients += take(&left, left);
    if (mt_is_workspace(sizes->bytes) && left <= MT_WORKSPACES_MAX)
        shares.workspaces = take(&left, left);
    if (sizes->left_behind >= MT_EARLY_MIN_LEFT_BEHIND ||
        (early_is_one_call(evidence->early) && sizes->kept >= MT_EARLY_MIN_LEFT_BEHIND))
        shares.activations = take(&left, left);
    if ((evidence->each || evidence->states) && mt_early_began_in_last_turn(evidence->early))
        shares.activations += take(&left, sizes->end_late);
    shares.parameters += left;
    return shares;
}

static enum mt_role next_of(struct shares *shares)
{
    if (take(&shares->parameters, 1))
        return MT_ROLE_PARAMETERS;
    if (take(&shares->states, 1))
        return MT_ROLE_OPTIMIZER_STATE;
    if (take(&shares->gradients, 1))
        return MT_ROLE_GRADIENTS;
    if (take(&shares->workspaces, 1))
        return MT_ROLE_WORKSPACE;
    return take(&shares->activations, 1) ? MT_ROLE_ACTIVATIONS : MT_ROLE_OTHER;
}

static void share_out(struct mt_early_evidence *evidence, const struct mt_early_sizes *sizes)
{
    struct shares shares = shares_of(evidence, sizes);

    for (size_t i = 0; i < sizes->count; i++) {
        struct mt_early_block *block =
            &evidence->early->blocks[sizes->members[i] - evidence->early->blocks];

        if (!block->initial || block->role != MT_ROLE_OTHER)
            continue;
        if (!early_stays(evidence->early, block))
            block->role = (uint8_t)role_of_freed(evidence, block, sizes);
        else if (early_is_open(block))
            block->role = (uint8_t)next_of(&shares);
        else if ((mt_is_workspace(block->bytes) || block->bytes == MT_LT_WORKSPACE_BYTES) &&
                 sizes->by_calls <= MT_WORKSPACES_MAX)
            block->role = MT_ROLE_WORKSPACE;
        else if (evidence->early->turns)
            block->role = MT_ROLE_ACTIVATIONS;
    }
}

void mt_initial_roles_infer(struct mt_early_blocks *early)
{
    struct mt_early_evidence evidence = {.early = early};

    for (size_t i = 0; i < early->initial_count; i++)
        if (early->blocks[i].initial)
            early->blocks[i].role =
                (uint8_t)mt_initial_role_by_stack((enum mt_phase_kind)early->blocks[i].stack_kind,
                                                  early->blocks[i].ended == MT_EARLY_LIVES);
    if (early->initial_count)
        early_evidence_gather(&evidence);
    if (early->initial_count)
        mt_early_counts_infer(&evidence);
    for (size_t i = 0; early->saw_part && i < evidence.size_count; i++)
        share_out(&evidence, &evidence.sizes[i]);
    early_evidence_release(&evidence);
}
