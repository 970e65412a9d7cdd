/* A plan of addresses: the occupied ranges that it must avoid, and its check by a second rule. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "clock.h"
#include "grow.h"
#include "placement.h"
#include "process_memory.h"
#include "sorted.h"

struct range {
    uint64_t begin, end;
};

/* Sorted, disjoint and not adjacent. */
struct ranges {
    struct range *items;
    size_t count, capacity;
};

struct mt_occupancy_node {
    struct ranges
        whole; /* taken during all of the node's time, except by takers of all of its parent's */
    struct ranges
        some; /* taken at some time of the node, except by takers of all of an ancestor's time */
};

/* Maximum number of nodes that a query touches: two paths, two nodes per level. */
enum { MAX_LISTS = 160 };

void mt_occupancy_init(struct mt_occupancy *occupancy, uint32_t sections)
{
    occupancy->leaves = 1;
    while (occupancy->leaves < sections)
        occupancy->leaves *= 2;
    occupancy->nodes = mt_memory_zeroed(2 * (size_t)occupancy->leaves, sizeof *occupancy->nodes);
}

/* Frees all ranges; keeps the memory. */
static void occupancy_clear(struct mt_occupancy *occupancy)
{
    size_t i;

    for (i = 0; i < 2 * (size_t)occupancy->leaves; i++) {
        occupancy->nodes[i].whole.count = 0;
        occupancy->nodes[i].some.count = 0;
    }
}

void mt_occupancy_release(struct mt_occupancy *occupancy)
{
    size_t i;

    for (i = 0; occupancy->nodes && i < 2 * (size_t)occupancy->leaves; i++) {
        free(occupancy->nodes[i].whole.items);
        free(occupancy->nodes[i].some.items);
    }
    free(occupancy->nodes);
    memset(occupancy, 0, sizeof *occupancy);
}

/* First range that ends at or after `address`. */
static size_t first_ending(const struct ranges *ranges, uint64_t address)
{
    size_t low = 0, high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].end < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void ranges_add(struct ranges *ranges, uint64_t begin, uint64_t end)
{
    size_t at = first_ending(ranges, begin), after = at;

    while (after < ranges->count && ranges->items[after].begin <= end)
        after++;
    if (at == after) {
        if (ranges->count == ranges->capacity)
            mt_grow_to(&ranges->items, &ranges->capacity, ranges->count + 1, sizeof *ranges->items);
        memmove(ranges->items + at + 1, ranges->items + at,
                (ranges->count - at) * sizeof *ranges->items);
        ranges->items[at] = (struct range){begin, end};
        ranges->count++;
        return;
    }
    if (begin < ranges->items[at].begin)
        ranges->items[at].begin = begin;
    ranges->items[at].end = ranges->items[after - 1].end > end ? ranges->items[after - 1].end : end;
    memmove(ranges->items + at + 1, ranges->items + after,
            (ranges->count - after) * sizeof *ranges->items);
    ranges->count -= after - at - 1;
}

/* The nodes whose time is in [first, last) while their parent's is not (inside), and all nodes
 * above these (above). */
struct cut {
    uint32_t inside[MAX_LISTS / 2], above[MAX_LISTS / 2];
    unsigned inside_count, above_count;
};

/* Whether the node's time extends beyond [first, last). */
static bool reaches_out(uint32_t node, uint64_t width, uint32_t leaves, uint32_t first,
                        uint32_t last)
{
    uint64_t begin = node * width - leaves;

    return begin < first || begin + width > last;
}

static void make_cut(struct cut *cut, uint32_t leaves, uint32_t first, uint32_t last)
{
    uint32_t low = leaves + first, high = leaves + last;
    uint64_t width;

    cut->inside_count = cut->above_count = 0;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            cut->inside[cut->inside_count++] = low++;
        if (high & 1)
            cut->inside[cut->inside_count++] = --high;
    }
    low = leaves + first;
    high = leaves + last - 1;
    for (width = 1; low > 0; low /= 2, high /= 2, width *= 2) {
        if (reaches_out(low, width, leaves, first, last))
            cut->above[cut->above_count++] = low;
        if (high != low && reaches_out(high, width, leaves, first, last))
            cut->above[cut->above_count++] = high;
    }
}

