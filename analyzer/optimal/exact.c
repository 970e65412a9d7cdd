#include "placement.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "monotonic_clock.h"
#include "process_memory.h"
#include "sorted.h"

enum { WORD_BITS = 64, NODES_A_LOOK = 256 };

/* An address that a neighbor's placement raised. */
struct raised {
    uint64_t lowest;
    uint32_t item;
};

struct sorted_item {
    uint64_t key, tie;
    uint32_t item;
};

struct old_rank {
    uint32_t item, rank;
};

struct mt_exact {
    struct mt_arena arena; /* has all arrays */
    const struct mt_instance *instance;
    uint64_t capacity;
    uint64_t *lowest;   /* of each item: no lower address is free */
    uint64_t *left;     /* of each section: bytes not placed yet */
    uint32_t *crossing; /* items not placed that live in sections s and s + 1 */
    uint32_t *rank;     /* position in the order */
    uint32_t *by_rank;  /* the order */
    bool *placed;
    uint32_t *neighbour_start, *neighbours; /* pairs that share a section */
    uint64_t *words;                        /* scratch: a bit for each section or rank */
    uint64_t *addresses;

    uint32_t *lists; /* stack of lists of items */
    size_t list_top;
    struct raised *raised; /* stack of changes */
    size_t raised_top;

    uint64_t nodes, deadline_ns;
    bool gave_up;

    bool by_load;               /* ranks follow the remaining load beside an item */
    uint32_t *base;             /* rank in the caller's order */
    struct sorted_item *sorted; /* scratch */
    uint32_t *spare;            /* scratch: ranks to reassign */
    struct old_rank *old_ranks; /* stack of changes */
    size_t old_ranks_top;
};

/* Remaining items of a part of time, by lowest address, then by rank. */
struct part {
    const uint32_t *items;
    uint32_t count, first, last; /* sections [first, last) */
};

static bool share_section(const struct mt_item *a, const struct mt_item *b)
{
    return a->first < b->last && b->first < a->last;
}

static void find_neighbours(struct mt_exact *exact)
{
    const struct mt_instance *instance = exact->instance;
    uint32_t i, at;

    for (uint32_t pass = 0; pass < 2; pass++) {
        for (i = 0, at = 0; i < instance->count; i++) {
            exact->neighbour_start[i] = at;
            for (uint32_t j = 0; j < instance->count; j++) {
                if (i == j || !share_section(&instance->items[i], &instance->items[j]))
                    continue;
                if (pass == 1)
                    exact->neighbours[at] = j;
                at++;
            }
        }
        exact->neighbour_start[instance->count] = at;
        if (pass == 0)
            exact->neighbours = mt_arena_array(&exact->arena, at, sizeof *exact->neighbours);
    }
}

struct mt_exact *mt_exact_new(const struct mt_instance *instance)
{
    size_t n = (size_t)instance->count + 1, s = (size_t)instance->section_count + 1;
    struct mt_exact *exact;

    if (instance->count > MT_EXACT_MAX_ITEMS)
        return NULL;
    exact = mt_memory_zeroed(1, sizeof *exact);
    struct mt_arena *arena = &exact->arena;
    exact->instance = instance;
    exact->lowest = mt_arena_array(arena, n, sizeof *exact->lowest);
    exact->left = mt_arena_array(arena, s, sizeof *exact->left);
    exact->crossing = mt_arena_array(arena, s, sizeof *exact->crossing);
    exact->rank = mt_arena_array(arena, n, sizeof *exact->rank);
    exact->by_rank = mt_arena_array(arena, n, sizeof *exact->by_rank);
    exact->placed = mt_arena_array(arena, n, sizeof *exact->placed);
    exact->base = mt_arena_array(arena, n, sizeof *exact->base);
    exact->sorted = mt_arena_array(arena, n, sizeof *exact->sorted);
    exact->spare = mt_arena_array(arena, n, sizeof *exact->spare);
    exact->old_ranks = mt_arena_array(arena, n * (n + 1), sizeof *exact->old_ranks);
    exact->neighbour_start = mt_arena_array(arena, n, sizeof *exact->neighbour_start);
    exact->words = mt_arena_array(arena, (n > s ? n : s) / WORD_BITS + 1, sizeof *exact->words);
    exact->addresses = mt_arena_array(arena, n, sizeof *exact->addresses);
    /* A level has one list of remaining items, and its cut into parts. */
    exact->lists = mt_arena_array(arena, 2 * n * (n + 1), sizeof *exact->lists);
    exact->raised = mt_arena_array(arena, n * n / 2 + n, sizeof *exact->raised);
    find_neighbours(exact);
    return exact;
}

