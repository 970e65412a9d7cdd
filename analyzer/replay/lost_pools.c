#include "lost_pools.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "process_memory.h"

/* Maximum number of pools to distinguish; a trace with more is not explained. */
enum { MAX_COLOURS = 64, MAX_ROUNDS = 16, KEPT_WEIGHT = 1000 };

#define NO_COLOUR UINT16_MAX

/* Neighbors of instance i: items[first[i]] to items[first[i + 1]]. */
struct graph {
    uint32_t *first, *items;
};

static void make_graph(const struct mt_pool_evidence *evidence, struct graph *graph)
{
    const struct mt_pool_pairs *pairs = &evidence->unequal;

    graph->first = mt_memory_zeroed((size_t)evidence->count + 2, sizeof *graph->first);
    graph->items = mt_memory_zeroed(2 * pairs->count + 1, sizeof *graph->items);
    for (size_t k = 0; k < pairs->count; k++) { /* degrees, shifted right by one */
        graph->first[pairs->items[k].a + 2]++;
        graph->first[pairs->items[k].b + 2]++;
    }
    for (uint32_t i = 2; i < evidence->count + 2; i++)
        graph->first[i] += graph->first[i - 1];
    for (size_t k = 0; k < pairs->count; k++) { /* filling moves the starts to the left */
        graph->items[graph->first[pairs->items[k].a + 1]++] = pairs->items[k].b;
        graph->items[graph->first[pairs->items[k].b + 1]++] = pairs->items[k].a;
    }
}

static void release_graph(struct graph *graph)
{
    free(graph->first);
    free(graph->items);
}

/* Instances to be colored, by the number of colors around them. An instance is queued again when
 * that number grows; outdated entries are skipped. */
struct queued {
    uint32_t id, next;
};

struct coloring {
    struct mt_lost_pools *pools;
    const struct graph *graph;
    uint64_t *taken; /* by instance: colors of its neighbors */
    struct queued *queued;
    size_t count, capacity;
    uint32_t heads[MAX_COLOURS + 1];
    uint32_t owner[MAX_COLOURS]; /* flush that released the segments of a color, 0 = any */
    bool is_named[MAX_COLOURS];  /* the trace names that pool */
};

static void enqueue(struct coloring *self, uint32_t id)
{
    uint32_t *head = &self->heads[__builtin_popcountll(self->taken[id])];

    mt_grow_to(&self->queued, &self->capacity, self->count + 1, sizeof *self->queued);
    self->queued[self->count] = (struct queued){id, *head};
    *head = (uint32_t)self->count++;
}

static void set_color(struct coloring *self, uint32_t id, uint16_t color)
{
    self->pools->color[id] = color;
    for (uint32_t k = self->graph->first[id]; k < self->graph->first[id + 1]; k++) {
        uint32_t other = self->graph->items[k];
        uint64_t bit = color < MAX_COLOURS ? UINT64_C(1) << color : 0;
        if (self->pools->color[other] != NO_COLOUR)
            continue;
        if (self->taken[other] & bit)
            continue;
        self->taken[other] |= bit;
        enqueue(self, other);
    }
}

static uint32_t most_constrained(struct coloring *self)
{
    for (uint32_t i = MAX_COLOURS + 1; i-- > 0;) {
        while (self->heads[i] != MT_NO_INSTANCE) {
            struct queued first = self->queued[self->heads[i]];
            self->heads[i] = first.next;
            if (self->pools->color[first.id] == NO_COLOUR)
                return first.id;
        }
    }
    self->count = 0;
    return MT_NO_INSTANCE;
}

/* Returns the default pool's color, if nothing contradicts it; otherwise the color of segments
 * released in the same flush, since pools are deleted one by one; otherwise the first free
 * color. */
static uint16_t choose_color(struct coloring *self, uint32_t id, uint32_t part)
{
    uint32_t group = self->pools->evidence->instances[id].group;
    uint64_t taken = self->taken[id];
    uint16_t color = 0;

    while (color < MAX_COLOURS - 1 && taken >> color & 1)
        color++;
    uint16_t first = color;
    if (part != MT_NO_PART)
        return first; /* any of its colors may be the default pool's */
    while (color && color < MAX_COLOURS &&
           (taken >> color & 1 || (self->owner[color] && self->owner[color] != group)))
        color++;
    if (color == MAX_COLOURS)
        return first;
    if (color && !self->is_named[color])
        self->owner[color] = group;
    return color;
}

/* Colors everything that the queue reaches. */
static void spread(struct coloring *self, uint32_t part)
{
    uint32_t id;

    while ((id = most_constrained(self)) != MT_NO_INSTANCE) {
        self->pools->part[id] = part;
        set_color(self, id, choose_color(self, id, part));
    }
}