void mt_occupancy_take(struct mt_occupancy *occupancy, uint32_t first, uint32_t last,
                       uint64_t begin, uint64_t end)
{
    struct cut cut;
    unsigned i;

    make_cut(&cut, occupancy->leaves, first, last);
    for (i = 0; i < cut.inside_count; i++) {
        struct mt_occupancy_node *node = &occupancy->nodes[cut.inside[i]];
        ranges_add(&node->whole, begin, end);
        ranges_add(&node->some, begin, end);
    }
    for (i = 0; i < cut.above_count; i++)
        ranges_add(&occupancy->nodes[cut.above[i]].some, begin, end);
}

struct search {
    const struct range *at[MAX_LISTS], *end[MAX_LISTS]; /* what lies above the search */
    unsigned count;
};

static void search_add(struct search *search, const struct ranges *ranges)
{
    if (!ranges->count)
        return;
    search->at[search->count] = ranges->items;
    search->end[search->count++] = ranges->items + ranges->count;
}

/* The lowest address at or above `address` at which `bytes` are free. */
static uint64_t next_free(struct search *search, uint64_t address, uint64_t bytes)
{
    unsigned i = 0, agreed = 0;

    while (agreed < search->count) {
        const struct range *range = search->at[i];
        while (range < search->end[i] && range->end <= address)
            range++;
        agreed++;
        while (range < search->end[i] && range->begin < address + bytes) {
            address = (range++)->end;
            agreed = 1;
        }
        search->at[i] = range;
        i = i + 1 == search->count ? 0 : i + 1;
    }
    return address;
}

/* End of the gap at which next_free stopped. */
static uint64_t end_of_gap(const struct search *search)
{
    uint64_t end = UINT64_MAX;
    unsigned i;

    for (i = 0; i < search->count; i++)
        if (search->at[i] < search->end[i] && search->at[i]->begin < end)
            end = search->at[i]->begin;
    return end;
}

uint64_t mt_occupancy_find(const struct mt_occupancy *occupancy, uint32_t first, uint32_t last,
                           uint64_t bytes, bool best)
{
    uint64_t address, end, found = 0, smallest = UINT64_MAX;
    struct search search = {.count = 0};
    struct cut cut;
    unsigned i;

    make_cut(&cut, occupancy->leaves, first, last);
    for (i = 0; i < cut.above_count; i++)
        search_add(&search, &occupancy->nodes[cut.above[i]].whole);
    for (i = 0; i < cut.inside_count; i++)
        search_add(&search, &occupancy->nodes[cut.inside[i]].some);
    address = next_free(&search, 0, bytes);
    if (!best)
        return address;
    for (;; address = next_free(&search, end, bytes)) {
        end = end_of_gap(&search);
        if (end == UINT64_MAX)
            return smallest == UINT64_MAX ? address : found;
        if (end - address < smallest) {
            smallest = end - address;
            found = address;
        }
    }
}

/* Checks plans; shares no code with the planner. Goes through time with a tree over addresses that
 * records which are in use. */

struct instant {
    uint64_t time;
    uint32_t buffer;
    bool begins;
};

struct address_tree {
    uint64_t *edges; /* all starts and ends of ranges, sorted and unique */
    size_t edge_count;
    uint32_t *users;  /* of a node's whole range */
    bool *used_below; /* at a node or anywhere below it */
    uint32_t leaves;
};

MT_DEFINE_ORDER(compare_instants, struct instant, MT_ASCENDING(time) || MT_ASCENDING(begins))