void mt_exact_free(struct mt_exact *exact)
{
    if (exact)
        mt_arena_release(&exact->arena);
    free(exact);
}

static bool time_is_up(const struct mt_exact *exact)
{
    return exact->nodes % NODES_A_LOOK == 0 && mt_deadline_passed(exact->deadline_ns);
}

/* Raises the items beside `item` onto its top. Returns false if one does not fit above it; *alone:
 * no remaining item lives beside it. */
static bool raise_neighbors(struct mt_exact *exact, uint32_t item, uint64_t top, bool *alone)
{
    const struct mt_item *items = exact->instance->items;
    bool fits = true;

    *alone = true;
    for (uint32_t i = exact->neighbour_start[item]; i < exact->neighbour_start[item + 1]; i++) {
        uint32_t other = exact->neighbours[i];
        if (exact->placed[other])
            continue;
        *alone = false;
        if (exact->lowest[other] >= top)
            continue;
        exact->raised[exact->raised_top++] = (struct raised){exact->lowest[other], other};
        exact->lowest[other] = top;
        fits = fits && top + items[other].bytes <= exact->capacity;
    }
    return fits;
}

static void place(struct mt_exact *exact, uint32_t item)
{
    const struct mt_item *what = &exact->instance->items[item];

    exact->placed[item] = true;
    exact->addresses[item] = exact->lowest[item];
    for (uint32_t s = what->first; s < what->last; s++)
        exact->left[s] -= what->bytes;
    for (uint32_t s = what->first; s + 1 < what->last; s++)
        exact->crossing[s]--;
}

static void take_back(struct mt_exact *exact, uint32_t item, size_t raised_top)
{
    const struct mt_item *what = &exact->instance->items[item];

    while (exact->raised_top > raised_top) {
        const struct raised *raised = &exact->raised[--exact->raised_top];
        exact->lowest[raised->item] = raised->lowest;
    }
    for (uint32_t s = what->first; s < what->last; s++)
        exact->left[s] += what->bytes;
    for (uint32_t s = what->first; s + 1 < what->last; s++)
        exact->crossing[s]++;
    exact->placed[item] = false;
}

/* The rest of `part` after `item` was placed and others were raised to `top`, sorted again: the
 * items at `top` are collected and inserted by rank. */
static struct part order_left(struct mt_exact *exact, const struct part *part, uint32_t item,
                              uint64_t top)
{
    uint32_t *list = exact->lists + exact->list_top, i, count = 0;
    struct part left = {list, 0, part->first, part->last};
    uint32_t words = exact->instance->count / WORD_BITS + 1;

    memset(exact->words, 0, words * sizeof *exact->words);
    for (i = 0; i < part->count && exact->lowest[part->items[i]] <= top; i++) {
        uint32_t other = part->items[i], rank = exact->rank[other];
        if (other == item)
            continue;
        if (exact->lowest[other] < top)
            list[count++] = other;
        else
            exact->words[rank / WORD_BITS] |= UINT64_C(1) << (rank % WORD_BITS);
    }
    for (uint32_t w = 0; w < words; w++) {
        uint64_t bits = exact->words[w];
        for (; bits; bits &= bits - 1)
            list[count++] = exact->by_rank[w * WORD_BITS + (uint32_t)__builtin_ctzll(bits)];
    }
    for (; i < part->count; i++)
        if (part->items[i] != item)
            list[count++] = part->items[i];
    exact->list_top += count;
    left.count = count;
    return left;
}

/* Whether each section can hold its remaining items above the lowest address that any of them may
 * have. Items come by rising address, so the first one in a section determines it; no item goes
 * below `floor`. */
