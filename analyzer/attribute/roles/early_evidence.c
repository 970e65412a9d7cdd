/* Evidence from the first blocks of a trace that begins in the middle, and what it says about the
 * number of blocks per parameter: rules 3 to 6 of early_roles.h. */
#include <stdlib.h>
#include <string.h>

#include "early_roles.h"
#include "process_memory.h"
#include "sorted.h"
#include "util.h"
#include "work_kinds.h"

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

MT_DEFINE_POINTER_ORDER(by_size, struct mt_early_block,
                        MT_ASCENDING(device) || MT_ASCENDING(bytes) || MT_BY_PLACE)

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
    qsort(evidence->ends, count, sizeof *evidence->ends, mt_ascending_u32);
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

/* Whether its end or its own stack shows that a gradient was made in each turn. */
static bool is_new_gradient(const struct mt_early_block *block)
{
    return ends_cleared(block) || (block->initial && block->role == MT_ROLE_GRADIENTS);
}

static bool is_gradient(const struct mt_early_block *block)
{
    if (block->initial)
        return is_new_gradient(block);
    if (mt_is_workspace(block->bytes) && block->ended == MT_EARLY_LIVES)
        return false;
    return block->birth_kind == MT_PHASE_BACKWARD && !block->died_in_part;
}

bool mt_early_is_one_call(const struct mt_early_blocks *early)
{
    return mt_phase_is_forward(early->first_kind) && !early->first_is_named && !early->turns &&
           (!early->first_part_end || early->first_part_end >= early->last_part_end);
}

static bool is_kept(const struct mt_early_block *block)
{
    return !block->initial && mt_phase_is_forward(block->birth_kind) && !block->died_in_part;
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
        sizes->clears_gradients |= is_gradient(block) && is_new_gradient(block);
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

/* Returns the number of blocks that are not parameters and whose stacks do not show another
 * role. */
static uint32_t early_beyond_parameters(const struct mt_early_sizes *sizes)
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

/* Share of the blocks that an optimizer with m of them per parameter needs. */
#define NEARLY_ALL_PERCENT 90
#define MOST_PERCENT       50
#define MAX_STATE_BLOCKS   3

/* A third block per parameter is the state of AMSGrad, or a copy of the model: an average of its
 * parameters (EMA), a teacher. Both are made once and changed in place, so they cannot be
 * distinguished. */
#define SURE_STATE_BLOCKS 2

/* Temporaries of an optimizer for one parameter: Adam makes two. */
#define MAX_UPDATES 8

/* Share of the counts: embeddings, which exist once, may be at most 0.5%. */
#define NEARLY_ALL_COUNTS_PERMILLE 995

/* Fewer sizes may have such counts by accident: a model of equal layers. */
#define MIN_DIFFERENT_SIZES 3

/* Existing bytes of `each` blocks of `factor` times the size for every parameter. */
static uint64_t state_bytes(const struct mt_early_evidence *evidence, uint32_t each,
                            uint32_t factor)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < evidence->size_count; i++) {
        const struct mt_early_sizes *sizes = &evidence->sizes[i];
        const struct mt_early_sizes *kept =
            factor == 1 ? sizes : mt_early_sizes_of(evidence, sizes, factor * sizes->bytes);
        uint64_t wanted = (uint64_t)each * sizes->gradients;

        if (kept)
            bytes += mt_min_u64(wanted, early_beyond_parameters(kept) + kept->states) * kept->bytes;
    }
    return bytes;
}

uint32_t mt_early_left_over(const struct mt_early_evidence *evidence,
                            const struct mt_early_sizes *sizes)
{
    uint32_t beyond = early_beyond_parameters(sizes), states = evidence->states * sizes->gradients;

    if (mt_is_workspace(sizes->bytes) || sizes->left_behind >= MT_EARLY_MIN_LEFT_BEHIND)
        return 0;
    return beyond > states ? beyond - states : 0;
}

