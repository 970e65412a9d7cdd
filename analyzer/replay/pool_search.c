/* Searches for lost pools: what the recording proves about the pools of blocks, then replays of
 * guesses. */
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "lane.h"
#include "lost_pools.h"
#include "policy.h"
#include "pool_search.h"
#include "pool_tracks.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "sorted.h"
#include "source.h"
#include "util.h"

/* What a recording proves about the pools of its blocks. */

/* State of the pass that collects evidence of pools. */

/* One device of the pass. */
struct pool_lane {
    struct mt_lane lane;
    struct mt_replay_result result;
    uint32_t *alive; /* instances, ascending by base */
    size_t alive_count, alive_capacity;
    uint32_t *idle; /* instances that could be released when the cache was emptied */
    size_t idle_count, idle_capacity;
    uint32_t *gone; /* instances that were released in this group, at least partly */
    size_t gone_count, gone_capacity;
    uint32_t last; /* instance of the last request */
    bool grew;     /* memory was added immediately before the request */
    bool is_flush; /* the cache is being emptied */
};

struct pool_walk {
    struct mt_source *source;
    struct mt_pool_evidence *evidence;
    struct mt_pytorch_config config;
    struct pool_lane *lanes[MT_MAX_DEVICES];
    uint64_t looks;
    uint32_t group; /* number of the group of segment events */
};

/* Maximum number of pairs of each kind. n segments can have n * n / 2 pairs, and at 100 bytes a
 * pair a trace of 1 KB could take 400 MiB. The captures have at most one pair per nine events. */
static const size_t MAX_PAIRS = (size_t)1 << 22;

enum { FREE_PAIRS = 4096, PAIRS_PER_EVENT = 4 };

/* pool_place_above returns the index in `alive` of the first instance that begins above `addr`.
 * pool_instance_at returns the instance that contains `addr`, or MT_NO_INSTANCE. */
static size_t pool_place_above(const struct pool_walk *walk, const struct pool_lane *lane,
                               uint64_t addr)
{
    size_t low = 0;

    MT_BISECT(low, lane->alive_count, middle,
              walk->evidence->instances[lane->alive[middle]].base <= addr);
    return low;
}

static void pool_push(uint32_t **items, size_t *count, size_t *capacity, uint32_t item)
{
    mt_grow_to(items, capacity, *count + 1, sizeof **items);
    (*items)[(*count)++] = item;
}

/* Adds a pair. With too many pairs the search gives up. */
static void add_pair(struct mt_pool_evidence *evidence, struct mt_pool_pairs *pairs, uint32_t a,
                     uint32_t b)
{
    size_t most =
        mt_min_u64(MAX_PAIRS, FREE_PAIRS + (uint64_t)PAIRS_PER_EVENT * evidence->event_count);

    if (!evidence->gave_up)
        mt_pool_pairs_add(pairs, a, b);
    evidence->gave_up |= pairs->count > most;
}

/* Add a piece of evidence. If there are too many of either kind, the search gives up
 * (evidence->gave_up). */
static void pool_set_unequal(struct pool_walk *walk, uint32_t a, uint32_t b)
{
    add_pair(walk->evidence, &walk->evidence->unequal, a < b ? a : b, a < b ? b : a);
}

static void pool_set_kept(struct pool_walk *walk, uint32_t stayed, uint32_t gone)
{
    add_pair(walk->evidence, &walk->evidence->kept, stayed, gone);
}

static uint32_t pool_instance_at(const struct pool_walk *walk, const struct pool_lane *lane,
                                 uint64_t addr)
{
    size_t above = pool_place_above(walk, lane, addr);

    if (!above || addr >= walk->evidence->instances[lane->alive[above - 1]].end)
        return MT_NO_INSTANCE;
    return lane->alive[above - 1];
}

/* Evidence from flushes: the segments that were released, those that stayed, and the order. */

