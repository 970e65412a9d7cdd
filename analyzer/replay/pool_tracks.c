/* The pools of the blocks of a run, and facts about each pool. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "event.h"
#include "grow.h"
#include "map.h"
#include "pool_tracks.h"
#include "process_memory.h"
#include "sorted.h"

void mt_pool_pairs_add(struct mt_pool_pairs *pairs, uint32_t a, uint32_t b)
{
    uint64_t key = (uint64_t)a << 32 | b;

    if (mt_map_get(&pairs->seen, key) != MT_MAP_NONE)
        return;
    mt_map_put(&pairs->seen, key, 1);
    mt_grow_to(&pairs->items, &pairs->capacity, pairs->count + 1, sizeof *pairs->items);
    pairs->items[pairs->count++] = (struct mt_pool_pair){a, b};
}

static void pool_pairs_release(struct mt_pool_pairs *pairs)
{
    free(pairs->items);
    mt_map_release(&pairs->seen);
    memset(pairs, 0, sizeof *pairs);
}

void mt_pool_evidence_release(struct mt_pool_evidence *evidence)
{
    free(evidence->instances);
    pool_pairs_release(&evidence->unequal);
    pool_pairs_release(&evidence->kept);
    pool_pairs_release(&evidence->turns);
    free(evidence->instance_of);
    memset(evidence, 0, sizeof *evidence);
}

enum { MAX_BLOCKS = 1 << 18, MAX_STEPS_BACK = 1 << 12 };

static const uint32_t ALIVE = UINT32_MAX;

void mt_pool_tracks_release(struct mt_pool_tracks *tracks)
{
    for (uint32_t i = 0; i < tracks->pool_count; i++)
        free(tracks->pools[i].sinces);
    free(tracks->pools);
    free(tracks->blocks);
    free(tracks->segments);
    free(tracks->earlier);
    mt_map_release(&tracks->newest);
    mt_map_release(&tracks->states);
    mt_map_release(&tracks->bases);
    mt_map_release(&tracks->ends);
    memset(tracks, 0, sizeof *tracks);
}

static uint64_t state_key(uint16_t pool, uint64_t hash)
{
    return hash ^ mt_hash_u64(UINT64_MAX - pool);
}

static void pool_of(struct mt_pool_tracks *tracks, uint16_t id, struct mt_pool_track **pool)
{
    if (id >= tracks->pool_count) {
        mt_grow_to(&tracks->pools, &tracks->pool_capacity, (size_t)id + 1, sizeof *tracks->pools);
        memset(tracks->pools + tracks->pool_count, 0,
               (id + 1u - tracks->pool_count) * sizeof *tracks->pools);
        tracks->pool_count = id + 1u;
    }
    *pool = &tracks->pools[id];
}

/* Number of `sinces` that are not above a moment. */
static size_t sinces_until(const struct mt_pool_track *pool, uint32_t moment)
{
    size_t low = 0;

    MT_BISECT(low, pool->since_count, middle, pool->sinces[middle] <= moment);
    return low;
}

static void drop_since(struct mt_pool_track *pool, uint32_t since)
{
    size_t place = sinces_until(pool, since);

    MT_ASSERT(place > 0 && pool->sinces[place - 1] == since);
    memmove(pool->sinces + place - 1, pool->sinces + place,
            (pool->since_count - place) * sizeof *pool->sinces);
    pool->since_count--;
}

/* Removes the segment at an index of the list from all tables. */
static void drop_segment(struct mt_pool_tracks *tracks, uint32_t place)
{
    struct mt_segment_track gone = tracks->segments[place];

    mt_map_take(&tracks->bases, gone.base);
    if (gone.expandable)
        mt_map_take(&tracks->ends, gone.base + gone.size_bytes);
    drop_since(&tracks->pools[gone.pool], gone.since);
    struct mt_segment_track *last = &tracks->segments[--tracks->segment_count];
    if (place == tracks->segment_count)
        return;
    tracks->segments[place] = *last;
    if (last->expandable)
        mt_map_put(&tracks->ends, last->base + last->size_bytes, place);
    mt_map_put(&tracks->bases, last->base, place);
}

