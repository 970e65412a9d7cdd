#include "initial_roles.h"

#include "stack_kinds.h"
#include "util.h"
#include "workspaces.h"

#include <stdlib.h>
#include <string.h>

static uint32_t less(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Two may share one graph, as those of a generator and its critic. */
#define TURNS_OF_WHAT_STAYS 3

/* Of the blocks that an optimizer with m of them for each parameter needs. */
#define NEARLY_ALL_PERCENT 90
#define MOST_PERCENT       50
#define MAX_STATE_BLOCKS   3

/* Counts of blocks: embeddings, which are there once, may be no more than a hundredth. */
#define NEARLY_ALL_COUNTS_PERMILLE 995

/* Fewer sizes may have such counts by accident: a model of equal layers. */
#define MIN_DIFFERENT_SIZES 3

/* Blocks for each parameter: itself, its gradient, two of Adam's state. */
#define MAX_EACH 4

/* Blocks of the state that the optimizer makes and frees, one for one: the last may be left. */
#define MAX_APART 20

/* A leak shows if a turn more leaves a block more. */
#define MIN_LEFT_BEHIND 2

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

/* Blocks of one size on one device. */
struct sizes {
    const struct mt_early_block **members; /* by birth */
    size_t count;
    uint64_t bytes;
    uint32_t gradients;          /* most at once */
    bool clears_gradients;       /* some are freed where gradients are cleared */
    uint32_t stay;               /* initial ones that do, and whose role is not known */
    uint32_t end_late;           /* ... and end when the model's work has */
    uint32_t parameters, states; /* ... and whose role is: by their stacks */
    uint32_t by_calls;           /* initial ones, made by the model's calls, says the stack */
    uint32_t left_behind;        /* by the model's calls in this trace */
    uint32_t passed;             /* made and freed by backward */
    uint32_t replaced;           /* initial ones that the optimizer freed, */
    uint32_t replacements;       /* and blocks that it left behind until then */
};

/* Bytes of blocks whose birth was seen, by role, that ended in a part they were not born in. */
struct ends {
    uint64_t bytes[MT_ROLE_COUNT];
};

struct inference {
    struct mt_early_blocks *early;
    const struct mt_early_block **sorted;
    size_t sorted_count;
    struct sizes *sizes;
    size_t size_count;
    uint32_t *ends;                            /* room for all members of one size */
    const struct sizes *end_sizes;             /* the last one that role_of_end was asked for, */
    uint8_t end_roles[MT_STACK_KIND_MASK + 1]; /* and its answers by kind: 1 + role; 0 = none */
    struct ends by_kind[MT_PHASE_OPTIMIZER + 1];
    uint64_t gradient_bytes, stay_bytes, replaced_bytes;
    uint64_t cleared_bytes; /* of gradients, of sizes that are freed where they are cleared */
    uint32_t each;          /* rule 6: blocks for each parameter; 0 = it does not apply */
    bool in_pieces;         /* sizes without gradients are state in pieces */
    bool in_buckets;        /* ... or buckets */
    uint32_t states;        /* blocks that the optimizer keeps for a parameter */
    uint32_t wide_states;   /* the same, of twice the size */
};

static bool stays(const struct mt_early_blocks *early, const struct mt_early_block *block)
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

static uint32_t birth_of(const struct inference *inference, const struct mt_early_block *block)
{
    return block->initial ? 0 : (uint32_t)(block - inference->early->blocks);
}

/* How many of the members that `chosen` names live at once, at most. Members come by birth. */
static uint32_t most_at_once(const struct inference *inference, const struct sizes *sizes,
                             bool (*chosen)(const struct mt_early_block *))
{
    uint32_t count = 0, gone = 0, alive = 0, most = 0;

    for (size_t i = 0; i < sizes->count; i++)
        if (chosen(sizes->members[i]))
            inference->ends[count++] = sizes->members[i]->ended;
    qsort(inference->ends, count, sizeof *inference->ends, by_value);
    for (size_t i = 0; i < sizes->count; i++) {
        if (!chosen(sizes->members[i]))
            continue;
        alive++;
        while (gone < count && inference->ends[gone] <= birth_of(inference, sizes->members[i]))
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

/* Its end says what others that end like it are. */
static bool is_witness(const struct mt_early_block *block)
{
    return !block->initial && block->ended != MT_EARLY_LIVES && !block->died_in_part;
}

static bool is_left_behind(const struct mt_early_block *block)
{
    bool by_call = block->birth_kind == MT_PHASE_FORWARD || block->birth_kind == MT_PHASE_LOSS;

    return !block->initial && by_call && (block->left_behind || block->ended == MT_EARLY_LIVES);
}

/* The optimizer frees it. */
static bool ends_in_optimizer(const struct mt_early_block *block)
{
    return block->initial && block->ended != MT_EARLY_LIVES &&
           block->end_kind == MT_PHASE_OPTIMIZER;
}

/* Among them are gradients that are added to those that are there. */
static bool is_passed_by_backward(const struct mt_early_block *block)
{
    return !block->initial && block->birth_kind == MT_PHASE_BACKWARD && block->died_in_part;
}

static bool is_left_by_optimizer(const struct mt_early_block *block)
{
    return !block->initial && block->birth_kind == MT_PHASE_OPTIMIZER && !block->died_in_part;
}

/* What a model's call left behind is nothing that a rule of sizes knows. */
static bool is_open(const struct mt_early_block *block)
{
    return block->role == MT_ROLE_OTHER && block->stack_kind != MT_PHASE_FORWARD &&
           block->stack_kind != MT_PHASE_LOSS;
}

/* `m = beta * m + ...`: each new block of the state takes the place of an old one. */
static void count_replaced(const struct inference *inference, struct sizes *sizes)
{
    uint32_t last = 0;

    for (size_t i = 0; i < sizes->count; i++)
        if (ends_in_optimizer(sizes->members[i])) {
            sizes->replaced++;
            last = sizes->members[i]->ended > last ? sizes->members[i]->ended : last;
        }
    for (size_t i = 0; i < sizes->count; i++)
        sizes->replacements += is_left_by_optimizer(sizes->members[i]) &&
                               birth_of(inference, sizes->members[i]) < last;
}

/* One for one, except the one that is made when the last is freed. An optimizer that makes its
 * state and frees the gradients leaves more behind than it frees. */
static bool are_replaced(const struct sizes *sizes)
{
    uint32_t more = sizes->replacements > sizes->replaced ? sizes->replacements - sizes->replaced
                                                          : sizes->replaced - sizes->replacements;

    return sizes->replaced > 1 && more <= 1 + sizes->replaced / MAX_APART;
}

static void weigh(const struct inference *inference, struct sizes *sizes)
{
    for (size_t i = 0; i < sizes->count; i++) {
        const struct mt_early_block *block = sizes->members[i];

        sizes->left_behind += is_left_behind(block);
        sizes->passed += is_passed_by_backward(block);
        sizes->clears_gradients |= is_gradient(block) && ends_cleared(block);
        if (!block->initial || !stays(inference->early, block))
            continue;
        sizes->stay += is_open(block);
        sizes->end_late += is_open(block) && block->ended != MT_EARLY_LIVES;
        sizes->by_calls += block->role == MT_ROLE_OTHER && !is_open(block);
        sizes->parameters += block->role == MT_ROLE_PARAMETERS;
        sizes->states += block->role == MT_ROLE_OPTIMIZER_STATE;
    }
    sizes->gradients = most_at_once(inference, sizes, is_gradient);
    count_replaced(inference, sizes);
}

static bool is_evidence(const struct mt_early_block *block)
{
    return block->initial || is_gradient(block) || is_left_behind(block) || is_witness(block) ||
           is_left_by_optimizer(block) || is_passed_by_backward(block);
}

static void witness(struct ends *ends, const struct mt_early_block *block)
{
    ends->bytes[block->role] += block->bytes;
}

static enum mt_status sort_by_size(struct inference *inference)
{
    const struct mt_early_blocks *early = inference->early;

    inference->sorted = calloc(early->count + 1, sizeof *inference->sorted);
    inference->sizes = calloc(early->count + 1, sizeof *inference->sizes);
    inference->ends = calloc(early->count + 1, sizeof *inference->ends);
    if (!inference->sorted || !inference->sizes || !inference->ends)
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < early->count; i++) {
        const struct mt_early_block *block = &early->blocks[i];

        if (block->bytes && is_evidence(block))
            inference->sorted[inference->sorted_count++] = block;
    }
    qsort(inference->sorted, inference->sorted_count, sizeof *inference->sorted, by_size);
    for (size_t i = 0; i < inference->sorted_count; i++) {
        const struct mt_early_block **at = &inference->sorted[i];
        struct sizes *sizes = &inference->sizes[inference->size_count];

        if (!i || at[-1]->device != at[0]->device || at[-1]->bytes != at[0]->bytes) {
            sizes->members = at;
            sizes->bytes = at[0]->bytes;
            inference->size_count++;
        } else {
            sizes--;
        }
        sizes->count++;
    }
    for (size_t i = 0; i < inference->size_count; i++) {
        struct sizes *sizes = &inference->sizes[i];

        weigh(inference, sizes);
        if (!sizes->stay && !sizes->parameters)
            sizes->gradients = 0; /* of no parameter: what backward passed on */
        inference->gradient_bytes += sizes->gradients * sizes->bytes;
        inference->cleared_bytes += sizes->clears_gradients ? sizes->gradients * sizes->bytes : 0;
        inference->stay_bytes += sizes->stay * sizes->bytes;
        inference->replaced_bytes += are_replaced(sizes) ? sizes->replaced * sizes->bytes : 0;
    }
    for (size_t i = 0; i < early->count; i++)
        if (is_witness(&early->blocks[i]))
            witness(&inference->by_kind[early->blocks[i].end_kind], &early->blocks[i]);
    return MT_OK;
}

/* Blocks that are neither parameters nor, by their stacks, anything else. */
static uint32_t beyond_parameters(const struct sizes *sizes)
{
    uint32_t parameters =
        sizes->gradients > sizes->parameters ? sizes->gradients - sizes->parameters : 0;

    return sizes->stay > parameters ? sizes->stay - parameters : 0;
}

static struct sizes *of_bytes(const struct inference *inference, const struct sizes *like,
                              uint64_t bytes)
{
    for (size_t low = 0, high = inference->size_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        struct sizes *sizes = &inference->sizes[middle];
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

/* Of that size, and no more than there can be. */
static bool is_of_workspaces(const struct sizes *sizes)
{
    return mt_is_workspace(sizes->bytes) && sizes->stay <= MT_WORKSPACES_MAX;
}

/* Of `each` blocks of `factor` times the size for every parameter, the bytes that are there. */
static uint64_t state_bytes(const struct inference *inference, uint32_t each, uint32_t factor)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < inference->size_count; i++) {
        const struct sizes *sizes = &inference->sizes[i];
        const struct sizes *kept =
            factor == 1 ? sizes : of_bytes(inference, sizes, factor * sizes->bytes);
        uint64_t wanted = (uint64_t)each * sizes->gradients;

        if (kept)
            bytes += mt_min_u64(wanted, beyond_parameters(kept) + kept->states) * kept->bytes;
    }
    return bytes;
}

/* Blocks of a size that neither rules 3 and 4 nor, by the look of it, 7 and 8 explain. */
static uint32_t left_over(const struct inference *inference, const struct sizes *sizes)
{
    uint32_t beyond = beyond_parameters(sizes), states = inference->states * sizes->gradients;

    if (mt_is_workspace(sizes->bytes) || sizes->left_behind >= MIN_LEFT_BEHIND)
        return 0;
    return beyond > states ? beyond - states : 0;
}

/* Bytes of sizes that no gradient has, which are there `each` times. */
static uint64_t odd_bytes(const struct inference *inference, uint32_t each)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < inference->size_count; i++) {
        const struct sizes *sizes = &inference->sizes[i];
        uint32_t left = left_over(inference, sizes);

        bytes += sizes->gradients || left % each ? 0 : left * sizes->bytes;
    }
    return bytes;
}

