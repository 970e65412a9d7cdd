#include "pool_tracks.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "sorted.h"
#include "util.h"

/* PyTorch's block sizes are multiples of this. */
enum { GRAIN = 512 };

/* Searches examine at most a fixed share of the trace. */
enum { FREE_LOOKS = 1 << 16, LOOKS_PER_ALLOC = 8 };

/* Number of moments with the same state that are compared. */
enum { MAX_MOMENTS = 256 };

/* One tile looks like a program that allocates its only buffer again, which best fit serves equally
 * well. Without a stack that shows that one call made all tiles, two prove nothing either. A pool
 * that is restored to an empty state looks like requests for whole segments, and a single segment
 * serves these equally well. */
enum { MIN_TILES = 2, MIN_TILES_WITHOUT_STACK = 3, MIN_SEGMENTS_OF_GAPS = 2 };

void mt_pool_restores_release(struct mt_pool_restores *restores)
{
    free(restores->tiles);
    memset(restores, 0, sizeof *restores);
}

static bool is_tile(const struct mt_event *event)
{
    return event->kind == MT_EVENT_ALLOC &&
           !(event->flags & (MT_EVENT_INITIAL | MT_EVENT_GAP | MT_EVENT_AT_ADDRESS)) &&
           event->size_bytes && event->size_bytes % GRAIN == 0;
}

static bool has_evidence(const struct mt_pool_restores *restores)
{
    if (restores->stack == MT_NO_ID)
        return restores->stays && restores->tile_count >= MIN_TILES_WITHOUT_STACK;
    return restores->tile_count >= MIN_TILES &&
           (restores->stays || restores->segments >= MIN_SEGMENTS_OF_GAPS);
}

/* Whether the tiles so far are a restore if no more follow: every segment that the pool had at the
 * checkpoint is tiled, and the pool has the contents that it had then. */
static void judge(struct mt_pool_restores *restores, const struct mt_pool_tracks *tracks)
{
    const struct mt_pool_tile *last = &restores->tiles[restores->tile_count - 1];

    if (last->addr + last->size_bytes != restores->end || !has_evidence(restores) ||
        mt_pool_tracks_segments_since(tracks, restores->pool, restores->newest_since) !=
            restores->segments)
        return;
    uint32_t moment = mt_pool_tracks_moment(tracks, restores->pool, restores->hash);
    if (moment == MT_MAP_NONE || moment < restores->newest_since)
        return;
    restores->found_tiles = restores->tile_count;
    restores->found_frees = restores->frees;
    restores->found_moment = moment;
    restores->found_since = restores->newest_since;
}

static void add_tile(struct mt_pool_restores *restores, const struct mt_pool_tracks *tracks,
                     const struct mt_event *event)
{
    mt_grow_to(&restores->tiles, &restores->tile_capacity, restores->tile_count + 1,
               sizeof *restores->tiles);
    restores->tiles[restores->tile_count++] =
        (struct mt_pool_tile){.seq = event->seq,
                              .addr = event->addr,
                              .size_bytes = event->size_bytes,
                              .group = (uint32_t)restores->group};
    restores->stays++;
    restores->hash = mt_pool_hash_with(restores->hash, event->addr);
    judge(restores, tracks);
}

/* The first tile of a segment without tiles. */
static bool begin_segment(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                          const struct mt_event *event)
{
    struct mt_segment_track *segment =
        mt_pool_tracks_segment_at(tracks, restores->pool, event->addr);

    if (!segment || segment->scan == restores->scan || event->size_bytes > segment->size_bytes ||
        restores->tile_count >= UINT32_MAX)
        return false;
    segment->scan = restores->scan;
    restores->segments++;
    restores->newest_since = (uint32_t)mt_max_u64(restores->newest_since, segment->since);
    restores->end = segment->base + segment->size_bytes;
    restores->group = restores->next_gap = restores->tile_count;
    add_tile(restores, tracks, event);
    return true;
}

