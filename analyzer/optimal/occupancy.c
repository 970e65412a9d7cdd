#include "occupancy.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "process_memory.h"

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

void mt_occupancy_clear(struct mt_occupancy *occupancy)
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

    for (i = 0; i < search->count; i++) {
        if (search->at[i] < search->end[i] && search->at[i]->begin < end)
            end = search->at[i]->begin;
    }
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