static bool is_near(uint64_t bytes, uint64_t wanted)
{
    uint64_t apart = bytes > wanted ? bytes - wanted : wanted - bytes;

    return apart <= wanted / 100 * (100 - NEARLY_ALL_PERCENT) / 2;
}

/* In doubles: hostile sizes leave no room for the products. */
static bool has_share(uint64_t part, uint64_t whole, unsigned percent)
{
    return (double)part * 100 >= (double)whole * percent;
}

static bool has_more(uint64_t part, uint64_t whole, unsigned percent)
{
    return (double)part * 100 > (double)whole * percent;
}

static void count_states(struct inference *inference)
{
    uint64_t whole = inference->gradient_bytes;

    for (uint32_t each = MAX_STATE_BLOCKS; each && whole && !inference->states; each--) {
        uint64_t found = state_bytes(inference, each, 1);

        if (has_share(found, each * whole, NEARLY_ALL_PERCENT))
            inference->states = each;
        else if (each > 1 && is_near(found + odd_bytes(inference, each), each * whole))
            inference->states = each, inference->in_pieces = true;
    }
    for (uint32_t each = MAX_STATE_BLOCKS; each && whole && !inference->states; each--)
        if (!inference->wide_states &&
            has_share(state_bytes(inference, each, 2), 2 * each * whole, NEARLY_ALL_PERCENT))
            inference->wide_states = each;
}

