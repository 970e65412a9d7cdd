/* Restores of private pools. CUDA graph trees (torch.compile, mode="reduce-overhead") take a
 * checkpoint of their pool after each capture, and put the pool back to it before the next one
 * (setCheckpointPoolState in c10/cuda/CUDACachingAllocator.cpp). A trace shows a restore as
 *
 *     free ...                                all live blocks of the pool
 *     alloc alloc alloc alloc   free free     a segment of the checkpoint: tiles from its base to
 *                                             its end, then the tiles that were free: gaps
 *     alloc   free                            the next segment, and so on
 *
 * Best fit does not find these places, because they come from the checkpoint. So a sequence of this
 * form that restores the contents of the pool at an earlier moment is served as a whole. A tile
 * that stays gets the place that the simulated allocator had given to it at that moment. Among
 * several moments, the one whose requests fill the tiles best is used, and among equals the latest.
 * A gap gets the free space between such tiles. If the layout of the simulated pool differs from
 * the recorded one, as under other options, recorded gaps are meaningless and are skipped.
 *
 *     if (mt_pool_restores_may_begin(restores, tracks, event, pool))
 *         mt_pool_restores_scan(...) for each later event until that returns false,
 *         then mt_pool_restores_settle
 *     mt_pool_restores_take(restores, event)    for each allocation: its tile, or NULL */
#ifndef MT_ANALYZER_POOL_RESTORES_H
#define MT_ANALYZER_POOL_RESTORES_H

#include "pool_tracks.h"

struct mt_pool_tile {
    uint64_t seq, addr, size_bytes;
    uint64_t place_addr, place_bytes; /* in the simulated pool; 0 bytes = unknown */
    uint32_t freed;                   /* it was the n-th tile that was freed; 0 = it stays */
    uint32_t group;                   /* index of the first tile of its segment */
    uint32_t origin;                  /* index of a block track, while the moment is chosen */
};

/* Zeroed memory is the empty state. */
struct mt_pool_restores {
    struct mt_pool_tile *tiles;
    size_t tile_count, tile_capacity, tile_at;
    uint16_t pool, device;
    uint32_t stack;                  /* common to all tiles */
    uint32_t scan;                   /* number of the search */
    uint64_t seen, looked;           /* allocations offered; events read ahead */
    uint64_t end;                    /* of the segment being tiled */
    uint64_t hash;                   /* of the tiles that stay so far */
    uint32_t stays, frees, segments; /* tiles that stay, freed tiles, segments so far */
    uint32_t newest_since;           /* the newest `since` of those segments */
    size_t group;                    /* first tile of the last segment */
    size_t next_gap;                 /* first tile of this segment that can be freed next */
    size_t found_tiles;              /* number of tiles confirmed as a restore; 0 = none yet */
    uint32_t found_frees, found_moment, found_since;
    bool group_is_idle; /* set by the caller: the gaps of this segment can be cut */
};

void mt_pool_restores_release(struct mt_pool_restores *restores);

/* Returns true if a restore can begin with this allocation, and then starts the search for it. */
bool mt_pool_restores_may_begin(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                                const struct mt_event *event, uint16_t pool);

/* Takes the next event of the trace, for any device. Returns false to end the search. `pool` is the
 * pool of the event. */
bool mt_pool_restores_scan(struct mt_pool_restores *restores, struct mt_pool_tracks *tracks,
                           const struct mt_event *event, uint16_t pool);

/* Call it after the last event of the search. Returns true if the events are a restore; its tiles
 * then have places. */
bool mt_pool_restores_settle(struct mt_pool_restores *restores,
                             const struct mt_pool_tracks *tracks);

/* Returns the tile of an allocation, or NULL if it is not part of a restore. */
const struct mt_pool_tile *mt_pool_restores_take(struct mt_pool_restores *restores, uint64_t seq);

/* Returns the bytes of all tiles of a segment if `tile` is its first tile; otherwise 0. */
uint64_t mt_pool_restores_segment_bytes(const struct mt_pool_restores *restores,
                                        const struct mt_pool_tile *tile);

#endif
