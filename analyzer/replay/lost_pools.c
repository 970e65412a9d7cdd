#include "lost_pools.h"

#include <stdlib.h>
#include <string.h>

/* Pools that are told apart; a trace that needs more is not explained. */
enum { MOST_COLOURS = 64, MOST_ROUNDS = 16, KEPT_WEIGHT = 1000 };

#define NO_COLOUR UINT16_MAX

/* Neighbours of instance i: items[first[i]] to items[first[i + 1]]. */
struct graph {
    uint32_t *first, *items, *queue;
};

/* What speaks for a part as it is, and for turning it. */
struct votes {
    uint64_t stay, turn;
};

/* ---- the graph ------------------------------------------------------------- */

static enum mt_status make_graph(const struct mt_pool_evidence *evidence, struct graph *graph)
{
    const struct mt_pool_pairs *pairs = &evidence->unequal;
    uint32_t i;
    size_t k;

    graph->first = calloc((size_t)evidence->count + 2, sizeof *graph->first);
    graph->items = calloc(2 * pairs->count + 1, sizeof *graph->items);
    graph->queue = calloc((size_t)evidence->count + 1, sizeof *graph->queue);
    if (!graph->first || !graph->items || !graph->queue)
        return MT_ERR_MEMORY;
    for (k = 0; k < pairs->count; k++) { /* degrees, one place to the right */
        graph->first[pairs->items[k].a + 2]++;
        graph->first[pairs->items[k].b + 2]++;
    }
    for (i = 2; i < evidence->count + 2; i++)
        graph->first[i] += graph->first[i - 1];
    for (k = 0; k < pairs->count; k++) { /* filling moves the starts to the left */
        graph->items[graph->first[pairs->items[k].a + 1]++] = pairs->items[k].b;
        graph->items[graph->first[pairs->items[k].b + 1]++] = pairs->items[k].a;
    }
    return MT_OK;
}

static void release_graph(struct graph *graph)
{
    free(graph->first);
    free(graph->items);
    free(graph->queue);
}

static uint16_t first_colour(const struct mt_lost_pools *pools, const struct graph *graph,
                             uint32_t id)
{
    uint64_t taken = 0;
    uint32_t k;
    uint16_t colour = 0;

    for (k = graph->first[id]; k < graph->first[id + 1]; k++) {
        uint16_t other = pools->colour[graph->items[k]];
        if (other < MOST_COLOURS)
            taken |= UINT64_C(1) << other;
    }
    while (colour < MOST_COLOURS - 1 && taken >> colour & 1)
        colour++;
    return colour;
}

/* Colours everything that the queue's instances reach. */
static void spread(struct mt_lost_pools *pools, const struct graph *graph, uint32_t queued,
                   uint32_t part)
{
    uint32_t at, k;

    for (at = 0; at < queued; at++) {
        uint32_t id = graph->queue[at];
        for (k = graph->first[id]; k < graph->first[id + 1]; k++) {
            uint32_t other = graph->items[k];
            if (pools->colour[other] != NO_COLOUR)
                continue;
            pools->colour[other] = first_colour(pools, graph, other);
            pools->part[other] = part;
            graph->queue[queued++] = other;
        }
    }
}

static void colour_all(struct mt_lost_pools *pools, const struct graph *graph)
{
    const struct mt_pool_evidence *evidence = pools->evidence;
    uint32_t i, queued = 0;

    for (i = 0; i < evidence->count; i++) {
        pools->part[i] = MT_NO_PART;
        pools->colour[i] = NO_COLOUR;
        if (!evidence->instances[i].is_known)
            continue;
        pools->colour[i] = evidence->instances[i].pool;
        graph->queue[queued++] = i;
    }
    spread(pools, graph, queued, MT_NO_PART);
    for (i = 0; i < evidence->count; i++) {
        if (pools->colour[i] != NO_COLOUR)
            continue;
        pools->colour[i] = 0;
        pools->part[i] = pools->part_count;
        graph->queue[0] = i;
        spread(pools, graph, 1, pools->part_count++);
    }
}

/* ---- which way round --------------------------------------------------------- */

static uint16_t pool_of(const struct mt_lost_pools *pools, uint32_t id)
{
    uint16_t colour = pools->colour[id];

    if (pools->part[id] != MT_NO_PART && pools->turned[pools->part[id]] && colour < 2)
        return (uint16_t)(1 - colour);
    return colour;
}

/* When a colour of a part first gave memory back, and was last used. */
struct use {
    uint64_t first_release[2], last_alloc[2];
};

/* A part in which exactly one of the colours was used on after a release. */
static enum mt_status decide_by_use(struct mt_lost_pools *pools)
{
    struct use *uses = calloc((size_t)pools->part_count + 1, sizeof *uses);
    uint32_t i;

    if (!uses)
        return MT_ERR_MEMORY;
    for (i = 0; i < pools->part_count; i++)
        uses[i].first_release[0] = uses[i].first_release[1] = UINT64_MAX;
    for (i = 0; i < pools->evidence->count; i++) {
        const struct mt_pool_instance *instance = &pools->evidence->instances[i];
        uint16_t colour = pools->colour[i];
        struct use *use;
        if (pools->part[i] == MT_NO_PART || colour > 1)
            continue;
        use = &uses[pools->part[i]];
        if (instance->first_release_seq < use->first_release[colour])
            use->first_release[colour] = instance->first_release_seq;
        if (instance->last_alloc_seq > use->last_alloc[colour])
            use->last_alloc[colour] = instance->last_alloc_seq;
    }
    for (i = 0; i < pools->part_count; i++) {
        bool is_default[2];
        is_default[0] = uses[i].first_release[0] < uses[i].last_alloc[0];
        is_default[1] = uses[i].first_release[1] < uses[i].last_alloc[1];
        pools->certain[i] = is_default[0] != is_default[1];
        pools->turned[i] = is_default[1] && !is_default[0];
    }
    free(uses);
    return MT_OK;
}