/* DDP makes its buckets twice: when it is built, and when it knows the order of gradients. */
static void find_buckets(struct inference *inference)
{
    uint32_t gradients = 0, blocks = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < inference->size_count; i++) {
        uint32_t left = left_over(inference, &inference->sizes[i]);

        gradients += inference->sizes[i].gradients;
        blocks += left;
        bytes += left * inference->sizes[i].bytes;
    }
    inference->in_buckets = !inference->in_pieces && !inference->each && bytes &&
                            blocks < gradients &&
                            (is_near(bytes, inference->gradient_bytes) ||
                             is_near(bytes, 2 * inference->gradient_bytes));
}

/* Backward was not seen from its begin. */
static bool began_in_last_turn(const struct mt_early_blocks *early)
{
    return early->turns == (early->first_kind == MT_PHASE_BACKWARD);
}

/* ... or left nothing behind. Gradients that are freed where they are cleared are made in each
 * turn, however few: most parameters of a LoRA are frozen. */
static bool gradients_are_old(const struct inference *inference)
{
    if (has_more(inference->cleared_bytes, inference->gradient_bytes, 50))
        return false;
    return began_in_last_turn(inference->early) ||
           !has_more(inference->gradient_bytes, inference->stay_bytes, 100 - NEARLY_ALL_PERCENT);
}