/* Whether a flush of its pool would release this free block, or chunks of it. */
static bool can_go(const struct pool_walk *walk, const struct mt_block *block,
                   const struct mt_pool_instance *instance)
{
    uint64_t chunk = instance->is_small ? MT_PYTORCH_SMALL_SEGMENT
                                        : mt_max_u64(walk->config.large_segment_bytes, 1);
    uint64_t offset = block->addr - instance->base;

    if (!block->expandable)
        return !mt_block_is_split(block);
    return block->size_bytes >= chunk &&
           mt_round_down(offset + block->size_bytes, chunk) > mt_round_up(offset, chunk);
}

/* Notes the releasable segments at the start of empty_cache(). */
static void pool_note_idle(struct pool_walk *walk, struct pool_lane *lane)
{
    const struct mt_block_store *store = mt_recorded_blocks(lane->lane.policy);

    lane->is_flush = true;
    lane->idle_count = 0;
    walk->looks += store->count;
    for (uint32_t i = 0; i < store->count; i++) {
        const struct mt_block *block = &store->blocks[i];
        if (block->state != MT_BLOCK_FREE)
            continue;
        uint32_t id = pool_instance_at(walk, lane, block->addr);
        if (id != MT_NO_INSTANCE && can_go(walk, block, &walk->evidence->instances[id]))
            pool_push(&lane->idle, &lane->idle_count, &lane->idle_capacity, id);
    }
}

/* A flush releases all that it can of a pool: a segment that stayed is in another pool than all
 * that were released. */
static void compare_flushed(struct pool_walk *walk, struct pool_lane *lane, uint32_t stayed)
{
    pool_set_kept(walk, stayed, lane->gone[0]);
    walk->looks += lane->gone_count;
    for (size_t i = 0; !walk->evidence->gave_up && i < lane->gone_count; i++)
        pool_set_unequal(walk, stayed, lane->gone[i]);
}

static uint64_t stream_handle(const struct pool_walk *walk, uint32_t stream)
{
    const struct mt_symbols *symbols = &walk->source->symbols;

    return stream < symbols->stream_count ? symbols->streams[stream].handle : stream;
}

/* Whether one flush of a pool releases whole segments in this order: by stream, size, address. */
static bool is_in_order(const struct pool_walk *walk, const struct mt_pool_instance *a,
                        const struct mt_pool_instance *b)
{
    uint64_t size_a = a->end - a->base, size_b = b->end - b->base;

    if (a->is_small != b->is_small || a->expandable || b->expandable)
        return true;
    if (a->stream != b->stream)
        return stream_handle(walk, a->stream) < stream_handle(walk, b->stream);
    return size_a < size_b || (size_a == size_b && a->base <= b->base);
}

/* Segments released in another order than that of one flush belong to two pools. */
static void compare_order(struct pool_walk *walk, struct pool_lane *lane)
{
    const struct mt_pool_instance *instances = walk->evidence->instances;

    for (size_t i = 0; i < lane->gone_count; i++) {
        walk->looks += i;
        for (size_t k = 0; !walk->evidence->gave_up && k < i; k++)
            if (!is_in_order(walk, &instances[lane->gone[k]], &instances[lane->gone[i]]))
                pool_set_unequal(walk, lane->gone[k], lane->gone[i]);
    }
}

/* Ends the group of segment events. */
static void pool_end_group(struct pool_walk *walk, struct pool_lane *lane)
{
    for (size_t i = 0; !walk->evidence->gave_up && i < lane->idle_count && lane->gone_count; i++)
        if (walk->evidence->instances[lane->idle[i]].group != walk->group)
            compare_flushed(walk, lane, lane->idle[i]);
    if (lane->is_flush)
        compare_order(walk, lane);
    walk->group += lane->gone_count > 0;
    lane->is_flush = false;
    lane->idle_count = lane->gone_count = 0;
    lane->grew = false;
}

/* Beyond these limits the search gives up: real traces stay below them, hostile files may not. */
static const size_t MAX_EVENTS = (size_t)1 << 26;
static const uint64_t MAX_LOOKS = UINT64_C(2000000000);

static bool is_small_segment(const struct mt_event *event)
{
    if ((event->flags & MT_EVENT_INITIAL) && event->aux_bytes)
        return event->aux_bytes <= MT_PYTORCH_SMALL_LIMIT;
    return event->size_bytes == MT_PYTORCH_SMALL_SEGMENT; /* chunks of large ones are larger */
}