static void color_parts(struct coloring *self)
{
    struct mt_lost_pools *pools = self->pools;
    const struct mt_pool_evidence *evidence = pools->evidence;

    for (uint32_t i = 0; i < evidence->count; i++) {
        pools->part[i] = MT_NO_PART;
        pools->color[i] = NO_COLOUR;
    }
    for (uint32_t i = 0; i < evidence->count; i++) {
        if (!evidence->instances[i].is_known)
            continue;
        if (evidence->instances[i].pool < MAX_COLOURS)
            self->is_named[evidence->instances[i].pool] = true;
        set_color(self, i, evidence->instances[i].pool);
    }
    spread(self, MT_NO_PART);
    for (uint32_t i = 0; i < evidence->count; i++) {
        if (pools->color[i] != NO_COLOUR)
            continue;
        enqueue(self, i);
        spread(self, pools->part_count++);
    }
}

static void color_all(struct mt_lost_pools *pools, const struct graph *graph)
{
    struct coloring coloring = {.pools = pools, .graph = graph};

    for (size_t i = 0; i <= MAX_COLOURS; i++)
        coloring.heads[i] = MT_NO_INSTANCE;
    coloring.taken = mt_memory_zeroed((size_t)pools->evidence->count + 1, sizeof *coloring.taken);
    color_parts(&coloring);
    free(coloring.taken);
    free(coloring.queued);
}

static uint16_t pool_of(const struct mt_lost_pools *pools, uint32_t id)
{
    uint16_t color = pools->color[id];

    if (pools->part[id] == MT_NO_PART)
        return color;
    uint16_t first = pools->parts[pools->part[id]].default_color;
    return color == first ? 0 : color == 0 ? first : color;
}

/* One entry per part and color: the entries of a part begin at its offset. */
static void make_parts(struct mt_lost_pools *pools)
{
    pools->parts = mt_memory_zeroed((size_t)pools->part_count + 1, sizeof *pools->parts);
    for (uint32_t i = 0; i < pools->part_count; i++)
        pools->parts[i].colors = 2;
    for (uint32_t i = 0; i < pools->evidence->count; i++) {
        struct mt_lost_part *part = &pools->parts[pools->part[i]];
        if (pools->part[i] != MT_NO_PART && pools->color[i] >= part->colors)
            part->colors = (uint16_t)(pools->color[i] + 1);
    }
    for (uint32_t i = 0; i < pools->part_count; i++)
        pools->parts[i + 1].offset = pools->parts[i].offset + pools->parts[i].colors;
}

static size_t entry_of(const struct mt_lost_pools *pools, uint32_t id)
{
    return (size_t)pools->parts[pools->part[id]].offset + pools->color[id];
}

/* First release and last use of a color of a part. */
struct use {
    uint64_t first_release, last_alloc;
};

/* Decides parts in which exactly one color was used after a release. */
static void decide_by_use(struct mt_lost_pools *pools)
{
    struct use *uses =
        mt_memory_zeroed((size_t)pools->parts[pools->part_count].offset + 1, sizeof *uses);

    for (uint32_t i = 0; i < pools->parts[pools->part_count].offset; i++)
        uses[i].first_release = UINT64_MAX;
    for (uint32_t i = 0; i < pools->evidence->count; i++) {
        const struct mt_pool_instance *instance = &pools->evidence->instances[i];
        if (pools->part[i] == MT_NO_PART)
            continue;
        struct use *use = &uses[entry_of(pools, i)];
        if (instance->first_release_seq < use->first_release)
            use->first_release = instance->first_release_seq;
        if (instance->last_alloc_seq > use->last_alloc)
            use->last_alloc = instance->last_alloc_seq;
    }
    for (uint32_t i = 0; i < pools->part_count; i++) {
        struct mt_lost_part *part = &pools->parts[i];
        unsigned found = 0;
        for (uint16_t color = 0; color < part->colors; color++) {
            const struct use *use = &uses[part->offset + color];
            if (use->first_release >= use->last_alloc)
                continue;
            part->default_color = found++ ? 0 : color;
        }
        part->is_certain = found == 1;
    }
    free(uses);
}

/* Votes for (or against) the color of instance `id` as the default one of its part. */
static void vote(const struct mt_lost_pools *pools, int64_t *votes, uint32_t id, int64_t weight)
{
    if (pools->part[id] != MT_NO_PART)
        votes[entry_of(pools, id)] += weight;
}

static bool is_decided(const struct mt_lost_pools *pools, const bool *decided, uint32_t id)
{
    return pools->part[id] == MT_NO_PART || decided[pools->part[id]];
}

