/* A plan of addresses: the occupied ranges that it must avoid, and its check by a second rule. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "check.h"
#include "grow.h"
#include "map.h"
#include "monotonic_clock.h"
#include "placement.h"
#include "process_memory.h"
#include "sorted.h"
#include "util.h"

struct range {
    uint64_t begin, end;
};

/* Sorted, disjoint and not adjacent. */
struct ranges {
    struct range *items;
    uint32_t count, capacity;
};

struct mt_occupancy_node {
    struct ranges whole; /* taken during all of the node's time, except by takers of all the time of
                            the node WHOLE_LEVELS above; only in each WHOLE_LEVELS-th level */
    struct ranges
        some; /* taken at some time of the node, except by takers of all of an ancestor's time */
};

/* A run of sections. Its list has the placed items that live in only a part of it. */
struct mt_occupancy_bucket {
    uint32_t first_section;
    uint32_t list, list_end; /* in the array of all lists, by address; room for all changes in the
                                bucket */
};

enum {
    MAX_INSIDE = 64,  /* two per level */
    MAX_LISTS = 96,   /* of a query: two paths, those inside, two buckets */
    WHOLE_LEVELS = 4, /* fewer lists for a query, more for an item that is placed */
    MAX_CHANGES = 128 /* of items that begin or end in a bucket of more than one section */
};

/* Makes the buckets, whose number it returns, and one more where the last one ends. */
static uint32_t make_buckets(struct mt_occupancy *occupancy)
{
    const struct mt_instance *instance = occupancy->instance;
    uint32_t *changes = occupancy->bucket_of, count = 0, sum = 0, list = 0, s, i;

    memset(changes, 0, ((size_t)instance->section_count + 1) * sizeof *changes);
    for (i = 0; i < instance->count; i++) {
        changes[instance->items[i].first]++;
        changes[instance->items[i].last - 1]++;
    }
    for (s = 0; s <= instance->section_count; s++) {
        if (s == 0 || s == instance->section_count || sum + changes[s] > MAX_CHANGES) {
            mt_grow_to(&occupancy->buckets, &occupancy->bucket_capacity, (size_t)count + 1,
                       sizeof *occupancy->buckets);
            list += sum;
            occupancy->buckets[count++] = (struct mt_occupancy_bucket){s, list, list};
            sum = 0;
        }
        sum += changes[s];
        occupancy->bucket_of[s] = count - 1;
    }
    return count - 1;
}

/* Buckets in which an item lives. */
struct life {
    uint32_t first, last;          /* both included */
    uint32_t whole_low, whole_end; /* all of these buckets: [whole_low, whole_end) */
    uint32_t partial[2];
    unsigned partial_count;
};

static bool covers(const struct mt_occupancy *occupancy, const struct mt_item *item,
                   uint32_t bucket)
{
    return item->first <= occupancy->buckets[bucket].first_section &&
           item->last >= occupancy->buckets[bucket + 1].first_section;
}

static struct life life_of(const struct mt_occupancy *occupancy, uint32_t number)
{
    const struct mt_item *item = &occupancy->instance->items[number];
    struct life life = {.first = occupancy->bucket_of[item->first],
                        .last = occupancy->bucket_of[item->last - 1]};

    life.whole_low = life.first;
    life.whole_end = life.last + 1;
    if (!covers(occupancy, item, life.first)) {
        life.partial[life.partial_count++] = life.first;
        life.whole_low++;
    }
    if (life.first != life.last && !covers(occupancy, item, life.last)) {
        life.partial[life.partial_count++] = life.last;
        life.whole_end--;
    }
    return life;
}

void mt_occupancy_prepare(struct mt_occupancy *occupancy, const struct mt_instance *instance)
{
    occupancy->instance = instance;
    mt_grow_to(&occupancy->bucket_of, &occupancy->section_capacity,
               (size_t)instance->section_count + 1, sizeof *occupancy->bucket_of);
    mt_grow_to(&occupancy->partial, &occupancy->partial_capacity, 2 * (size_t)instance->count,
               sizeof *occupancy->partial);
    uint32_t bucket_count = make_buckets(occupancy);
    for (occupancy->leaves = 1; occupancy->leaves < bucket_count;)
        occupancy->leaves *= 2;
    mt_grow_zeroed_to(&occupancy->nodes, &occupancy->node_capacity, 2 * (size_t)occupancy->leaves,
                      sizeof *occupancy->nodes);
}