/* Marks the reservation as unequal to every existing one of its kind. */
static void tell_reservations_apart(struct pool_walk *walk, const struct pool_lane *lane,
                                    uint32_t id)
{
    const struct mt_pool_instance *self = &walk->evidence->instances[id];

    for (size_t i = 0; i < lane->alive_count; i++) {
        const struct mt_pool_instance *other = &walk->evidence->instances[lane->alive[i]];
        if (lane->alive[i] != id && other->expandable && other->stream == self->stream &&
            other->is_small == self->is_small)
            pool_set_unequal(walk, id, lane->alive[i]);
    }
}

static void new_instance(struct pool_walk *walk, struct pool_lane *lane,
                         const struct mt_event *event, uint32_t *id)
{
    struct mt_pool_evidence *evidence = walk->evidence;
    struct mt_pool_instance fresh = {0};
    size_t place = pool_place_above(walk, lane, event->addr);

    mt_grow_to(&evidence->instances, &evidence->capacity, (size_t)evidence->count + 1,
               sizeof *evidence->instances);
    pool_push(&lane->alive, &lane->alive_count, &lane->alive_capacity, 0);
    fresh.base = fresh.end = event->addr;
    fresh.first_release_seq = UINT64_MAX;
    fresh.stream = event->stream;
    fresh.device = event->device;
    fresh.is_small = is_small_segment(event);
    fresh.expandable = event->kind == MT_EVENT_SEGMENT_MAP;
    *id = evidence->count++;
    evidence->instances[*id] = fresh;
    memmove(lane->alive + place + 1, lane->alive + place,
            (lane->alive_count - 1 - place) * sizeof *lane->alive);
    lane->alive[place] = *id;
    if (fresh.expandable)
        tell_reservations_apart(walk, lane, *id);
}

/* Returns the reservation that a mapped range continues: it begins below the range and was mapped
 * at least up to it at some time. */
static uint32_t reservation_of(const struct pool_walk *walk, const struct pool_lane *lane,
                               const struct mt_event *event)
{
    size_t above = pool_place_above(walk, lane, event->addr);

    if (!above)
        return MT_NO_INSTANCE;
    const struct mt_pool_instance *below = &walk->evidence->instances[lane->alive[above - 1]];
    return below->expandable && below->stream == event->stream &&
                   below->is_small == is_small_segment(event) && event->addr <= below->end
               ? lane->alive[above - 1]
               : MT_NO_INSTANCE;
}

static void add_memory(struct pool_walk *walk, struct pool_lane *lane, const struct mt_event *event,
                       uint32_t *id)
{
    *id = event->kind == MT_EVENT_SEGMENT_MAP ? reservation_of(walk, lane, event) : MT_NO_INSTANCE;
    if (*id == MT_NO_INSTANCE)
        new_instance(walk, lane, event, id);
    struct mt_pool_instance *instance = &walk->evidence->instances[*id];
    instance->end = mt_max_u64(instance->end, event->addr + event->size_bytes);
    instance->mapped_bytes += event->size_bytes;
    lane->grew = true;
}

static void remove_memory(struct pool_walk *walk, struct pool_lane *lane,
                          const struct mt_event *event, uint32_t id)
{
    struct mt_pool_instance *instance = &walk->evidence->instances[id];
    size_t place = pool_place_above(walk, lane, instance->base);

    instance->mapped_bytes -= mt_min_u64(instance->mapped_bytes, event->size_bytes);
    if (event->seq < instance->first_release_seq)
        instance->first_release_seq = event->seq;
    if (instance->group != walk->group)
        pool_push(&lane->gone, &lane->gone_count, &lane->gone_capacity, id);
    instance->group = walk->group;
    if (instance->mapped_bytes)
        return;
    do /* a damaged trace may have several with one base */
        place--;
    while (lane->alive[place] != id);
    memmove(lane->alive + place, lane->alive + place + 1,
            (lane->alive_count - 1 - place) * sizeof *lane->alive);
    lane->alive_count--;
}