/* One vote for instance `id` to be private, or not. */
static void vote(const struct mt_lost_pools *pools, struct votes *votes, uint32_t id, bool private,
                 uint64_t weight)
{
    uint32_t part = pools->part[id];

    if (part == MT_NO_PART || pools->colour[id] > 1)
        return;
    if (private == (pools->colour[id] == 1))
        votes[part].stay += weight;
    else
        votes[part].turn += weight;
}

static bool is_decided(const struct mt_lost_pools *pools, const bool *decided, uint32_t id)
{
    return pools->part[id] == MT_NO_PART || decided[pools->part[id]];
}

static void count_votes(const struct mt_lost_pools *pools, const bool *decided, struct votes *votes)
{
    const struct mt_pool_evidence *evidence = pools->evidence;
    size_t k;

    for (k = 0; k < evidence->kept.count; k++) {
        struct mt_pool_pair pair = evidence->kept.items[k];
        if (is_decided(pools, decided, pair.b) && pool_of(pools, pair.b) != 0)
            continue; /* the deletion of a pool flushes that pool alone */
        vote(pools, votes, pair.a, true, KEPT_WEIGHT);
        vote(pools, votes, pair.b, false, KEPT_WEIGHT);
    }
    for (k = 0; k < evidence->turns.count; k++) {
        struct mt_pool_pair pair = evidence->turns.items[k];
        if (pools->part[pair.a] == pools->part[pair.b])
            continue;
        if (is_decided(pools, decided, pair.a))
            vote(pools, votes, pair.b, pool_of(pools, pair.a) != 0, 1);
        if (is_decided(pools, decided, pair.b))
            vote(pools, votes, pair.a, pool_of(pools, pair.b) != 0, 1);
    }
}

/* Follows the votes; the first part without any is decided as it is when
 * there are none. False if all were decided before. */
static bool decide_round(struct mt_lost_pools *pools, bool *decided, const struct votes *votes)
{
    uint32_t i, first = MT_NO_PART;
    bool changed = false;

    for (i = pools->part_count; i-- > 0;) {
        if (decided[i])
            continue;
        first = i;
        if (votes[i].stay == votes[i].turn)
            continue;
        pools->turned[i] = votes[i].turn > votes[i].stay;
        decided[i] = changed = true;
    }
    if (!changed && first != MT_NO_PART)
        decided[first] = changed = true;
    return changed;
}

/* Decided parts vote on their neighbours in time. */
static enum mt_status decide_by_votes(struct mt_lost_pools *pools)
{
    size_t count = (size_t)pools->part_count + 1;
    struct votes *votes = calloc(count, sizeof *votes);
    bool *decided = calloc(count, sizeof *decided), changed = true;
    int round;

    if (!votes || !decided) {
        free(votes);
        free(decided);
        return MT_ERR_MEMORY;
    }
    memcpy(decided, pools->certain, (count - 1) * sizeof *decided);
    for (round = 0; changed && round < MOST_ROUNDS; round++) {
        memset(votes, 0, count * sizeof *votes);
        count_votes(pools, decided, votes);
        changed = decide_round(pools, decided, votes);
    }
    free(votes);
    free(decided);
    return MT_OK;
}

/* ---- the guess ----------------------------------------------------------------- */

enum mt_status mt_lost_pools_guess(const struct mt_pool_evidence *evidence,
                                   struct mt_lost_pools *pools)
{
    struct graph graph = {0};
    enum mt_status status;

    memset(pools, 0, sizeof *pools);
    pools->evidence = evidence;
    pools->part = calloc((size_t)evidence->count + 1, sizeof *pools->part);
    pools->colour = calloc((size_t)evidence->count + 1, sizeof *pools->colour);
    pools->turned = calloc((size_t)evidence->count + 1, sizeof *pools->turned);
    pools->certain = calloc((size_t)evidence->count + 1, sizeof *pools->certain);
    status = make_graph(evidence, &graph);
    if (!pools->part || !pools->colour || !pools->turned || !pools->certain)
        status = MT_ERR_MEMORY;
    if (status == MT_OK) {
        colour_all(pools, &graph);
        status = decide_by_use(pools);
    }
    if (status == MT_OK)
        status = decide_by_votes(pools);
    release_graph(&graph);
    return status;
}

void mt_lost_pools_release(struct mt_lost_pools *pools)
{
    free(pools->part);
    free(pools->colour);
    free(pools->turned);
    free(pools->certain);
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
    uint32_t i, count = 0;

    for (i = 0; i < pools->evidence->count; i++) {
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
    if (part < pools->part_count)
        pools->turned[part] = !pools->turned[part];
}

void mt_lost_pools_turn_all(struct mt_lost_pools *pools)
{
    uint32_t i;

    for (i = 0; i < pools->part_count; i++)
        pools->turned[i] ^= !pools->certain[i];
}
