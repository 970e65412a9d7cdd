#include "early_evidence.h"

#include "process_memory.h"
#include "workspaces.h"

#include <stdlib.h>
#include <string.h>

/* Two may share one graph, like those of a generator and its critic. */
#define TURNS_OF_WHAT_STAYS 3

/* Blocks of the state that the optimizer makes and frees, one for one: the last may remain. */
#define MAX_APART 20

bool mt_early_stays(const struct mt_early_blocks *early, const struct mt_early_block *block)
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

bool mt_early_is_witness(const struct mt_early_block *block)
{
    return !block->initial && block->ended != MT_EARLY_LIVES && !block->died_in_part;
}

static bool is_call(uint8_t kind)
{
    return kind == MT_PHASE_FORWARD || kind == MT_PHASE_LOSS;
}

bool mt_early_is_one_call(const struct mt_early_blocks *early)
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

bool mt_early_is_open(const struct mt_early_block *block)
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

bool mt_early_are_replaced(const struct mt_early_sizes *sizes)
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
        if (!block->initial || !mt_early_stays(evidence->early, block))
            continue;
        sizes->stay += mt_early_is_open(block);
        sizes->end_late += mt_early_is_open(block) && block->ended != MT_EARLY_LIVES;
        sizes->by_calls += block->role == MT_ROLE_OTHER && !mt_early_is_open(block);
        sizes->parameters += block->role == MT_ROLE_PARAMETERS;
        sizes->states += block->role == MT_ROLE_OPTIMIZER_STATE;
    }
    sizes->gradients = most_at_once(evidence, sizes, is_gradient);
    count_replaced(evidence, sizes);
}

static bool is_evidence(const struct mt_early_blocks *early, const struct mt_early_block *block)
{
    return block->initial || is_gradient(block) || is_left_behind(block) ||
           mt_early_is_witness(block) || is_left_by_optimizer(block) ||
           is_passed_by_backward(early, block) || is_passed_by_optimizer(block);
}

void mt_early_ends_add(struct mt_early_ends *ends, const struct mt_early_block *block)
{
    ends->bytes[block->role] += block->bytes;
}

void mt_early_evidence_gather(struct mt_early_evidence *evidence)
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
        evidence->replaced_bytes +=
            mt_early_are_replaced(sizes) ? sizes->replaced * sizes->bytes : 0;
    }
    for (size_t i = 0; i < early->count; i++)
        if (mt_early_is_witness(&early->blocks[i]))
            mt_early_ends_add(&evidence->by_kind[early->blocks[i].end_kind], &early->blocks[i]);
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

void mt_early_evidence_release(struct mt_early_evidence *evidence)
{
    free(evidence->ends);
    free(evidence->sizes);
    free(evidence->sorted);
    memset(evidence, 0, sizeof *evidence);
}