/* A request and the free block whose low end it took. */
struct landing {
    uint32_t instance, rest;
    uint64_t wanted_bytes; /* rounded */
    uint64_t addr, size_bytes;
    bool grew;
};

/* Whether the pool of `block` would have skipped it regardless of the pool's other blocks. If so,
 * it is no evidence. */
static bool says_nothing(const struct pool_walk *walk, const struct landing *landing,
                         const struct mt_block *block)
{
    uint64_t max_split = walk->config.max_split_bytes, wanted = landing->wanted_bytes;

    if (!landing->grew) {
        bool preferred = block->size_bytes < landing->size_bytes ||
                         (block->size_bytes == landing->size_bytes && block->addr < landing->addr);
        /* at the growing end a block counts as larger than it is */
        return !preferred || (block->expandable && block->next == MT_NO_BLOCK);
    }
    if (wanted < max_split)
        return block->size_bytes >= max_split;
    return block->size_bytes >= wanted + walk->config.max_non_split_rounding_bytes;
}

static void compare_all(struct pool_walk *walk, const struct pool_lane *lane,
                        const struct landing *landing)
{
    const struct mt_block_store *store = mt_recorded_blocks(lane->lane.policy);
    const struct mt_pool_instance *here = &walk->evidence->instances[landing->instance];

    walk->looks += store->count;
    for (uint32_t i = 0; i < store->count; i++) {
        const struct mt_block *block = &store->blocks[i];
        if (block->state != MT_BLOCK_FREE || block->size_bytes < landing->wanted_bytes ||
            i == landing->rest || says_nothing(walk, landing, block))
            continue;
        uint32_t other = pool_instance_at(walk, lane, block->addr);
        if (other == MT_NO_INSTANCE || other == landing->instance)
            continue;
        const struct mt_pool_instance *there = &walk->evidence->instances[other];
        if (there->stream == here->stream && there->is_small == here->is_small &&
            there->expandable == here->expandable)
            pool_set_unequal(walk, landing->instance, other);
    }
}

static void observe_request(struct pool_walk *walk, struct pool_lane *lane,
                            const struct mt_event *event, uint32_t id)
{
    const struct mt_block_store *store = mt_recorded_blocks(lane->lane.policy);
    const struct mt_live *live = mt_live_find(&lane->lane.live, event->addr);
    struct landing landing = {0};

    if (lane->last != MT_NO_INSTANCE && lane->last != id)
        mt_pool_pairs_add(&walk->evidence->turns, lane->last, id);
    lane->last = id;
    walk->evidence->instances[id].last_alloc_seq = event->seq;
    if (!live || live->handle == MT_LIVE_NO_HANDLE)
        return;
    const struct mt_block *block = &store->blocks[live->handle];
    landing.instance = id;
    landing.rest = block->next;
    landing.wanted_bytes = mt_pytorch_round_size(&walk->config, event->size_bytes);
    landing.addr = block->addr;
    landing.size_bytes = block->size_bytes;
    landing.grew = lane->grew;
    if (block->next != MT_NO_BLOCK && store->blocks[block->next].state == MT_BLOCK_FREE)
        landing.size_bytes += store->blocks[block->next].size_bytes;
    if (walk->evidence->instances[id].is_small != (landing.wanted_bytes <= MT_PYTORCH_SMALL_LIMIT))
        return;
    compare_all(walk, lane, &landing);
}

static enum mt_status open_lane(struct pool_walk *walk, uint16_t device, struct mt_error *error)
{
    struct pool_lane *self = mt_memory_zeroed(1, sizeof *self);
    char spelling[16];

    walk->lanes[device] = self;
    self->last = MT_NO_INSTANCE;
    self->lane.result = &self->result;
    self->lane.ops = &mt_policy_recorded;
    self->lane.completes_at_request = !walk->source->header.has_free_completed;
    mt_device_init(&self->lane.device, 0, 0, true);
    return mt_policy_create(&mt_policy_recorded,
                            &(struct mt_policy_setup){NULL, &walk->source->header,
                                                      &walk->source->symbols, &self->lane.device,
                                                      spelling, sizeof spelling},
                            &self->lane.policy, error);
}