bool mt_pool_restores_may_begin(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                                const struct mt_event *event, uint16_t pool)
{
    restores->seen++;
    if (restores->tile_at < restores->tile_count || !is_tile(event) || !pool ||
        pool >= tracks->pool_count || tracks->pools[pool].live ||
        restores->looked > FREE_LOOKS + LOOKS_PER_ALLOC * restores->seen)
        return false;
    restores->tile_count = restores->tile_at = restores->found_tiles = 0;
    restores->stays = restores->frees = restores->segments = restores->newest_since = 0;
    restores->hash = restores->group = restores->end = 0;
    restores->pool = pool;
    restores->device = event->device;
    restores->stack = event->stack;
    restores->scan++;
    return begin_segment(restores, tracks, event);
}

static bool scan_alloc(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                       const struct mt_event *event)
{
    const struct mt_pool_tile *last = &restores->tiles[restores->tile_count - 1];
    uint64_t next = last->addr + last->size_bytes;

    if (!is_tile(event) || event->stack != restores->stack)
        return false;
    if (next == restores->end)
        return begin_segment(restores, tracks, event);
    if (event->addr != next || event->size_bytes > restores->end - next)
        return false;
    add_tile(restores, tracks, event);
    return true;
}

/* The tile of the last segment at an address, or NULL. */
static struct mt_pool_tile *tile_at(struct mt_pool_restores *restores, uint64_t addr)
{
    size_t low = restores->group;

    MT_BISECT(low, restores->tile_count, middle, restores->tiles[middle].addr < addr);
    return low < restores->tile_count && restores->tiles[low].addr == addr ? &restores->tiles[low]
                                                                           : NULL;
}

/* Gaps are freed in ascending order and never touch: free neighbors are one block. */
static bool scan_free(struct mt_pool_restores *restores, const struct mt_pool_tracks *tracks,
                      const struct mt_event *event)
{
    const struct mt_pool_tile *last = &restores->tiles[restores->tile_count - 1];
    struct mt_pool_tile *tile = tile_at(restores, event->addr);
    size_t index = tile ? (size_t)(tile - restores->tiles) : 0;

    if (!tile || last->addr + last->size_bytes != restores->end)
        return false;
    if (tile->freed)
        return event->kind == MT_EVENT_FREE_COMPLETED;
    if (index < restores->next_gap)
        return false;
    restores->next_gap = index + 2;
    tile->freed = ++restores->frees;
    restores->stays--;
    restores->hash = mt_pool_hash_without(restores->hash, event->addr);
    judge(restores, tracks);
    return true;
}

bool mt_pool_restores_scan(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                           const struct mt_event *event, uint16_t pool)
{
    restores->looked++;
    if (restores->looked > FREE_LOOKS + LOOKS_PER_ALLOC * restores->seen)
        return false;
    if (event->device != restores->device ||
        (!mt_event_is_memory(event) && event->kind != MT_EVENT_EMPTY_CACHE))
        return true;
    if (event->kind == MT_EVENT_ALLOC)
        return pool == restores->pool && scan_alloc(restores, tracks, event);
    return (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED) &&
           scan_free(restores, tracks, event);
}

/* Bytes of the tiles that were not requested at a moment; UINT64_MAX if that is `least` or more, if
 * not all blocks of that moment are known, or if one is larger than its tile. Later calls must be
 * for earlier moments: each continues where the previous one stopped. */
static uint64_t slack_at(struct mt_pool_restores *restores, const struct mt_pool_tracks *tracks,
                         uint32_t moment, uint64_t least)
{
    uint64_t slack = 0;

    for (size_t i = 0; i < restores->tile_count; i++) {
        struct mt_pool_tile *tile = &restores->tiles[i];

        if (tile->freed)
            continue;
        const struct mt_block_track *origin = mt_pool_tracks_back(tracks, &tile->origin, moment);
        if (!origin || origin->size_bytes > tile->size_bytes)
            return UINT64_MAX;
        slack += tile->size_bytes - origin->size_bytes;
        if (slack >= least)
            return UINT64_MAX;
    }
    return slack;
}

/* The pool may have had these addresses more than once, with blocks of other sizes. *least: bytes
 * of the tiles that were not requested at the chosen moment. */