static void add_segment(struct mt_pool_tracks *tracks, struct mt_segment_track segment)
{
    struct mt_pool_track *pool;

    pool_of(tracks, segment.pool, &pool);
    segment.since = tracks->now + 1;
    segment.scan = 0;
    if (tracks->segment_count >= MT_MAX_SEGMENT_TRACKS) {
        tracks->segments_left_out++;
        return;
    }
    mt_grow_to(&tracks->segments, &tracks->segment_capacity, (size_t)tracks->segment_count + 1,
               sizeof *tracks->segments);
    mt_grow_to(&pool->sinces, &pool->since_capacity, pool->since_count + 1, sizeof *pool->sinces);
    mt_map_put(&tracks->bases, segment.base, tracks->segment_count);
    if (segment.expandable)
        mt_map_put(&tracks->ends, segment.base + segment.size_bytes, tracks->segment_count);
    MT_ASSERT(!pool->since_count || pool->sinces[pool->since_count - 1] <= segment.since);
    pool->sinces[pool->since_count++] = segment.since;
    tracks->segments[tracks->segment_count++] = segment;
}

/* Joins a mapped range with the ranges of its pool that it touches. */
static void join_ranges(struct mt_pool_tracks *tracks, struct mt_segment_track *range)
{
    uint32_t below = mt_map_get(&tracks->ends, range->base);

    if (below != MT_MAP_NONE && tracks->segments[below].pool == range->pool) {
        range->base = tracks->segments[below].base;
        range->size_bytes += tracks->segments[below].size_bytes;
        drop_segment(tracks, below);
    }
    uint32_t above = mt_map_get(&tracks->bases, range->base + range->size_bytes);
    if (above != MT_MAP_NONE && tracks->segments[above].pool == range->pool &&
        tracks->segments[above].expandable) {
        range->size_bytes += tracks->segments[above].size_bytes;
        drop_segment(tracks, above);
    }
}

void mt_pool_tracks_segment(struct mt_pool_tracks *tracks, const struct mt_event *event,
                            uint16_t pool)
{
    struct mt_segment_track fresh = {.base = event->addr,
                                     .size_bytes = event->size_bytes,
                                     .pool = pool,
                                     .expandable = event->kind == MT_EVENT_SEGMENT_MAP};
    uint32_t there = mt_map_get(&tracks->bases, event->addr);

    /* Unmapping in the middle leaves a range that no restore can tile. */
    if (there != MT_MAP_NONE)
        drop_segment(tracks, there);
    if (!pool || !event->size_bytes || event->addr + event->size_bytes < event->addr ||
        event->kind == MT_EVENT_SEGMENT_FREE || event->kind == MT_EVENT_SEGMENT_UNMAP)
        return;
    if (fresh.expandable)
        join_ranges(tracks, &fresh);
    add_segment(tracks, fresh);
}

/* Forgets all dead blocks and all moments. */
static void forget_dead(struct mt_pool_tracks *tracks)
{
    uint32_t kept = 0;

    mt_map_release(&tracks->newest);
    mt_map_release(&tracks->states);
    tracks->first_moment = tracks->now + 1;
    for (uint32_t i = 0; i < tracks->block_count; i++) {
        if (tracks->blocks[i].until != ALIVE)
            continue;
        tracks->blocks[kept] = tracks->blocks[i];
        tracks->blocks[kept].before = MT_NO_TRACK;
        mt_map_put(&tracks->newest, tracks->blocks[kept].addr, kept);
        kept++;
    }
    tracks->block_count = kept;
}

/* Makes room for one more block; the list grows if live blocks fill it. */
static void make_room(struct mt_pool_tracks *tracks)
{
    if (tracks->block_count >= MAX_BLOCKS && (tracks->block_count & (tracks->block_count - 1)) == 0)
        forget_dead(tracks);
    if (tracks->block_count >= MT_NO_TRACK / 2)
        mt_memory_end();
    mt_grow_to(&tracks->blocks, &tracks->block_capacity, (size_t)tracks->block_count + 1,
               sizeof *tracks->blocks);
}

/* Puts the pool in a new state from the next moment. */
static void set_state(struct mt_pool_tracks *tracks, uint16_t pool)
{
    uint64_t key = state_key(pool, tracks->pools[pool].hash);
    size_t place = tracks->now + 1 - tracks->first_moment;

    if (tracks->now >= ALIVE - 1)
        mt_memory_end();
    mt_grow_to(&tracks->earlier, &tracks->earlier_capacity, place + 1, sizeof *tracks->earlier);
    tracks->now++;
    tracks->earlier[place] = mt_map_find(&tracks->states, key);
    mt_map_put(&tracks->states, key, tracks->now);
}