/* Bytes of sizes without a gradient that exist `each` times. */
static uint64_t odd_bytes(const struct mt_early_evidence *evidence, uint32_t each)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < evidence->size_count; i++) {
        const struct mt_early_sizes *sizes = &evidence->sizes[i];
        uint32_t left = mt_early_left_over(evidence, sizes);

        bytes += sizes->gradients || left % each ? 0 : left * sizes->bytes;
    }
    return bytes;
}

static bool is_near(uint64_t bytes, uint64_t wanted)
{
    uint64_t apart = bytes > wanted ? bytes - wanted : wanted - bytes;

    return apart <= wanted / 100 * (100 - NEARLY_ALL_PERCENT) / 2;
}

/* In doubles: products of hostile sizes would overflow. */
static bool has_share(uint64_t part, uint64_t whole, unsigned percent)
{
    return (double)part * 100 >= (double)whole * percent;
}

static bool has_more(uint64_t part, uint64_t whole, unsigned percent)
{
    return (double)part * 100 > (double)whole * percent;
}

/* Parts of backward whose start is in the trace. */
static uint32_t whole_turns(const struct mt_early_blocks *early)
{
    return early->turns - (early->turns && early->first_kind == MT_PHASE_BACKWARD);
}

bool mt_early_began_in_last_turn(const struct mt_early_blocks *early)
{
    return whole_turns(early) == 0;
}

/* The trace begins in backward, and no whole part of backward leaves gradients behind: those of the
 * first part are incomplete, and later ones are added to them. */
static bool shows_first_gradients_alone(const struct mt_early_evidence *evidence)
{
    bool later = mt_early_began_in_last_turn(evidence->early) ||
                 evidence->early->first_kind != MT_PHASE_BACKWARD;

    for (size_t i = 0; i < evidence->size_count && !later; i++)
        later = evidence->sizes[i].gradients && evidence->sizes[i].born_late;
    return !later && evidence->gradient_bytes;
}

static void count_states(struct mt_early_evidence *evidence)
{
    uint64_t whole = shows_first_gradients_alone(evidence) ? 0 : evidence->gradient_bytes;

    for (uint32_t each = MAX_STATE_BLOCKS; each && whole && !evidence->states; each--) {
        uint64_t found = state_bytes(evidence, each, 1);

        if (has_share(found, each * whole, NEARLY_ALL_PERCENT))
            evidence->states = each;
        else if (each > 1 && is_near(found + odd_bytes(evidence, each), each * whole))
            evidence->states = each, evidence->in_pieces = true;
    }
    for (uint32_t each = MAX_STATE_BLOCKS; each && whole && !evidence->states; each--)
        if (!evidence->wide_states &&
            has_share(state_bytes(evidence, each, 2), 2 * each * whole, NEARLY_ALL_PERCENT))
            evidence->wide_states = each;
    evidence->third_is_open = !evidence->in_pieces && evidence->states > SURE_STATE_BLOCKS;
}

/* DDP makes its buckets twice: when it is built, and when it knows the order of gradients. */
static void find_buckets(struct mt_early_evidence *evidence)
{
    uint32_t gradients = 0, blocks = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < evidence->size_count; i++) {
        uint32_t left = mt_early_left_over(evidence, &evidence->sizes[i]);

        gradients += evidence->sizes[i].gradients;
        blocks += left;
        bytes += left * evidence->sizes[i].bytes;
    }
    evidence->in_buckets =
        !evidence->in_pieces && !evidence->each && bytes && blocks < gradients &&
        (is_near(bytes, evidence->gradient_bytes) || is_near(bytes, 2 * evidence->gradient_bytes));
}

/* The start of backward is not in the trace, or it left nothing behind. Gradients that are freed
 * where they are cleared are made in each turn, however few: most parameters of a LoRA are
 * frozen. */
static bool gradients_are_old(const struct mt_early_evidence *evidence)
{
    if (shows_first_gradients_alone(evidence))
        return true;
    if (has_more(evidence->cleared_bytes, evidence->gradient_bytes, 50))
        return false;
    return mt_early_began_in_last_turn(evidence->early) ||
           !has_more(evidence->gradient_bytes, evidence->stay_bytes, 100 - NEARLY_ALL_PERCENT);
}