/* Rule 6, by what backward makes of each size in a turn: 0 = that does not tell. Of sizes of which
 * it makes more than there are, most are no gradients. */
static uint32_t each_by_backward(const struct inference *inference)
{
    const uint32_t turns = inference->early->turns;
    uint64_t whole = 0, told = 0, bytes[MAX_EACH + 1] = {0};

    for (size_t i = 0; turns && i < inference->size_count; i++) {
        const struct sizes *sizes = &inference->sizes[i];
        uint32_t parameters = sizes->passed / turns;

        if (is_of_workspaces(sizes) || sizes->left_behind >= MIN_LEFT_BEHIND)
            continue;
        whole += sizes->stay * sizes->bytes;
        if (!parameters || parameters > sizes->stay)
            continue;
        told += sizes->stay * sizes->bytes;
        if (sizes->passed % turns == 0 && sizes->stay % parameters == 0 &&
            sizes->stay / parameters <= MAX_EACH)
            bytes[sizes->stay / parameters] += sizes->stay * sizes->bytes;
    }
    for (uint32_t each = 2; each <= MAX_EACH; each++)
        if (told && has_share(told, whole, MOST_PERCENT) &&
            has_share(bytes[each], told, NEARLY_ALL_PERCENT))
            return each;
    return 0;
}