static bool sections_suffice(struct mt_exact *exact, const struct part *part, uint64_t floor)
{
    uint64_t *open = exact->words;
    uint32_t first_word = part->first / WORD_BITS, last_word = (part->last - 1) / WORD_BITS;
    uint32_t still_open = part->last - part->first;

    memset(open + first_word, 0xff, (last_word - first_word + 1) * sizeof *open);
    for (uint32_t i = 0; i < part->count && still_open; i++) {
        const struct mt_item *item = &exact->instance->items[part->items[i]];
        uint64_t lowest = exact->lowest[part->items[i]];
        uint64_t room = exact->capacity - (lowest > floor ? lowest : floor);
        for (uint32_t w = item->first / WORD_BITS; w <= (item->last - 1) / WORD_BITS; w++) {
            uint64_t mask = UINT64_MAX;
            if (w == item->first / WORD_BITS)
                mask <<= item->first % WORD_BITS;
            if (w == (item->last - 1) / WORD_BITS)
                mask &= UINT64_MAX >> (WORD_BITS - 1 - (item->last - 1) % WORD_BITS);
            for (uint64_t bits = open[w] & mask; bits; bits &= bits - 1) {
                if (exact->left[w * WORD_BITS + (uint32_t)__builtin_ctzll(bits)] > room)
                    return false;
                still_open--;
            }
            open[w] &= ~mask;
        }
    }
    return true;
}

static bool search_part(struct mt_exact *exact, const struct part *part, uint64_t floor,
                        uint32_t floor_rank);

MT_DEFINE_ORDER(compare_sorted_items, struct sorted_item, MT_ASCENDING(key) || MT_ASCENDING(tie))

static uint64_t most_left(const struct mt_exact *exact, const struct mt_item *item)
{
    uint64_t most = 0;

    for (uint32_t s = item->first; s < item->last; s++)
        most = exact->left[s] > most ? exact->left[s] : most;
    return most;
}

/* Permutes the ranks of the items by remaining load, largest first, and sorts them again. */
static void rank_by_load(struct mt_exact *exact, uint32_t *items, uint32_t count)
{
    struct sorted_item *sorted = exact->sorted;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t item = items[i];
        exact->spare[i] = exact->rank[item];
        exact->old_ranks[exact->old_ranks_top++] = (struct old_rank){item, exact->rank[item]};
        sorted[i].key = UINT64_MAX - most_left(exact, &exact->instance->items[item]);
        sorted[i].tie = exact->base[item];
        sorted[i].item = item;
    }
    qsort(exact->spare, count, sizeof *exact->spare, mt_ascending_u32);
    qsort(sorted, count, sizeof *sorted, compare_sorted_items);
    for (uint32_t i = 0; i < count; i++) {
        exact->rank[sorted[i].item] = exact->spare[i];
        exact->by_rank[exact->spare[i]] = sorted[i].item;
        sorted[i].key = exact->lowest[sorted[i].item];
        sorted[i].tie = exact->spare[i];
    }
    qsort(sorted, count, sizeof *sorted, compare_sorted_items);
    for (uint32_t i = 0; i < count; i++)
        items[i] = sorted[i].item;
}

static void rank_as_before(struct mt_exact *exact, size_t old_ranks_top)
{
    while (exact->old_ranks_top > old_ranks_top) {
        const struct old_rank *old = &exact->old_ranks[--exact->old_ranks_top];
        exact->rank[old->item] = old->rank;
        exact->by_rank[old->rank] = old->item;
    }
}

/* Searches the items of `left` that live in [first, last): nothing connects them with the rest. */
static bool search_cut(struct mt_exact *exact, const struct part *left, uint32_t first,
                       uint32_t last, uint64_t floor, uint32_t floor_rank)
{
    uint32_t *list = exact->lists + exact->list_top;
    struct part part = {list, 0, first, last};
    size_t list_top = exact->list_top, old_ranks_top = exact->old_ranks_top;

    for (uint32_t i = 0; i < left->count; i++) {
        const struct mt_item *item = &exact->instance->items[left->items[i]];
        if (item->first < last && first < item->last)
            list[part.count++] = left->items[i];
    }
    if (!part.count)
        return true;
    exact->list_top += part.count;
    if (exact->by_load) {
        rank_by_load(exact, list, part.count);
        floor_rank = 0;
    }
    bool found = search_part(exact, &part, floor, floor_rank);
    rank_as_before(exact, old_ranks_top);
    exact->list_top = list_top;
    return found;
}

/* If only `item` connected two sections of its life, the rest splits into parts. Each part is
 * searched alone, and one failure is enough. */
