#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "early_roles.h"
#include "grow.h"
#include "holding.h"
#include "util.h"
#include "work_kinds.h"

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
    if (allocation >= early->count)
        return;
    if (early->begun || end->end_kind != MT_PHASE_UNKNOWN)
        pass(early, end->end_kind, end->in_named_part);
    struct mt_early_block *block = &early->blocks[allocation];
    block->ended = (uint32_t)early->count;
    block->end_turn = early->turns;
    block->end_kind = end->end_kind;
    block->died_in_part = end->died_in_part;
    block->left_behind = end->left_behind;
    block->role = end->role;
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

        if (!mt_early_is_witness(block) || block->end_kind != kind)
            continue;
        mt_early_ends_add(&alike, block);
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

    if (block->end_kind == MT_PHASE_ZERO_GRAD)
        return MT_ROLE_GRADIENTS;
    if (block->end_kind == MT_PHASE_OPTIMIZER && mt_early_are_replaced(sizes))
        return MT_ROLE_OPTIMIZER_STATE;
    if (block->end_kind == MT_PHASE_BACKWARD && in_first)
        return MT_ROLE_ACTIVATIONS;
    if (mt_early_is_part(block->end_kind) && in_first) /* or the graph of the call before */
        return block->ended == early->count && sizes->kept ? MT_ROLE_ACTIVATIONS
                                                           : MT_ROLE_TEMPORARIES;
    enum mt_role role = role_of_end(evidence, sizes, block->end_kind);
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
        (mt_early_is_one_call(evidence->early) && sizes->kept >= MT_EARLY_MIN_LEFT_BEHIND))
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
        if (!mt_early_stays(evidence->early, block))
            block->role = (uint8_t)role_of_freed(evidence, block, sizes);
        else if (mt_early_is_open(block))
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
        mt_early_evidence_gather(&evidence);
    if (early->initial_count)
        mt_early_counts_infer(&evidence);
    for (size_t i = 0; early->saw_part && i < evidence.size_count; i++)
        share_out(&evidence, &evidence.sizes[i]);
    mt_early_evidence_release(&evidence);
}