/* Rule 6, by the blocks of each size that backward makes in a whole turn: 0 = no evidence. If it
 * makes more blocks of a size than exist, most are not gradients. */
static uint32_t each_by_backward(const struct mt_early_evidence *evidence)
{
    const uint32_t turns = whole_turns(evidence->early);
    uint64_t whole = 0, told = 0, bytes[MT_EARLY_MAX_EACH + 1] = {0};

    for (size_t i = 0; turns && i < evidence->size_count; i++) {
        const struct mt_early_sizes *sizes = &evidence->sizes[i];
        uint32_t parameters = sizes->passed / turns, count = sizes->stay + sizes->gradients;

        if (mt_early_are_workspaces(sizes) || sizes->left_behind >= MT_EARLY_MIN_LEFT_BEHIND)
            continue;
        whole += count * sizes->bytes;
        if (!parameters || parameters > count)
            continue;
        told += count * sizes->bytes;
        if (sizes->passed % turns == 0 && count % parameters == 0 &&
            count / parameters <= MT_EARLY_MAX_EACH)
            bytes[count / parameters] += count * sizes->bytes;
    }
    for (uint32_t each = 2; each <= MT_EARLY_MAX_EACH; each++)
        if (told && has_share(told, whole, MOST_PERCENT) &&
            has_share(bytes[each], told, NEARLY_ALL_PERCENT))
            return each;
    return 0;
}

/* Whether the optimizer works on most of the blocks that stay. Then no other size is that of a
 * parameter. */
static bool optimizer_tells(const struct mt_early_evidence *evidence)
{
    uint64_t updated = 0;

    for (size_t i = 0; i < evidence->size_count; i++)
        if (evidence->sizes[i].updated)
            updated += evidence->sizes[i].stay * evidence->sizes[i].bytes;
    return mt_early_began_in_last_turn(evidence->early) &&
           has_share(updated, evidence->stay_bytes, MOST_PERCENT);
}

/* Whether the counts of this size show how many blocks each parameter has. */
static bool counts_tell(const struct mt_early_evidence *evidence,
                        const struct mt_early_sizes *sizes)
{
    bool shows_some =
        mt_early_began_in_last_turn(evidence->early) &&
        has_more(evidence->gradient_bytes, evidence->stay_bytes, (100 - NEARLY_ALL_PERCENT) / 2);

    return !mt_is_workspace(sizes->bytes) && sizes->left_behind < MT_EARLY_MIN_LEFT_BEHIND &&
           (sizes->gradients || !shows_some) && (sizes->updated || !evidence->optimizer_tells);
}

/* Equal models have as many blocks of each size as a parameter with its state. Calls that keep
 * nothing for backward, and no other part of a step, are no sign of training. */
static bool only_infers(const struct mt_early_blocks *early)
{
    return !early->turns && early->first_kind != MT_PHASE_OPTIMIZER && early->keeps_no_graph;
}

/* Whole parts of backward make no block of the sizes that most bytes have. A gradient would be
 * made, or made and added to an existing one. But the largest parameter is an embedding: if that is
 * trained, kernels may add the gradients of the others to existing blocks, without one of their own
 * (Megatron's gradient_accumulation_fusion). */
static bool most_are_frozen(const struct mt_early_evidence *evidence)
{
    const struct mt_early_sizes *largest = NULL;
    uint64_t whole = 0, without = 0;

    for (size_t i = 0; i < evidence->size_count; i++) {
        const struct mt_early_sizes *sizes = &evidence->sizes[i];

        if (!counts_tell(evidence, sizes))
            continue;
        whole += sizes->stay * sizes->bytes;
        if (sizes->stay && (!largest || sizes->bytes > largest->bytes))
            largest = sizes;
        if (!sizes->gradients && !sizes->passed)
            without += sizes->stay * sizes->bytes;
    }
    return whole_turns(evidence->early) && evidence->gradient_bytes && largest &&
           !largest->gradients && has_more(without, whole, MOST_PERCENT);
}