void mt_occupancy_clear(struct mt_occupancy *occupancy, uint64_t *addresses)
{
    struct mt_occupancy_bucket *bucket = occupancy->buckets;

    occupancy->addresses = addresses;
    for (size_t i = 0; i < 2 * (size_t)occupancy->leaves; i++)
        occupancy->nodes[i].whole.count = occupancy->nodes[i].some.count = 0;
    for (; bucket->first_section < occupancy->instance->section_count; bucket++)
        bucket->list_end = bucket->list;
}

void mt_occupancy_release(struct mt_occupancy *occupancy)
{
    for (size_t i = 0; i < occupancy->node_capacity; i++) {
        free(occupancy->nodes[i].whole.items);
        free(occupancy->nodes[i].some.items);
    }
    free(occupancy->nodes);
    free(occupancy->bucket_of);
    free(occupancy->buckets);
    free(occupancy->partial);
    memset(occupancy, 0, sizeof *occupancy);
}

/* First range that ends at or after `address`. */
static uint32_t first_ending(const struct ranges *ranges, uint64_t address)
{
    uint32_t low = 0, high = ranges->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges->items[middle].end < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns whether that changed anything. */
static bool ranges_add(struct ranges *ranges, uint64_t begin, uint64_t end)
{
    uint32_t at = first_ending(ranges, begin), after = at;

    if (at < ranges->count && ranges->items[at].begin <= begin && ranges->items[at].end >= end)
        return false;
    while (after < ranges->count && ranges->items[after].begin <= end)
        after++;
    if (at == after) {
        if (ranges->count == ranges->capacity) { /* most lists are short, and there are many */
            ranges->capacity += ranges->capacity / 2 + 2;
            ranges->items =
                mt_memory_resize(ranges->items, ranges->capacity * sizeof *ranges->items);
        }
        memmove(ranges->items + at + 1, ranges->items + at,
                (ranges->count - at) * sizeof *ranges->items);
        ranges->items[at] = (struct range){begin, end};
        ranges->count++;
        return true;
    }
    if (begin < ranges->items[at].begin)
        ranges->items[at].begin = begin;
    ranges->items[at].end = ranges->items[after - 1].end > end ? ranges->items[after - 1].end : end;
    memmove(ranges->items + at + 1, ranges->items + after,
            (ranges->count - after) * sizeof *ranges->items);
    ranges->count -= after - at - 1;
    return true;
}

/* The nodes whose time is in a life while their parent's is not; returns their number. */
static unsigned nodes_inside(uint32_t leaves, const struct life *life, uint32_t nodes[MAX_INSIDE])
{
    uint32_t low = leaves + life->whole_low, high = leaves + life->whole_end;
    unsigned count = 0;

    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            nodes[count++] = low++;
        if (high & 1)
            nodes[count++] = --high;
    }
    return count;
}

static void take_inside(struct mt_occupancy *occupancy, uint32_t node, uint64_t begin, uint64_t end)
{
    unsigned level = mt_log2_floor(occupancy->leaves) - mt_log2_floor(node);
    unsigned down = level % WHOLE_LEVELS;

    ranges_add(&occupancy->nodes[node].some, begin, end);
    for (uint32_t i = 0; i < UINT32_C(1) << down; i++)
        ranges_add(&occupancy->nodes[(node << down) + i].whole, begin, end);
}

/* Adds a range to the nodes at and above a bucket whose time extends beyond the whole buckets of
 * the life. What a node has, all nodes above it have. */
static void take_above(struct mt_occupancy *occupancy, uint32_t bucket, const struct life *life,
                       const struct range *range)
{
    uint32_t leaves = occupancy->leaves, node = leaves + bucket;

    for (uint64_t width = 1; node > 0; node /= 2, width *= 2) {
        uint64_t begin = node * width - leaves;
        if ((begin < life->whole_low || begin + width > life->whole_end) &&
            !ranges_add(&occupancy->nodes[node].some, range->begin, range->end))
            return;
    }
}