/* Rule 6. */
static void count_each(struct inference *inference)
{
    const struct mt_early_blocks *early = inference->early;
    uint32_t least = early->turns || early->first_kind == MT_PHASE_OPTIMIZER ? 2 : 3,
             most = MAX_EACH;
    bool shows_some =
        began_in_last_turn(early) &&
        has_more(inference->gradient_bytes, inference->stay_bytes, (100 - NEARLY_ALL_PERCENT) / 2);

    if (gradients_are_old(inference))
        inference->each = each_by_backward(inference);
    if (inference->replaced_bytes)
        most = least = 2; /* the state is elsewhere: itself and its gradient */
    for (uint32_t each = most; gradients_are_old(inference) && each >= least && !inference->each;
         each--) {
        uint64_t bytes = 0, whole = 0;
        uint32_t different = 0;

        for (size_t i = 0; i < inference->size_count; i++) {
            const struct sizes *sizes = &inference->sizes[i];
            uint32_t count = sizes->stay + sizes->gradients;

            if (mt_is_workspace(sizes->bytes) || sizes->left_behind >= MIN_LEFT_BEHIND ||
                (shows_some && !sizes->gradients))
                continue;
            whole += count * sizes->bytes;
            bytes += count % each ? 0 : count * sizes->bytes;
            different += count && count % each == 0;
        }
        if (different >= MIN_DIFFERENT_SIZES &&
            (double)bytes * 1000 >= (double)whole * NEARLY_ALL_COUNTS_PERMILLE)
            inference->each = each;
    }
}

static enum mt_role most_of(const struct ends *ends)
{
    int most = MT_ROLE_OTHER;

    for (int role = 0; role < MT_ROLE_COUNT; role++)
        if (ends->bytes[role] > ends->bytes[most])
            most = role;
    return (enum mt_role)most;
}

/* What others of the size that end there are, else what most bytes that end there are. */
static enum mt_role find_role_of_end(const struct inference *inference, const struct sizes *sizes,
                                     uint8_t kind)
{
    struct ends alike = {{0}};
    bool any = false;

    for (size_t i = 0; i < sizes->count; i++) {
        const struct mt_early_block *block = sizes->members[i];

        if (!is_witness(block) || block->end_kind != kind)
            continue;
        witness(&alike, block);
        any = true;
    }
    return most_of(any ? &alike : &inference->by_kind[kind]);
}

/* Once for each size and kind. */
static enum mt_role role_of_end(struct inference *inference, const struct sizes *sizes,
                                uint8_t kind)
{
    uint8_t *known = &inference->end_roles[kind & MT_STACK_KIND_MASK];

    if (inference->end_sizes != sizes)
        memset(inference->end_roles, 0, sizeof inference->end_roles);
    inference->end_sizes = sizes;
    if (!*known)
        *known = (uint8_t)(1 + find_role_of_end(inference, sizes, kind));
    return (enum mt_role)(*known - 1);
}