void mt_pool_tracks_end(struct mt_pool_tracks *tracks, uint64_t addr)
{
    uint32_t id = mt_map_get(&tracks->newest, addr);

    if (id == MT_MAP_NONE || tracks->blocks[id].until != ALIVE)
        return;
    struct mt_block_track *block = &tracks->blocks[id];
    struct mt_pool_track *pool = &tracks->pools[block->pool];
    MT_ASSERT(pool->live > 0);
    pool->live--;
    pool->hash = mt_pool_hash_without(pool->hash, addr);
    block->until = tracks->now + 1;
    set_state(tracks, block->pool);
}

void mt_pool_tracks_begin(struct mt_pool_tracks *tracks, const struct mt_block_track *track)
{
    struct mt_block_track fresh = *track;
    struct mt_pool_track *pool;

    mt_pool_tracks_end(tracks, track->addr);
    MT_ASSERT(track->pool != 0);
    make_room(tracks);
    pool_of(tracks, track->pool, &pool);
    fresh.before = mt_map_get(&tracks->newest, track->addr);
    fresh.from = tracks->now + 1;
    fresh.until = ALIVE;
    pool->live++;
    pool->hash = mt_pool_hash_with(pool->hash, track->addr);
    tracks->blocks[tracks->block_count] = fresh;
    mt_map_put(&tracks->newest, track->addr, tracks->block_count++);
    set_state(tracks, track->pool);
}

uint32_t mt_pool_tracks_moment(const struct mt_pool_tracks *tracks, uint16_t pool, uint64_t hash)
{
    return mt_map_get(&tracks->states, state_key(pool, hash));
}

uint32_t mt_pool_tracks_earlier(const struct mt_pool_tracks *tracks, uint32_t moment)
{
    MT_ASSERT(moment >= tracks->first_moment && moment <= tracks->now);
    return tracks->earlier[moment - tracks->first_moment];
}

const struct mt_block_track *mt_pool_tracks_back(const struct mt_pool_tracks *tracks, uint32_t *id,
                                                 uint32_t moment)
{
    for (uint32_t steps = 0; *id != MT_NO_TRACK && steps < MAX_STEPS_BACK; steps++) {
        const struct mt_block_track *block = &tracks->blocks[*id];
        if (block->from <= moment)
            return moment < block->until ? block : NULL;
        *id = block->before;
    }
    return NULL;
}

const struct mt_block_track *mt_pool_tracks_block(const struct mt_pool_tracks *tracks,
                                                  uint64_t addr, uint32_t moment)
{
    uint32_t id = mt_map_get(&tracks->newest, addr);

    _Static_assert(MT_NO_TRACK == MT_MAP_NONE, "the first block at an address has none before");
    return mt_pool_tracks_back(tracks, &id, moment);
}

struct mt_segment_track *mt_pool_tracks_segment_at(struct mt_pool_tracks *tracks, uint16_t pool,
                                                   uint64_t base)
{
    uint32_t id = mt_map_get(&tracks->bases, base);

    return id == MT_MAP_NONE || tracks->segments[id].pool != pool ? NULL : &tracks->segments[id];
}

size_t mt_pool_tracks_segments_since(const struct mt_pool_tracks *tracks, uint16_t pool,
                                     uint32_t moment)
{
    return pool < tracks->pool_count ? sinces_until(&tracks->pools[pool], moment) : 0;
}

bool mt_pool_tracks_is_sound(const struct mt_pool_tracks *tracks, const char **why)
{
    uint64_t alive = 0, live = 0, sinces = 0;

    for (uint32_t i = 0; i < tracks->block_count; i++) {
        const struct mt_block_track *block = &tracks->blocks[i];
        MT_SOUND(why, block->pool && block->pool < tracks->pool_count);
        MT_SOUND(why, block->from < block->until);
        MT_SOUND(why, block->before == MT_NO_TRACK || block->before < i);
        alive += block->until == ALIVE;
    }
    for (uint32_t i = 0; i < tracks->pool_count; i++) {
        live += tracks->pools[i].live;
        sinces += tracks->pools[i].since_count;
    }
    MT_SOUND(why, alive == live);
    MT_SOUND(why, sinces == tracks->segment_count && tracks->bases.count == sinces);
    return mt_map_is_sound(&tracks->newest, why) && mt_map_is_sound(&tracks->states, why);
}