static void take_partial(struct mt_occupancy *occupancy, uint32_t bucket, uint32_t item)
{
    uint32_t *first = occupancy->partial + occupancy->buckets[bucket].list;
    uint32_t *at = occupancy->partial + occupancy->buckets[bucket].list_end++;

    MT_ASSERT(at - first < MAX_CHANGES);
    for (; at > first && occupancy->addresses[at[-1]] > occupancy->addresses[item]; at--)
        *at = at[-1];
    *at = item;
}

void mt_occupancy_take(struct mt_occupancy *occupancy, uint32_t item, uint64_t address)
{
    struct range range = {address, address + occupancy->instance->items[item].bytes};
    struct life life = life_of(occupancy, item);
    uint32_t inside[MAX_INSIDE];
    unsigned count = nodes_inside(occupancy->leaves, &life, inside);

    occupancy->addresses[item] = address;
    while (count > 0)
        take_inside(occupancy, inside[--count], range.begin, range.end);
    take_above(occupancy, life.first, &life, &range);
    if (life.last != life.first)
        take_above(occupancy, life.last, &life, &range);
    for (unsigned i = 0; i < life.partial_count; i++)
        take_partial(occupancy, life.partial[i], item);
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

/* What is taken during all of a bucket, and so during a part of each life that reaches into it. */
static void search_add_whole(struct search *search, const struct mt_occupancy *occupancy,
                             uint32_t bucket)
{
    for (uint32_t node = occupancy->leaves + bucket; node > 0; node >>= WHOLE_LEVELS)
        search_add(search, &occupancy->nodes[node].whole);
}

/* What the items in a bucket's list take during the life of `item`. `memory` has room for it. */
static void search_add_partial(struct search *search, const struct mt_occupancy *occupancy,
                               uint32_t bucket, const struct mt_item *item, struct range *memory)
{
    struct ranges ranges = {memory, 0, MAX_CHANGES};

    for (uint32_t i = occupancy->buckets[bucket].list; i < occupancy->buckets[bucket].list_end;
         i++) {
        const struct mt_item *other = &occupancy->instance->items[occupancy->partial[i]];
        uint64_t begin = occupancy->addresses[occupancy->partial[i]], end = begin + other->bytes;
        struct range *last = &memory[ranges.count - (ranges.count > 0)];
        if (other->first >= item->last || item->first >= other->last)
            continue;
        if (!ranges.count || begin > last->end)
            memory[ranges.count++] = (struct range){begin, end};
        else
            last->end = mt_max_u64(last->end, end);
    }
    search_add(search, &ranges);
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

    for (unsigned i = 0; i < search->count; i++)
        if (search->at[i] < search->end[i] && search->at[i]->begin < end)
            end = search->at[i]->begin;
    return end;
}

uint64_t mt_occupancy_find(struct mt_occupancy *occupancy, uint32_t item, bool best)
{
    uint64_t bytes = occupancy->instance->items[item].bytes, address, end, found = 0;
    uint64_t smallest = UINT64_MAX;
    struct range partial[2][MAX_CHANGES];
    struct life life = life_of(occupancy, item);
    struct search search = {.count = 0};
    uint32_t inside[MAX_INSIDE];
    unsigned inside_count = nodes_inside(occupancy->leaves, &life, inside);

    search_add_whole(&search, occupancy, life.first);
    if (life.last != life.first)
        search_add_whole(&search, occupancy, life.last);
    for (unsigned i = 0; i < inside_count; i++)
        search_add(&search, &occupancy->nodes[inside[i]].some);
    for (unsigned i = 0; i < life.partial_count; i++)
        search_add_partial(&search, occupancy, life.partial[i], &occupancy->instance->items[item],
                           partial[i]);
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

/* Checks plans; shares with the planner only the order in time, and checks that it ascends. Goes
 * through time with the set of ranges in use. These never overlap, so of those that start below the
 * end of a new range, the last one decides whether the new one is free. */

enum { LEVELS = 6, WORD_BITS = 64 }; /* 64^6 is more than two ends for each buffer */

struct used_ranges {
    uint64_t *edges; /* all starts and ends of ranges, sorted and unique */
    uint64_t *ends;  /* of the range in use that starts at an edge */
    struct mt_map ranks;
    uint64_t *words[LEVELS]; /* a bit for each edge: a range in use starts there; above, a bit for
                                each word that is not 0 */
};

static void add_edge(struct used_ranges *used, uint64_t edge, size_t *capacity)
{
    if (mt_map_find(&used->ranks, edge) != MT_MAP_NONE)
        return;
    mt_grow_to(&used->edges, capacity, used->ranks.count + 1, sizeof *used->edges);
    used->edges[used->ranks.count] = edge;
    mt_map_put(&used->ranks, edge, 0);
}

static void used_init(struct used_ranges *used, const struct mt_buffers *buffers,
                      const uint64_t *addresses)
{
    size_t capacity = 0, i, count;

    for (i = 0; i < buffers->count; i++) {
        add_edge(used, addresses[i], &capacity);
        add_edge(used, addresses[i] + buffers->items[i].bytes, &capacity);
    }
    count = used->ranks.count;
    if (count)
        qsort(used->edges, count, sizeof *used->edges, mt_ascending_u64);
    for (i = 0; i < count; i++)
        mt_map_put(&used->ranks, used->edges[i], (uint32_t)i);
    used->ends = mt_memory_new((count + 1) * sizeof *used->ends);
    used->words[0] = mt_memory_zeroed(count / (WORD_BITS - 1) + 2 * LEVELS, sizeof *used->words[0]);
    for (i = 1; i < LEVELS; i++) {
        count = count / WORD_BITS + 1;
        used->words[i] = used->words[i - 1] + count;
    }
}

/* End of the last range in use that starts below an edge; 0 = there is none. */
static uint64_t end_below(const struct used_ranges *used, uint32_t rank)
{
    for (int level = 0; level < LEVELS && rank > 0; level++, rank /= WORD_BITS) {
        uint64_t word =
            used->words[level][rank / WORD_BITS] & ((UINT64_C(1) << rank % WORD_BITS) - 1);
        if (!word)
            continue;
        rank = rank / WORD_BITS * WORD_BITS + mt_log2_floor(word);
        while (level-- > 0)
            rank = rank * WORD_BITS + mt_log2_floor(used->words[level][rank]);
        return used->ends[rank];
    }
    return 0;
}

/* Takes or returns [begin, end); false if part of it is in use already. */
static bool change_range(struct used_ranges *used, uint64_t begin, uint64_t end, bool take)
{
    uint32_t rank = mt_map_get(&used->ranks, begin);

    if (take && end_below(used, mt_map_get(&used->ranks, end)) > begin)
        return false;
    used->ends[rank] = end;
    for (int level = 0; level < LEVELS; level++, rank /= WORD_BITS) {
        uint64_t *word = &used->words[level][rank / WORD_BITS];
        uint64_t bit = UINT64_C(1) << rank % WORD_BITS;
        uint64_t others = *word & ~bit;
        *word = take ? others | bit : others;
        if (others)
            break;
    }
    return true;
}

/* At equal times frees come before allocations. */
static bool check_all(const struct mt_buffers *buffers, const uint64_t *addresses,
                      struct used_ranges *used)
{
    size_t count = buffers->count, begun = 0, ended = 0;
    uint32_t *by_begin, *by_end;
    uint64_t now = 0;
    bool valid = true;

    mt_buffers_in_time(buffers, &by_begin, &by_end);
    while (valid && ended < count) {
        bool begins = begun < count &&
                      buffers->items[by_begin[begun]].begin < buffers->items[by_end[ended]].end;
        uint32_t number = begins ? by_begin[begun++] : by_end[ended++];
        uint64_t address = addresses[number];
        uint64_t time = begins ? buffers->items[number].begin : buffers->items[number].end;

        valid = now <= time &&
                change_range(used, address, address + buffers->items[number].bytes, begins);
        now = time;
    }
    free(by_begin);
    free(by_end);
    return valid;
}

void mt_placement_check(const struct mt_buffers *buffers, const uint64_t *addresses, bool *valid,
                        uint64_t *height)
{
    struct used_ranges used = {0};

    *valid = true;
    *height = 0;
    for (size_t i = 0; i < buffers->count; i++) {
        uint64_t end;
        if (__builtin_add_overflow(addresses[i], buffers->items[i].bytes, &end))
            *valid = false;
        else if (end > *height)
            *height = end;
    }
    if (!*valid)
        return;
    used_init(&used, buffers, addresses);
    *valid = check_all(buffers, addresses, &used);
    mt_map_release(&used.ranks);
    free(used.edges);
    free(used.ends);
    free(used.words[0]);
}

enum { PLACEMENTS_A_LOOK = 1024 };

/* Largest load of any part of time: the halves of time, of these and so on. Leaves are sections. */
static uint64_t *make_loads(const struct mt_instance *instance)
{
    size_t sections = instance->section_count, i;
    uint64_t *loads = mt_memory_new((2 * sections + 1) * sizeof *loads);

    if (sections)
        memcpy(loads + sections, instance->load, sections * sizeof *loads);
    for (i = sections; i-- > 1;)
        loads[i] = mt_max_u64(loads[2 * i], loads[2 * i + 1]);
    return loads;
}

static uint64_t largest_load(const uint64_t *loads, uint32_t sections, const struct mt_item *item)
{
    size_t low = (size_t)sections + item->first, high = (size_t)sections + item->last;
    uint64_t most = 0;

    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            most = mt_max_u64(most, loads[low++]);
        if (high & 1)
            most = mt_max_u64(most, loads[--high]);
    }
    return most;
}

static double value_of(const struct mt_item *item, char criterion)
{
    switch (criterion) {
    case 'Z': return (double)item->bytes;
    case 'W': return (double)item->duration;
    case 'A': return (double)item->bytes * (double)item->duration;
    case 'L': return (double)item->first;
    case 'U': return (double)item->last;
    default: return 0;
    }
}

/* Keys that ascend while the values of the criterion descend. No value is negative, so their bits
 * are in the order of the values. */
static void fill_keys(const struct mt_instance *instance, char criterion, uint64_t *keys)
{
    uint64_t *loads = criterion == 'T' ? make_loads(instance) : NULL;

    for (uint32_t i = 0; i < instance->count; i++) {
        const struct mt_item *item = &instance->items[i];
        double value = loads ? (double)largest_load(loads, instance->section_count, item)
                             : value_of(item, criterion);
        memcpy(&keys[i], &value, sizeof keys[i]);
        keys[i] = ~keys[i];
    }
    free(loads);
}

void mt_placement_sort(const struct mt_instance *instance, const char *criteria, uint32_t *order)
{
    uint64_t *keys = mt_memory_new(((size_t)instance->count + 1) * sizeof *keys);
    size_t k = strlen(criteria);

    for (uint32_t i = 0; i < instance->count; i++)
        order[i] = i;
    while (k-- > 0) {
        fill_keys(instance, criteria[k], keys);
        mt_numbers_sort((struct mt_keys){keys, sizeof *keys}, order, instance->count);
    }
    free(keys);
}

void mt_placement_run(struct mt_occupancy *occupancy, const uint32_t *order, enum mt_fit fit,
                      uint64_t limit, uint64_t deadline_ns, uint64_t *addresses, uint32_t *placed,
                      uint64_t *height)
{
    const struct mt_instance *instance = occupancy->instance;

    mt_occupancy_clear(occupancy, addresses);
    *height = 0;
    for (*placed = 0; *placed < instance->count; (*placed)++) {
        const struct mt_item *item = &instance->items[order[*placed]];
        uint64_t address = mt_occupancy_find(occupancy, order[*placed], fit == MT_FIT_BEST);
        if (address + item->bytes > limit ||
            (*placed % PLACEMENTS_A_LOOK == 0 && mt_deadline_passed(deadline_ns)))
            break;
        mt_occupancy_take(occupancy, order[*placed], address);
        *height = address + item->bytes > *height ? address + item->bytes : *height;
    }
}