static enum mt_role role_of_freed(struct inference *inference, const struct mt_early_block *block,
                                  const struct sizes *sizes)
{
    const struct mt_early_blocks *early = inference->early;
    bool in_first = block->end_kind == early->first_kind &&
                    (!early->first_part_end || block->ended <= early->first_part_end);
    enum mt_role role;

    if (block->end_kind == MT_PHASE_ZERO_GRAD)
        return MT_ROLE_GRADIENTS;
    if (block->end_kind == MT_PHASE_OPTIMIZER && are_replaced(sizes))
        return MT_ROLE_OPTIMIZER_STATE;
    if (block->end_kind == MT_PHASE_BACKWARD && in_first)
        return MT_ROLE_ACTIVATIONS;
    if (mt_early_is_part(block->end_kind) && in_first)
        return MT_ROLE_TEMPORARIES;
    role = role_of_end(inference, sizes, block->end_kind);
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

/* How many of the blocks of a size that stay are what, in order of their addresses. */
struct shares {
    uint32_t parameters, gradients, states, workspaces, activations;
};

/* Rule 6: of the blocks for each parameter one is it, one may be its gradient, born before or
 * in the trace. */
static struct shares shares_of_each(const struct inference *inference, const struct sizes *sizes)
{
    const struct mt_early_blocks *early = inference->early;
    uint32_t each = inference->each, sets = (sizes->stay + sizes->gradients) / each;
    bool has_gradients =
        early->turns || early->first_kind == MT_PHASE_OPTIMIZER || each == MAX_EACH;
    uint32_t left = sizes->stay;
    struct shares shares = {0, 0, 0, 0, 0};

    shares.parameters = take(&left, sets);
    if (has_gradients && sets > sizes->gradients)
        shares.gradients = take(&left, sets - sizes->gradients);
    shares.states = left;
    return shares;
}

static struct shares shares_of(const struct inference *inference, const struct sizes *sizes)
{
    const struct sizes *half =
        sizes->bytes % 1024 == 0 ? of_bytes(inference, sizes, sizes->bytes / 2) : NULL;
    uint32_t left = sizes->stay, known = sizes->parameters;
    uint32_t states = inference->states * sizes->gradients;
    struct shares shares = {0, 0, 0, 0, 0};

    if (inference->each && !is_of_workspaces(sizes) &&
        (left + sizes->gradients) % inference->each == 0)
        return shares_of_each(inference, sizes);
    states += half ? inference->wide_states * half->gradients : 0;
    states -= less(states, sizes->states);
    if (known)
        shares.gradients = take(&left, known > sizes->gradients ? known - sizes->gradients : 0);
    else
        shares.parameters = take(&left, sizes->gradients);
    shares.states = take(&left, states);
    if (inference->in_pieces && !sizes->gradients && left_over(inference, sizes) &&
        left % inference->states == 0)
        shares.states += take(&left, left);
    if (inference->in_buckets && left_over(inference, sizes))
        shares.gradients += take(&left, left);
    if (mt_is_workspace(sizes->bytes) && left <= MT_WORKSPACES_MAX)
        shares.workspaces = take(&left, left);
    if (sizes->left_behind >= MIN_LEFT_BEHIND)
        shares.activations = take(&left, left);
    if ((inference->each || inference->states) && began_in_last_turn(inference->early))
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

static void share_out(struct inference *inference, const struct sizes *sizes)
{
    struct shares shares = shares_of(inference, sizes);

    for (size_t i = 0; i < sizes->count; i++) {
        struct mt_early_block *block =
            &inference->early->blocks[sizes->members[i] - inference->early->blocks];

        if (!block->initial || block->role != MT_ROLE_OTHER)
            continue;
        if (!stays(inference->early, block))
            block->role = (uint8_t)role_of_freed(inference, block, sizes);
        else if (is_open(block))
            block->role = (uint8_t)next_of(&shares);
        else if ((mt_is_workspace(block->bytes) || block->bytes == MT_LT_WORKSPACE_BYTES) &&
                 sizes->by_calls <= MT_WORKSPACES_MAX)
            block->role = MT_ROLE_WORKSPACE;
        else if (inference->early->turns)
            block->role = MT_ROLE_ACTIVATIONS;
    }
}

static void count_all(struct inference *inference)
{
    count_states(inference);
    count_each(inference);
    find_buckets(inference);
}

enum mt_status mt_initial_roles_infer(struct mt_early_blocks *early)
{
    struct inference inference = {.early = early};
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < early->initial_count; i++)
        if (early->blocks[i].initial)
            early->blocks[i].role =
                (uint8_t)mt_initial_role_by_stack((enum mt_phase_kind)early->blocks[i].stack_kind,
                                                  early->blocks[i].ended == MT_EARLY_LIVES);
    if (early->initial_count)
        status = sort_by_size(&inference);
    if (!status && early->initial_count)
        count_all(&inference);
    for (size_t i = 0; !status && early->saw_part && i < inference.size_count; i++)
        share_out(&inference, &inference.sizes[i]);
    free(inference.ends);
    free(inference.sizes);
    free(inference.sorted);
    return status;
}
