/* Restores of private pools. CUDA graph trees (torch.compile, mode="reduce-overhead") take a
 * checkpoint of their pool after each capture, and put the pool back to it before the next one
 * (setCheckpointPoolState in c10/cuda/CUDACachingAllocator.cpp). A trace shows a restore as
 *
 *     free ...                                whatever lives in the pool
 *     alloc alloc alloc alloc   free free     a segment of the checkpoint: tiles from its base to
 *                                             its end, then the tiles that were free: gaps
 *     alloc   free                            the next segment, and so on
 *
 * Best fit does not find these places: they are those of the checkpoint. So a sequence that looks
 * like this, and leaves what the pool held at an earlier moment, is served at once: a tile that
 * stays gets the place that the simulated allocator had given it at that moment (of several, the
 * one whose requests fill the tiles best, then the latest), and a gap what is
 * free between such tiles. If the simulated pool has another layout than the recorded one, as under
 * other options, recorded gaps mean nothing: they are left out.
 *
 *     if (mt_pool_restores_may_begin(restores, tracks, event, pool))
 *         mt_pool_restores_scan(...) for each event behind it until that returns false,
 *         then mt_pool_restores_settle
 *     mt_pool_restores_take(restores, event)    for each allocation: its tile, or NULL
 */
#ifndef MT_ANALYZER_POOL_RESTORES_H
#define MT_ANALYZER_POOL_RESTORES_H

#include "pool_tracks.h"

struct mt_pool_tile {
    uint64_t seq, addr, size_bytes;
    uint64_t place_addr, place_bytes; /* in the simulated pool; 0 bytes = no place is known */
    uint32_t freed;                   /* it was freed as the n-th; 0 = it stays */
    uint32_t group;                   /* index of the first tile of its segment */
    uint32_t origin;                  /* block track, while the moment is chosen */
};

/* Zeroed memory has found nothing. */
struct mt_pool_restores {
    struct mt_pool_tile *tiles;
    size_t tile_count, tile_capacity, tile_at;
    uint16_t pool, device;
    uint32_t stack;                  /* of every tile */
    uint32_t scan;                   /* number of the search */
    uint64_t seen, looked;           /* allocations that were offered; events looked at ahead */
    uint64_t end;                    /* of the segment that is being tiled */
    uint64_t hash;                   /* of the tiles that stay so far */
    uint32_t stays, frees, segments; /* tiles, tiles, segments so far */
    uint32_t newest_since;           /* of those segments */
    size_t group;                    /* first tile of the last segment */
    size_t next_gap;                 /* first tile of it that can be freed next */
    size_t found_tiles;              /* up to here it is a restore; 0 = not yet */
    uint32_t found_frees, found_moment, found_since;
    bool group_is_idle; /* set by who takes the tiles: the gaps of this segment can be cut */
};

void mt_pool_restores_release(struct mt_pool_restores *restores);

/* Can a restore begin with this allocation? If so the search for it has begun. */
bool mt_pool_restores_may_begin(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                                const struct mt_event *event, uint16_t pool,
                                enum mt_status *status);

/* The next event of the trace, at whatever device: false ends the search, also because of a
 * failure. `pool` is that of the event. */
bool mt_pool_restores_scan(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                           const struct mt_event *event, uint16_t pool, enum mt_status *status);

/* After the last event of the search: is it a restore? Then its tiles have places. */
bool mt_pool_restores_settle(struct mt_pool_restores *restores,
                             const struct mt_pool_tracks *tracks);

/* The tile of an allocation, NULL if it belongs to no restore. */
const struct mt_pool_tile *mt_pool_restores_take(struct mt_pool_restores *restores, uint64_t seq);

/* Of the first tile of a segment: bytes of all of its tiles; else 0. */
uint64_t mt_pool_restores_segment_bytes(const struct mt_pool_restores *restores,
                                        const struct mt_pool_tile *tile);

#endif