static void tree_init(struct address_tree *tree, const struct mt_buffers *buffers,
                      const uint64_t *addresses)
{
    size_t i, kept = 0;

    tree->edges = mt_memory_zeroed(2 * buffers->count + 1, sizeof *tree->edges);
    for (i = 0; i < buffers->count; i++) {
        tree->edges[2 * i] = addresses[i];
        tree->edges[2 * i + 1] = addresses[i] + buffers->items[i].bytes;
    }
    qsort(tree->edges, 2 * buffers->count, sizeof *tree->edges, mt_ascending_u64);
    for (i = 0; i < 2 * buffers->count; i++)
        if (!kept || tree->edges[kept - 1] != tree->edges[i])
            tree->edges[kept++] = tree->edges[i];
    tree->edge_count = kept;
    for (tree->leaves = 1; tree->leaves < kept;)
        tree->leaves *= 2;
    tree->users = mt_memory_zeroed(2 * (size_t)tree->leaves, sizeof *tree->users);
    tree->used_below = mt_memory_zeroed(2 * (size_t)tree->leaves, sizeof *tree->used_below);
}

static uint32_t leaf_of(const struct address_tree *tree, uint64_t edge)
{
    const uint64_t *found =
        bsearch(&edge, tree->edges, tree->edge_count, sizeof *tree->edges, mt_ascending_u64);

    return tree->leaves + (uint32_t)(found - tree->edges);
}

static bool used_above(const struct address_tree *tree, uint32_t node)
{
    for (node /= 2; node > 0; node /= 2)
        if (tree->users[node])
            return true;
    return false;
}

static void change_users(struct address_tree *tree, uint32_t node, int change)
{
    tree->users[node] += (uint32_t)change;
    for (; node > 0; node /= 2) {
        bool below =
            node < tree->leaves && (tree->used_below[2 * node] || tree->used_below[2 * node + 1]);
        tree->used_below[node] = tree->users[node] > 0 || below;
    }
}

/* Takes or returns [begin, end); false if part of it is in use already. */
static bool change_range(struct address_tree *tree, uint64_t begin, uint64_t end, bool take)
{
    uint32_t low = leaf_of(tree, begin), high = leaf_of(tree, end);
    bool valid = true;
    uint32_t ends[2];
    unsigned i;

    for (; low < high; low /= 2, high /= 2) {
        ends[0] = low & 1 ? low++ : 0;
        ends[1] = high & 1 ? --high : 0;
        for (i = 0; i < 2; i++) {
            if (!ends[i])
                continue;
            valid = valid && (!take || (!tree->used_below[ends[i]] && !used_above(tree, ends[i])));
            change_users(tree, ends[i], take ? 1 : -1);
        }
    }
    return valid;
}

static bool check_all(const struct mt_buffers *buffers, const uint64_t *addresses,
                      struct instant *instants, struct address_tree *tree)
{
    bool valid = true;
    uint32_t i;

    for (i = 0; i < buffers->count; i++) {
        instants[2 * i] = (struct instant){buffers->items[i].begin, i, true};
        instants[2 * i + 1] = (struct instant){buffers->items[i].end, i, false};
    }
    qsort(instants, 2 * buffers->count, sizeof *instants, compare_instants);
    for (i = 0; valid && i < 2 * buffers->count; i++) {
        uint64_t address = addresses[instants[i].buffer];
        valid = change_range(tree, address, address + buffers->items[instants[i].buffer].bytes,
                             instants[i].begins);
    }
    return valid;
}

void mt_placement_check(const struct mt_buffers *buffers, const uint64_t *addresses, bool *valid,
                        uint64_t *height)
{
    struct instant *instants = mt_memory_zeroed(2 * buffers->count + 1, sizeof *instants);
    struct address_tree tree = {0};
    size_t i;

    *valid = true;
    *height = 0;
    for (i = 0; i < buffers->count; i++) {
        uint64_t end;
        if (__builtin_add_overflow(addresses[i], buffers->items[i].bytes, &end))
            *valid = false;
        else if (end > *height)
            *height = end;
    }
    tree_init(&tree, buffers, addresses);
    if (*valid)
        *valid = check_all(buffers, addresses, instants, &tree);
    free(instants);
    free(tree.edges);
    free(tree.users);
    free(tree.used_below);
}