static uint32_t choose_moment(struct mt_pool_restores *restores,
                              const struct mt_pool_tracks *tracks, uint64_t *least)
{
    uint32_t moment = restores->found_moment, best = moment;

    for (size_t i = 0; i < restores->tile_count; i++)
        restores->tiles[i].origin = mt_map_get(&tracks->newest, restores->tiles[i].addr);
    *least = slack_at(restores, tracks, moment, UINT64_MAX);
    for (uint32_t tries = 0; tries < MAX_MOMENTS && *least; tries++) {
        moment = mt_pool_tracks_earlier(tracks, moment);
        if (moment == MT_MAP_NONE || moment < restores->found_since)
            break;
        uint64_t slack = slack_at(restores, tracks, moment, *least);
        if (slack < *least) {
            *least = slack;
            best = moment;
        }
    }
    return best;
}

/* Whether the simulated pool has the tiles of a segment with the same sizes, at one constant
 * distance from the recorded ones. Then sets *distance. */
static bool is_congruent(const struct mt_pool_restores *restores,
                         const struct mt_pool_tracks *tracks, size_t first, size_t end,
                         uint64_t *distance)
{
    uint32_t id = mt_map_get(&tracks->newest, restores->tiles[first].addr);

    if (id == MT_MAP_NONE || !tracks->blocks[id].block_bytes)
        return false;
    *distance = tracks->blocks[id].block_addr - tracks->blocks[id].addr;
    for (size_t i = first; i < end; i++) {
        const struct mt_pool_tile *tile = &restores->tiles[i];
        if (!tile->freed &&
            (tile->place_bytes != tile->size_bytes || tile->place_addr - tile->addr != *distance))
            return false;
    }
    return true;
}

static void place_segment(struct mt_pool_restores *restores, const struct mt_pool_tracks *tracks,
                          size_t first, size_t end)
{
    uint64_t distance;

    for (size_t i = first; i < end; i++) {
        struct mt_pool_tile *tile = &restores->tiles[i];
        const struct mt_block_track *origin =
            tile->freed ? NULL : mt_pool_tracks_block(tracks, tile->addr, restores->found_moment);
        if (origin) {
            tile->place_addr = origin->block_addr;
            tile->place_bytes = origin->block_bytes;
        }
    }
    if (!is_congruent(restores, tracks, first, end, &distance))
        return;
    for (size_t i = first; i < end; i++) {
        struct mt_pool_tile *tile = &restores->tiles[i];
        if (tile->freed) {
            tile->place_addr = tile->addr + distance;
            tile->place_bytes = tile->size_bytes;
        }
    }
}

/* A program that refills its pool makes the same requests. A restore requests whole blocks, and
 * makes and frees gaps. Without a stack nothing else distinguishes them. */
static bool may_be_refilled(const struct mt_pool_restores *restores, uint64_t slack_bytes)
{
    return restores->stack == MT_NO_ID && !restores->found_frees && !slack_bytes;
}

bool mt_pool_restores_settle(struct mt_pool_restores *restores, const struct mt_pool_tracks *tracks)
{
    uint64_t slack_bytes;
    size_t end;

    restores->tile_count = restores->found_tiles;
    restores->tile_at = 0;
    for (size_t i = 0; i < restores->tile_count; i++)
        if (restores->tiles[i].freed > restores->found_frees)
            restores->tiles[i].freed = 0;
    if (restores->tile_count) {
        restores->found_moment = choose_moment(restores, tracks, &slack_bytes);
        if (may_be_refilled(restores, slack_bytes))
            restores->tile_count = 0;
    }
    for (size_t i = 0; i < restores->tile_count; i = end) {
        for (end = i + 1; end < restores->tile_count && restores->tiles[end].group == i; end++) {
        }
        place_segment(restores, tracks, i, end);
    }
    return restores->tile_count > 0;
}

const struct mt_pool_tile *mt_pool_restores_take(struct mt_pool_restores *restores, uint64_t seq)
{
    if (restores->tile_at >= restores->tile_count || restores->tiles[restores->tile_at].seq != seq)
        return NULL;
    return &restores->tiles[restores->tile_at++];
}

uint64_t mt_pool_restores_segment_bytes(const struct mt_pool_restores *restores,
                                        const struct mt_pool_tile *tile)
{
    size_t first = (size_t)(tile - restores->tiles);
    uint64_t bytes = 0;

    if (tile->group != first)
        return 0;
    for (size_t i = first; i < restores->tile_count && restores->tiles[i].group == first; i++)
        bytes += restores->tiles[i].size_bytes;
    return bytes;
}
