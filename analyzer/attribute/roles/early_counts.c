#include "early_blocks.h"

#include "util.h"

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
            bytes +=
                mt_min_u64(wanted, mt_early_beyond_parameters(kept) + kept->states) * kept->bytes;
    }
    return bytes;
}

uint32_t mt_early_left_over(const struct mt_early_evidence *evidence,
                            const struct mt_early_sizes *sizes)
{
    uint32_t beyond = mt_early_beyond_parameters(sizes),
             states = evidence->states * sizes->gradients;

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

/* Rule 6. */
static void count_each(struct mt_early_evidence *evidence)
{
    const struct mt_early_blocks *early = evidence->early;
    uint32_t least = early->turns || early->first_kind == MT_PHASE_OPTIMIZER ? 2 : 3,
             most = MT_EARLY_MAX_EACH;

    evidence->optimizer_tells = optimizer_tells(evidence);
    if (gradients_are_old(evidence))
        evidence->each = each_by_backward(evidence);
    if (evidence->replaced_bytes)
        most = least = 2; /* the state is elsewhere: a parameter has itself and its gradient */
    for (uint32_t each = most; gradients_are_old(evidence) && each >= least && !evidence->each;
         each--) {
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