static bool search_left(struct mt_exact *exact, const struct part *left, uint32_t item,
                        uint64_t floor, uint32_t floor_rank)
{
    const struct mt_item *what = &exact->instance->items[item];
    uint32_t begin = left->first;

    for (uint32_t s = what->first; s + 1 < what->last; s++) {
        if (exact->crossing[s])
            continue;
        if (!search_cut(exact, left, begin, s + 1, floor, floor_rank))
            return false;
        begin = s + 1;
    }
    if (begin == left->first)
        return search_part(exact, left, floor, floor_rank);
    return search_cut(exact, left, begin, left->last, floor, floor_rank);
}

/* The rest must start below this: otherwise something would fit under it. */
static uint64_t lowest_top(const struct mt_exact *exact, const struct part *part)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < part->count; i++) {
        uint64_t top = exact->lowest[part->items[i]] + exact->instance->items[part->items[i]].bytes;
        lowest = top < lowest ? top : lowest;
    }
    return lowest;
}

/* Places `item` and searches the rest. *alone as in raise_neighbors. */
static bool search_with(struct mt_exact *exact, const struct part *part, uint32_t item, bool *alone)
{
    uint64_t address = exact->lowest[item], top = address + exact->instance->items[item].bytes;
    size_t raised_top = exact->raised_top, list_top = exact->list_top;
    uint32_t rank = exact->rank[item];
    bool found = false;

    place(exact, item);
    if (raise_neighbors(exact, item, top, alone)) {
        struct part left = order_left(exact, part, item, top);
        found = !left.count || (sections_suffice(exact, &left, address) &&
                                search_left(exact, &left, item, address, rank));
    }
    exact->list_top = list_top;
    take_back(exact, item, raised_top);
    return found;
}

/* Recursion is as deep as there are items, at most MT_EXACT_MAX_ITEMS. */
static bool search_part(struct mt_exact *exact, const struct part *part, uint64_t floor,
                        uint32_t floor_rank)
{
    uint64_t limit = lowest_top(exact, part);

    for (uint32_t i = 0; i < part->count && !exact->gave_up; i++) {
        uint32_t item = part->items[i];
        bool alone;
        if (exact->lowest[item] >= limit)
            return false;
        if (exact->lowest[item] < floor ||
            (exact->lowest[item] == floor && exact->rank[item] < floor_rank))
            continue;
        if (!exact->nodes || time_is_up(exact)) {
            exact->gave_up = true;
            return false;
        }
        exact->nodes--;
        if (search_with(exact, part, item, &alone))
            return true;
        if (alone)
            return false;
    }
    return false;
}

static void reset(struct mt_exact *exact, const uint32_t *order)
{
    const struct mt_instance *instance = exact->instance;

    for (uint32_t i = 0; i < instance->count; i++) {
        exact->lowest[i] = 0;
        exact->placed[i] = false;
        exact->by_rank[i] = order[i];
        exact->rank[order[i]] = exact->base[order[i]] = i;
        exact->lists[i] = order[i];
    }
    exact->list_top = instance->count;
    exact->raised_top = 0;
    exact->gave_up = false;
    memcpy(exact->left, instance->load, instance->section_count * sizeof *exact->left);
    memset(exact->crossing, 0, instance->section_count * sizeof *exact->crossing);
    for (uint32_t i = 0; i < instance->count; i++)
        for (uint32_t s = instance->items[i].first; s + 1 < instance->items[i].last; s++)
            exact->crossing[s]++;
    exact->old_ranks_top = 0;
    if (exact->by_load)
        rank_by_load(exact, exact->lists, instance->count);
    exact->old_ranks_top = 0;
}

enum mt_exact_answer mt_exact_search(struct mt_exact *exact, uint64_t capacity,
                                     const uint32_t *order, bool by_load, uint64_t *nodes,
                                     uint64_t deadline_ns, uint64_t *addresses)
{
    const struct mt_instance *instance = exact->instance;
    struct part all = {exact->lists, instance->count, 0, instance->section_count};

    if (instance->bound > capacity)
        return MT_EXACT_IMPOSSIBLE;
    exact->capacity = capacity;
    exact->nodes = *nodes;
    exact->deadline_ns = deadline_ns;
    exact->by_load = by_load;
    reset(exact, order);
    bool found = !all.count || search_part(exact, &all, 0, 0);
    *nodes = exact->nodes;
    if (found) {
        memcpy(addresses, exact->addresses, instance->count * sizeof *addresses);
        return MT_EXACT_FOUND;
    }
    return exact->gave_up ? MT_EXACT_GAVE_UP : MT_EXACT_IMPOSSIBLE;
}