static void close_lane(struct pool_lane *self)
{
    if (!self)
        return;
    if (self->lane.policy)
        mt_policy_recorded.destroy(self->lane.policy);
    mt_device_release(&self->lane.device);
    mt_live_release(&self->lane.live);
    free(self->alive);
    free(self->idle);
    free(self->gone);
    free(self);
}

static void remember_event(struct pool_walk *walk, const struct mt_event *event, uint32_t id)
{
    struct mt_pool_evidence *evidence = walk->evidence;

    if (event->seq >= MAX_EVENTS) {
        evidence->gave_up = true;
        return;
    }
    while (evidence->event_count <= event->seq) {
        pool_push(&evidence->instance_of, &evidence->event_count, &evidence->event_capacity,
                  MT_NO_INSTANCE);
    }
    evidence->instance_of[event->seq] = id;
    if (id != MT_NO_INSTANCE && !event->pool)
        evidence->instances[id].has_nameless = true;
    if (id != MT_NO_INSTANCE && event->pool) {
        evidence->instances[id].pool = event->pool;
        evidence->instances[id].is_known = true;
    }
}

static void walk_segment(struct pool_walk *walk, struct pool_lane *lane,
                         const struct mt_event *event)
{
    bool comes = event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_MAP;
    uint32_t id = MT_NO_INSTANCE;

    mt_policy_recorded.follow_segment(lane->lane.policy, event);
    if (comes)
        add_memory(walk, lane, event, &id);
    else
        id = pool_instance_at(walk, lane, event->addr);
    remember_event(walk, event, id);
    if (!comes && id != MT_NO_INSTANCE)
        remove_memory(walk, lane, event, id);
}

static enum mt_status walk_event(struct pool_walk *walk, struct pool_lane *lane,
                                 const struct mt_event *event)
{
    static const struct mt_counters nothing;
    struct mt_replay_view view = {&nothing, 0, 0, MT_NO_ALLOCATION, 0, false};
    enum mt_status status = MT_OK;

    if (mt_event_is_segment(event)) {
        walk_segment(walk, lane, event);
        return MT_OK;
    }
    if (event->kind == MT_EVENT_EMPTY_CACHE) {
        pool_note_idle(walk, lane);
        return MT_OK;
    }
    if (event->flags & MT_EVENT_INITIAL)
        status = mt_lane_restore(&lane->lane, event, 0, &view);
    else if (event->kind == MT_EVENT_ALLOC)
        status = mt_lane_alloc(&lane->lane, event, 0, &view);
    else if (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED)
        status = mt_lane_free(&lane->lane, event, &view);
    if (status != MT_OK)
        return status;
    uint32_t id = event->addr ? pool_instance_at(walk, lane, event->addr) : MT_NO_INSTANCE;
    remember_event(walk, event, id);
    if (event->kind == MT_EVENT_ALLOC && id != MT_NO_INSTANCE && !(event->flags & MT_EVENT_INITIAL))
        observe_request(walk, lane, event, id);
    pool_end_group(walk, lane);
    return MT_OK;
}

static enum mt_status walk_batch(struct pool_walk *walk, const struct mt_event_batch *batch,
                                 struct mt_error *error)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; status == MT_OK && !walk->evidence->gave_up && i < batch->count; i++) {
        const struct mt_event *event = &batch->events[i];
        if (event->device >= MT_MAX_DEVICES ||
            (!mt_event_is_memory(event) && event->kind != MT_EVENT_EMPTY_CACHE))
            continue;
        if (!walk->lanes[event->device])
            status = open_lane(walk, event->device, error);
        if (status == MT_OK)
            status = walk_event(walk, walk->lanes[event->device], event);
        if (walk->looks > MAX_LOOKS)
            walk->evidence->gave_up = true;
    }
    return status;
}