enum { MAX_CRITERIA = 4, PLACEMENTS_A_LOOK = 1024 };

struct ranked {
    double keys[MAX_CRITERIA];
    uint32_t item;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    unsigned i;

    for (i = 0; i < MAX_CRITERIA; i++)
        if (a->keys[i] > b->keys[i] || a->keys[i] < b->keys[i])
            return a->keys[i] > b->keys[i] ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Largest load in the life of every item, as a table of powers of two. */
struct load_table {
    uint64_t *rows[32];
    unsigned count;
};

static void load_table_release(struct load_table *table)
{
    unsigned i;

    for (i = 1; i < table->count; i++) /* row 0 is the instance's */
        free(table->rows[i]);
}

static void load_table_init(struct load_table *table, const struct mt_instance *instance)
{
    uint32_t width = 1, sections = instance->section_count, s;

    table->rows[0] = instance->load;
    for (table->count = 1; 2 * width <= sections; width *= 2) {
        const uint64_t *row = table->rows[table->count - 1];
        uint64_t *next = mt_memory_zeroed(sections, sizeof *next);
        for (s = 0; s + 2 * width <= sections; s++)
            next[s] = row[s] > row[s + width] ? row[s] : row[s + width];
        table->rows[table->count++] = next;
    }
}

static uint64_t largest_load(const struct load_table *table, const struct mt_item *item)
{
    unsigned level = 31u - (unsigned)__builtin_clz(item->last - item->first);
    uint64_t left = table->rows[level][item->first];
    uint64_t right = table->rows[level][item->last - (1u << level)];

    return left > right ? left : right;
}

static double key_of(const struct mt_item *item, char criterion, const struct load_table *loads)
{
    switch (criterion) {
    case 'Z': return (double)item->bytes;
    case 'W': return (double)item->duration;
    case 'A': return (double)item->bytes * (double)item->duration;
    case 'T': return (double)largest_load(loads, item);
    case 'L': return (double)item->first;
    case 'U': return (double)item->last;
    default: return 0;
    }
}

void mt_placement_sort(const struct mt_instance *instance, const char *criteria, uint32_t *order)
{
    struct ranked *ranked = mt_memory_zeroed((size_t)instance->count + 1, sizeof *ranked);
    struct load_table loads = {.count = 0};
    uint32_t i, k;

    load_table_init(&loads, instance);
    for (i = 0; i < instance->count; i++) {
        ranked[i].item = i;
        for (k = 0; k < MAX_CRITERIA && criteria[k]; k++)
            ranked[i].keys[k] = key_of(&instance->items[i], criteria[k], &loads);
    }
    qsort(ranked, instance->count, sizeof *ranked, compare_ranked);
    for (i = 0; i < instance->count; i++)
        order[i] = ranked[i].item;
    load_table_release(&loads);
    free(ranked);
}

void mt_placement_run(const struct mt_instance *instance, const uint32_t *order, enum mt_fit fit,
                      uint64_t limit, struct mt_occupancy *occupancy, uint64_t deadline_ns,
                      uint64_t *addresses, uint32_t *placed, uint64_t *height)
{
    occupancy_clear(occupancy);
    *height = 0;
    for (*placed = 0; *placed < instance->count; (*placed)++) {
        const struct mt_item *item = &instance->items[order[*placed]];
        uint64_t address =
            mt_occupancy_find(occupancy, item->first, item->last, item->bytes, fit == MT_FIT_BEST);
        if (address + item->bytes > limit ||
            (*placed % PLACEMENTS_A_LOOK == 0 && mt_deadline_passed(deadline_ns)))
            break;
        mt_occupancy_take(occupancy, item->first, item->last, address, address + item->bytes);
        addresses[order[*placed]] = address;
        *height = address + item->bytes > *height ? address + item->bytes : *height;
    }
}