/* Rule 6. */
static void count_each(struct mt_early_evidence *evidence)
{
    const struct mt_early_blocks *early = evidence->early;
    uint32_t least = early->turns || early->first_kind == MT_PHASE_OPTIMIZER ? 2 : 3,
             most = MT_EARLY_MAX_EACH;

    evidence->optimizer_tells = optimizer_tells(evidence);
    if (only_infers(early))
        return;
    if (gradients_are_old(evidence))
        evidence->each = each_by_backward(evidence);
    if (evidence->replaced_bytes)
        most = least = 2; /* the state is elsewhere: a parameter has itself and its gradient */
    if (!gradients_are_old(evidence) || most_are_frozen(evidence))
        return;
    for (uint32_t each = most; each >= least && !evidence->each; each--) {
        uint64_t bytes = 0, whole = 0;
        uint32_t different = 0;

        for (size_t i = 0; i < evidence->size_count; i++) {
            const struct mt_early_sizes *sizes = &evidence->sizes[i];
            uint32_t count = sizes->stay + sizes->gradients;

            if (!counts_tell(evidence, sizes))
                continue;
            whole += count * sizes->bytes;
            bytes += count % each ? 0 : count * sizes->bytes;
            different += count && count % each == 0;
        }
        if (different >= MIN_DIFFERENT_SIZES &&
            (double)bytes * 1000 >= (double)whole * NEARLY_ALL_COUNTS_PERMILLE)
            evidence->each = each;
    }
}

/* Blocks that the optimizer makes and frees per parameter, according to most bytes; 0: unknown. */
static uint32_t updates_each(const struct mt_early_evidence *evidence)
{
    uint64_t bytes[MAX_UPDATES + 1] = {0}, whole = 0;

    for (size_t i = 0; i < evidence->size_count && evidence->each; i++) {
        const struct mt_early_sizes *sizes = &evidence->sizes[i];
        uint64_t count = (uint64_t)sizes->stay + sizes->gradients;
        uint64_t made = (uint64_t)sizes->updated * evidence->each;

        if (!sizes->updated || !count)
            continue;
        whole += count * sizes->bytes;
        if (made % count == 0 && made / count <= MAX_UPDATES)
            bytes[made / count] += count * sizes->bytes;
    }
    for (uint32_t updates = 1; updates <= MAX_UPDATES; updates++)
        if (whole && has_more(bytes[updates], whole, MOST_PERCENT))
            return updates;
    return 0;
}

uint32_t mt_early_pairs(const struct mt_early_evidence *evidence,
                        const struct mt_early_sizes *sizes)
{
    uint32_t count = sizes->stay + sizes->gradients;
    uint32_t states = (evidence->each - 2) * (sizes->updated / evidence->updates);

    return count > states && (count - states) % 2 == 0 ? (count - states) / 2 : 0;
}

/* For a flat parameter (cuDNN's weights) the optimizer has the pieces: their state exists, but
 * neither they nor their gradients, and their bytes are those of a block that it does not have. */
static void find_flat(struct mt_early_evidence *evidence)
{
    uint64_t missing = 0, flat = 0;

    evidence->updates = evidence->each > 2 ? updates_each(evidence) : 0;
    for (size_t i = 0; i < evidence->size_count && evidence->updates; i++) {
        const struct mt_early_sizes *sizes = &evidence->sizes[i];
        uint32_t updated = sizes->updated / evidence->updates;
        uint32_t pairs = mt_early_pairs(evidence, sizes);

        if (!updated && !mt_early_are_workspaces(sizes))
            flat += pairs * sizes->bytes;
        if (pairs < updated)
            missing += (updated - pairs) * sizes->bytes;
    }
    if (!missing || !is_near(flat, missing))
        evidence->updates = 0;
}

void mt_early_counts_infer(struct mt_early_evidence *evidence)
{
    count_states(evidence);
    count_each(evidence);
    find_flat(evidence);
    find_buckets(evidence);
}
