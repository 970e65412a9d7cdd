/* A combination begins with its smallest value that matters, then the largest. Between a value that
 * fits on a card and one that does not, the next value is where a line through two needs reaches
 * the memory of the card, because memory is nearly linear in most sizes. After a few such guesses
 * it is the middle, so that the number of values is logarithmic in any case.
 *
 * A combination waits for those that bound it: one with a smaller value on another searched axis
 * fits at least as far, and one that beats it makes its values up to that one irrelevant. */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "process_memory.h"
#include "util.h"

enum {
    GUESSES = 4,     /* on the line through two needs, before bisection */
    MAX_FAILURES = 3 /* a combination with more failed points than this and than others ends */
};
/* Needs that fall by less are rounding of the allocator or another choice of workspaces. */
#define TOLERANCE 0.01

static bool is_searched(const struct mt_search *search, size_t axis)
{
    return search->axes[axis].amounts;
}

void mt_search_split(const struct mt_search *search, size_t point, size_t at[MT_MAX_SEARCH_AXES])
{
    for (size_t i = search->axis_count; i-- > 0; point /= search->axes[i].count)
        at[i] = point % search->axes[i].count;
}

size_t mt_search_point_of(const struct mt_search *search, size_t combination, size_t size)
{
    const size_t *at = search->combinations[combination].at;
    size_t point = 0;

    for (size_t i = 0; i < search->axis_count; i++)
        point = point * search->axes[i].count + (i == search->size_axis ? size : at[i]);
    return point;
}

static struct mt_search_point *point_at(const struct mt_search *search,
                                        const struct mt_search_combination *combination,
                                        size_t size)
{
    size_t index = (size_t)(combination - search->combinations);

    return &search->points[mt_search_point_of(search, index, size)];
}

void mt_search_init(struct mt_search *search)
{
    size_t next = 0, at[MT_MAX_SEARCH_AXES];

    search->size_axis = MT_SEARCH_NONE;
    search->point_count = search->size_count = 1;
    for (size_t i = search->axis_count; i-- > 0;) {
        search->point_count *= search->axes[i].count;
        if (is_searched(search, i))
            search->size_axis = i;
    }
    if (search->size_axis != MT_SEARCH_NONE)
        search->size_count = search->axes[search->size_axis].count;
    search->combination_count = search->point_count / search->size_count;
    search->points = mt_memory_zeroed(search->point_count, sizeof *search->points);
    search->combinations =
        mt_memory_zeroed(search->combination_count, sizeof *search->combinations);
    for (size_t point = 0; point < search->point_count; point++) {
        struct mt_search_combination *combination = &search->combinations[next];

        mt_search_split(search, point, at);
        if (search->size_axis != MT_SEARCH_NONE && at[search->size_axis])
            continue;
        memcpy(combination->at, at, search->axis_count * sizeof *at);
        combination->devices = 1;
        for (size_t card = 0; card < MT_MAX_SEARCH_CARDS; card++)
            combination->best[card] = MT_SEARCH_NONE;
        combination->is_in_shard =
            !search->shard_count || next % search->shard_count == search->shard;
        next++;
    }
}

void mt_search_release(struct mt_search *search)
{
    free(search->points);
    free(search->combinations);
}

/* Compares two combinations without their sizes. */
struct order {
    bool lists_first; /* a comes first, or equal, in every list */
    bool lists_equal;
    bool sizes_less; /* a has no larger value on any searched axis */
    bool sizes_more; /* no smaller one */
};

static struct order order_of(const struct mt_search *search, const struct mt_search_combination *a,
                             const struct mt_search_combination *b)
{
    struct order order = {true, true, true, true};

    for (size_t i = 0; i < search->axis_count; i++) {
        if (is_searched(search, i)) {
            order.sizes_less &= a->at[i] <= b->at[i];
            order.sizes_more &= a->at[i] >= b->at[i];
        } else {
            order.lists_first &= a->at[i] <= b->at[i];
            order.lists_equal &= a->at[i] == b->at[i];
        }
    }
    return order;
}