static void count_votes(const struct mt_lost_pools *pools, const bool *decided, int64_t *votes)
{
    const struct mt_pool_evidence *evidence = pools->evidence;

    for (size_t k = 0; k < evidence->kept.count; k++) {
        struct mt_pool_pair pair = evidence->kept.items[k];
        if (is_decided(pools, decided, pair.b) && pool_of(pools, pair.b) != 0)
            continue; /* deleting a pool flushes only that pool */
        vote(pools, votes, pair.a, -KEPT_WEIGHT);
        vote(pools, votes, pair.b, KEPT_WEIGHT);
    }
    for (size_t k = 0; k < evidence->turns.count; k++) {
        struct mt_pool_pair pair = evidence->turns.items[k];
        if (pools->part[pair.a] == pools->part[pair.b])
            continue;
        if (is_decided(pools, decided, pair.a))
            vote(pools, votes, pair.b, pool_of(pools, pair.a) ? -1 : 1);
        if (is_decided(pools, decided, pair.b))
            vote(pools, votes, pair.a, pool_of(pools, pair.b) ? -1 : 1);
    }
}

/* Chooses the color with most votes; returns false if there are none. */
static bool follow_votes(struct mt_lost_part *part, const int64_t *votes)
{
    uint16_t best = 0;
    bool any = false;

    for (uint16_t color = 0; color < part->colors; color++) {
        any = any || votes[part->offset + color] != 0;
        if (votes[part->offset + color] > votes[part->offset + best])
            best = color;
    }
    part->default_color = best;
    return any;
}

/* Follows the votes. The first part without votes keeps its current choice if no part has any.
 * Returns false if all parts were already decided. */
static bool decide_round(struct mt_lost_pools *pools, bool *decided, const int64_t *votes)
{
    uint32_t first = MT_NO_PART;
    bool changed = false;

    for (uint32_t i = pools->part_count; i-- > 0;) {
        if (decided[i])
            continue;
        first = i;
        decided[i] = follow_votes(&pools->parts[i], votes);
        changed = changed || decided[i];
    }
    if (!changed && first != MT_NO_PART)
        decided[first] = changed = true;
    return changed;
}

/* Decided parts vote on their neighbors in time. */
static void decide_by_votes(struct mt_lost_pools *pools)
{
    size_t count = (size_t)pools->parts[pools->part_count].offset + 1;
    int64_t *votes = mt_memory_zeroed(count, sizeof *votes);
    bool *decided = mt_memory_zeroed((size_t)pools->part_count + 1, sizeof *decided),
         changed = true;

    for (uint32_t i = 0; i < pools->part_count; i++)
        decided[i] = pools->parts[i].is_certain;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
        memset(votes, 0, count * sizeof *votes);
        count_votes(pools, decided, votes);
        changed = decide_round(pools, decided, votes);
    }
    free(votes);
    free(decided);
}

void mt_lost_pools_guess(const struct mt_pool_evidence *evidence, struct mt_lost_pools *pools)
{
    struct graph graph = {0};

    memset(pools, 0, sizeof *pools);
    pools->evidence = evidence;
    pools->part = mt_memory_zeroed((size_t)evidence->count + 1, sizeof *pools->part);
    pools->color = mt_memory_zeroed((size_t)evidence->count + 1, sizeof *pools->color);
    make_graph(evidence, &graph);
    color_all(pools, &graph);
    make_parts(pools);
    decide_by_use(pools);
    decide_by_votes(pools);
    release_graph(&graph);
}

void mt_lost_pools_release(struct mt_lost_pools *pools)
{
    free(pools->part);
    free(pools->color);
    free(pools->parts);
    memset(pools, 0, sizeof *pools);
}

static uint32_t instance_of(const struct mt_lost_pools *pools, uint64_t seq)
{
    return seq < pools->evidence->event_count ? pools->evidence->instance_of[seq] : MT_NO_INSTANCE;
}

uint16_t mt_lost_pools_of(const struct mt_lost_pools *pools, const struct mt_event *event)
{
    uint32_t id = instance_of(pools, event->seq);

    return id == MT_NO_INSTANCE ? event->pool : pool_of(pools, id);
}

uint32_t mt_lost_pools_count(const struct mt_lost_pools *pools, uint16_t device)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < pools->evidence->count; i++) {
        const struct mt_pool_instance *instance = &pools->evidence->instances[i];
        count += instance->device == device && instance->has_nameless && pool_of(pools, i) != 0;
    }
    return count;
}

uint32_t mt_lost_pools_part_at(const struct mt_lost_pools *pools, uint64_t seq)
{
    uint32_t id = instance_of(pools, seq);

    return id == MT_NO_INSTANCE ? MT_NO_PART : pools->part[id];
}

void mt_lost_pools_turn(struct mt_lost_pools *pools, uint32_t part)
{
    if (part < pools->part_count) {
        struct mt_lost_part *one = &pools->parts[part];
        one->default_color = (uint16_t)((one->default_color + 1) % one->colors);
        return;
    }
    for (uint32_t i = 0; i < pools->part_count; i++)
        if (!pools->parts[i].is_certain && pools->parts[i].default_color < 2)
            pools->parts[i].default_color ^= 1;
}