/* Segments that exist at the end have the pool named by the snapshot. */
static void finish(struct pool_walk *walk)
{
    for (size_t i = 0; i < MT_MAX_DEVICES; i++) {
        struct pool_lane *lane = walk->lanes[i];
        for (size_t k = 0; lane && k < lane->alive_count; k++)
            walk->evidence->instances[lane->alive[k]].is_known = true;
        if (lane)
            pool_end_group(walk, lane);
    }
}

enum mt_status mt_pool_evidence_collect(struct mt_source *source, struct mt_pool_evidence *evidence,
                                        struct mt_error *error)
{
    struct pool_walk walk = {.source = source, .evidence = evidence, .group = 1};
    struct mt_event_batch batch;
    enum mt_status status = MT_OK;

    memset(evidence, 0, sizeof *evidence);
    if (mt_pytorch_config_recorded(&source->header, &walk.config, NULL) != MT_OK)
        mt_pytorch_config_defaults(&walk.config);
    while (status == MT_OK && !evidence->gave_up &&
           (status = mt_source_next(source, &batch, error)) == MT_OK)
        status = walk_batch(&walk, &batch, error);
    if (status == MT_END) {
        finish(&walk);
        status = MT_OK;
    }
    for (size_t i = 0; i < MT_MAX_DEVICES; i++)
        close_lane(walk.lanes[i]);
    return status;
}

/* Number of trials, and of events examined after the first difference: the cause is close to it. */
enum { MAX_TRIALS = 24, NEAR_EVENTS = 64 };

/* Rotates a part, or all, and back if the agreement does not extend. */
static enum mt_status try_turned(const struct mt_pool_trial *trial, struct mt_lost_pools *pools,
                                 uint32_t part, struct mt_pool_reach *best, struct mt_error *error)
{
    uint16_t ways = mt_lost_pools_ways(pools, part);
    struct mt_pool_reach reach;

    for (uint16_t way = 1; way < ways; way++) {
        mt_lost_pools_turn(pools, part);
        enum mt_status status = trial->run(trial->context, pools, &reach, error);
        if (status != MT_OK)
            return status;
        if (mt_pool_reach_is_further(reach, *best)) {
            *best = reach;
            return MT_OK;
        }
    }
    mt_lost_pools_turn(pools, part);
    return MT_OK;
}

/* Rotates parts near the difference, one after the other. */
static enum mt_status improve_pools(const struct mt_pool_trial *trial, struct mt_lost_pools *pools,
                                    struct mt_pool_reach *best, struct mt_error *error)
{
    enum mt_status status = MT_OK;
    uint32_t last = MT_NO_PART;
    int trials = 0;

    if (best->event != UINT64_MAX)
        status = try_turned(trial, pools, MT_NO_PART, best, error);
    for (uint64_t seq = best->event; status == MT_OK && best->event != UINT64_MAX &&
                                     trials < MAX_TRIALS && seq < best->event + NEAR_EVENTS;
         seq++) {
        struct mt_pool_reach before = *best;
        uint32_t part = mt_lost_pools_part_at(pools, seq);
        if (part == MT_NO_PART || part == last)
            continue;
        last = part;
        trials++;
        status = try_turned(trial, pools, part, best, error);
        if (mt_pool_reach_is_further(*best, before))
            seq = best->event - 1;
    }
    return status;
}

enum mt_status mt_pool_search(struct mt_source *source, const struct mt_pool_trial *trial,
                              struct mt_pool_evidence *evidence, struct mt_lost_pools *pools,
                              struct mt_pool_reach *best, struct mt_error *error)
{
    memset(evidence, 0, sizeof *evidence);
    memset(pools, 0, sizeof *pools);
    *best = (struct mt_pool_reach){0, 0};
    enum mt_status status = mt_source_rewind(source, error);
    if (status == MT_OK)
        status = mt_pool_evidence_collect(source, evidence, error);
    if (status != MT_OK || evidence->gave_up || evidence->unequal.count + evidence->kept.count == 0)
        return status;
    mt_lost_pools_guess(evidence, pools);
    status = trial->run(trial->context, pools, best, error);
    return status == MT_OK ? improve_pools(trial, pools, best, error) : status;
}