/* `a` needs at most as much as `b` at each size. */
static bool bounds(const struct mt_search *search, const struct mt_search_combination *a,
                   const struct mt_search_combination *b)
{
    const struct order order = order_of(search, a, b);

    return a != b && order.lists_equal && order.sizes_less;
}

/* `b` is worth a run only for sizes that do not fit in `a`. */
static bool beats(const struct mt_search *search, const struct mt_search_combination *a,
                  const struct mt_search_combination *b)
{
    const struct order order = order_of(search, a, b);

    return a != b && order.lists_first && order.sizes_less && order.sizes_more &&
           a->devices <= b->devices;
}

static bool waits(const struct mt_search *search, const struct mt_search_combination *combination)
{
    for (size_t i = 0; i < search->combination_count; i++) {
        const struct mt_search_combination *other = &search->combinations[i];

        if (other->is_in_shard && !other->is_done &&
            (bounds(search, other, combination) || beats(search, other, combination)))
            return true;
    }
    return false;
}

/* The sizes that may still matter for a card: above `low`, below `high`. -1: there is
 * no value below. */
struct bracket {
    long low, high;
    long fits; /* the largest that fits; -1: none */
};

static void narrow_by_others(const struct mt_search *search,
                             const struct mt_search_combination *combination, size_t card,
                             struct bracket *bracket)
{
    for (size_t i = 0; i < search->combination_count; i++) {
        const struct mt_search_combination *other = &search->combinations[i];
        long best = other->best[card] == MT_SEARCH_NONE ? -1 : (long)other->best[card];

        if (!other->is_in_shard || !other->is_done || other->gave_up)
            continue;
        if (beats(search, other, combination) && best > bracket->low)
            bracket->low = best;
        if (bounds(search, other, combination) && other->is_exact[card] &&
            !other->is_contradicted && best + 1 < bracket->high)
            bracket->high = best + 1;
    }
}

static struct bracket bracket_of(const struct mt_search *search,
                                 const struct mt_search_combination *combination, size_t card)
{
    struct bracket bracket = {-1, (long)search->size_count, -1};

    for (size_t i = 0; i < search->size_count; i++) {
        const struct mt_search_point *point = point_at(search, combination, i);

        if (point->state == MT_SEARCH_NEED && point->cards & UINT32_C(1) << card)
            bracket.fits = (long)i;
    }
    bracket.low = bracket.fits;
    for (size_t i = search->size_count; i-- > (size_t)(bracket.low + 1);) {
        const struct mt_search_point *point = point_at(search, combination, i);

        if (point->state == MT_SEARCH_TOO_LARGE || point->state == MT_SEARCH_NEED)
            bracket.high = (long)i;
    }
    if (!combination->is_contradicted)
        narrow_by_others(search, combination, card, &bracket);
    return bracket;
}

static bool is_untested(const struct mt_search *search,
                        const struct mt_search_combination *combination, long i)
{
    return point_at(search, combination, (size_t)i)->state == MT_SEARCH_UNKNOWN;
}

/* The untested value nearest to a guess; -1: there is none. */
static long nearest(const struct mt_search *search, const struct mt_search_combination *combination,
                    const struct bracket *bracket, long guess)
{
    for (long away = 0; away <= bracket->high - bracket->low; away++) {
        if (guess - away > bracket->low && guess - away < bracket->high &&
            is_untested(search, combination, guess - away))
            return guess - away;
        if (guess + away > bracket->low && guess + away < bracket->high &&
            is_untested(search, combination, guess + away))
            return guess + away;
    }
    return -1;
}

/* Two needs near a bracket: its ends, or the last two below it. */
static bool two_needs(const struct mt_search *search,
                      const struct mt_search_combination *combination,
                      const struct bracket *bracket, size_t ends[2])
{
    size_t count = 0;

    for (long i = bracket->high < (long)search->size_count ? bracket->high : bracket->high - 1;
         i >= 0 && count < 2; i--)
        if (point_at(search, combination, (size_t)i)->state == MT_SEARCH_NEED)
            ends[count++] = (size_t)i;
    return count == 2;
}

static long guess(const struct mt_search *search, struct mt_search_combination *combination,
                  size_t card, const struct bracket *bracket)
{
    const uint64_t *amounts =
        search->size_axis == MT_SEARCH_NONE ? NULL : search->axes[search->size_axis].amounts;
    long found = bracket->low + 1;
    size_t ends[2];

    if (!amounts || combination->guesses[card] >= GUESSES ||
        !two_needs(search, combination, bracket, ends))
        return bracket->low + (bracket->high - bracket->low) / 2;
    combination->guesses[card]++;
    double rise = (double)point_at(search, combination, ends[0])->need_bytes -
                  (double)point_at(search, combination, ends[1])->need_bytes;
    double run = (double)(amounts[ends[0]] - amounts[ends[1]]);
    if (rise <= 0)
        return bracket->high - 1;
    double amount =
        (double)amounts[ends[1]] + ((double)search->card_bytes[card] -
                                    (double)point_at(search, combination, ends[1])->need_bytes) *
                                       run / rise;
    while (found + 1 < bracket->high && (double)amounts[found + 1] <= amount)
        found++;
    return found;
}

static bool is_empty(const struct mt_search *search,
                     const struct mt_search_combination *combination)
{
    for (size_t i = 0; i < search->size_count; i++)
        if (!is_untested(search, combination, (long)i))
            return false;
    return true;
}

/* The next value to evaluate for a card; -1: none. */
static long next_for(const struct mt_search *search, struct mt_search_combination *combination,
                     size_t card)
{
    const struct bracket bracket = bracket_of(search, combination, card);
    long last = (long)search->size_count - 1;

    if (bracket.low + 1 >= bracket.high)
        return -1;
    if (is_empty(search, combination) ||
        (bracket.low > bracket.fits && is_untested(search, combination, bracket.low + 1)))
        return bracket.low + 1;
    if (bracket.high > last && is_untested(search, combination, last))
        return last;
    return nearest(search, combination, &bracket, guess(search, combination, card, &bracket));
}

/* Notes a need that falls although the value rises, and too many failures. */
static void judge(const struct mt_search *search, struct mt_search_combination *combination)
{
    uint64_t most_bytes = 0;
    size_t failed = 0, others = 0;
    bool is_too_large = false;

    for (size_t i = 0; i < search->size_count; i++) {
        const struct mt_search_point *point = point_at(search, combination, i);

        failed += point->state == MT_SEARCH_FAILED;
        others += point->state == MT_SEARCH_NEED || point->state == MT_SEARCH_TOO_LARGE;
        if (point->state == MT_SEARCH_NEED &&
            (is_too_large || (double)point->need_bytes < (double)most_bytes * (1 - TOLERANCE)))
            combination->is_contradicted = true;
        if (point->state == MT_SEARCH_NEED)
            most_bytes = mt_max_u64(most_bytes, point->need_bytes);
        is_too_large |= point->state == MT_SEARCH_TOO_LARGE;
    }
    combination->gave_up = failed >= MAX_FAILURES && failed > others;
}

static void finish(const struct mt_search *search, struct mt_search_combination *combination)
{
    for (size_t card = 0; card < search->card_count; card++) {
        const struct bracket bracket = bracket_of(search, combination, card);
        long high = combination->is_contradicted ? (long)search->size_count : bracket.high;

        combination->best[card] = bracket.fits < 0 ? MT_SEARCH_NONE : (size_t)bracket.fits;
        combination->is_exact[card] = bracket.low == bracket.fits && !combination->gave_up;
        for (long i = bracket.low + 1; i < high; i++) {
            const struct mt_search_point *point = point_at(search, combination, (size_t)i);

            combination->is_exact[card] &=
                point->state == MT_SEARCH_NEED || point->state == MT_SEARCH_TOO_LARGE;
        }
    }
}

static bool is_in(const size_t *round, size_t count, size_t point)
{
    for (size_t i = 0; i < count; i++)
        if (round[i] == point)
            return true;
    return false;
}

static void add(const struct mt_search *search, const struct mt_search_combination *combination,
                long size, size_t most, size_t *round, size_t *count)
{
    if (size < 0 || *count >= most)
        return;
    size_t point =
        mt_search_point_of(search, (size_t)(combination - search->combinations), (size_t)size);
    if (!is_in(round, *count, point))
        round[(*count)++] = point;
}

/* Adds the values of one combination. Returns false if there is none: it is complete. */
static bool add_values(const struct mt_search *search, struct mt_search_combination *combination,
                       size_t most, size_t *round, size_t *count)
{
    bool is_open = false;

    judge(search, combination);
    if (combination->gave_up)
        return false;
    for (size_t i = 0; combination->is_contradicted && i < search->size_count; i++)
        if (is_untested(search, combination, (long)i)) {
            add(search, combination, (long)i, most, round, count);
            is_open = true;
        }
    if (combination->is_contradicted)
        return is_open;
    for (size_t card = 0; card < search->card_count; card++) {
        long next = next_for(search, combination, card);

        is_open |= next >= 0;
        add(search, combination, next, most, round, count);
        if (next >= 0 && is_empty(search, combination))
            break; /* the smallest value that matters first: if it fails, so may all of them */
    }
    return is_open;
}

/* Adds the values of one combination, after its known points are set. */
static bool advance(const struct mt_search *search, struct mt_search_combination *combination,
                    size_t most, size_t *round, size_t *count)
{
    const size_t before = *count;
    bool is_open = add_values(search, combination, most, round, count);

    if (!is_open || combination->is_begun || !search->recall)
        return is_open;
    combination->is_begun = true;
    search->recall(search->context, (size_t)(combination - search->combinations));
    *count = before;
    return add_values(search, combination, most, round, count);
}

/* Completes what other combinations wait for, until there is a point to evaluate. */
size_t mt_search_next(struct mt_search *search, size_t most, size_t *round)
{
    size_t count = 0;
    bool is_changed = true;

    while (is_changed && !count) {
        is_changed = false;
        for (size_t i = 0; i < search->combination_count; i++) {
            struct mt_search_combination *combination = &search->combinations[i];

            if (!combination->is_in_shard || combination->is_done || waits(search, combination))
                continue;
            combination->is_done = !advance(search, combination, most, round, &count);
            is_changed |= combination->is_done;
            finish(search, combination);
        }
    }
    return count;
}

/* Whether the best point of `a` beats that of `b` on a card. */
static bool is_better(const struct mt_search *search, const struct mt_search_combination *a,
                      const struct mt_search_combination *b, size_t card)
{
    const struct order order = order_of(search, a, b);
    bool is_same = order.lists_equal && order.sizes_less && order.sizes_more;

    return a != b && !is_same && a->best[card] != MT_SEARCH_NONE && order.lists_first &&
           order.sizes_more && a->best[card] >= b->best[card] && a->devices <= b->devices;
}

size_t mt_search_front(const struct mt_search *search, size_t card, size_t *combinations)
{
    size_t count = 0;

    for (size_t i = 0; i < search->combination_count; i++) {
        const struct mt_search_combination *combination = &search->combinations[i];
        bool is_beaten = combination->best[card] == MT_SEARCH_NONE;

        for (size_t j = 0; !is_beaten && j < search->combination_count; j++)
            is_beaten = is_better(search, &search->combinations[j], combination, card);
        if (!is_beaten)
            combinations[count++] = i;
    }
    return count;
}
