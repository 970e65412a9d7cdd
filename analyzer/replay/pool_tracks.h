/* History of the blocks in a device's private pools: their places in the recording and in the
 * simulated allocator. A restore (pool_restores.c) returns a pool to an earlier moment of this
 * history.
 *
 * Moments are numbered: each allocation or free in a private pool is one moment. Memory: about 130
 * bytes for each of the newest 262,144 blocks of private pools; older ones are forgotten. */
#ifndef MT_ANALYZER_POOL_TRACKS_H
#define MT_ANALYZER_POOL_TRACKS_H

#include <stdbool.h>

#include "event.h"
#include "hash.h"
#include "map.h"

#define MT_NO_TRACK UINT32_MAX

struct mt_block_track {
    uint64_t addr, size_bytes;        /* recorded: place, requested */
    uint64_t block_addr, block_bytes; /* simulated; 0 bytes = no place was found */
    uint32_t from, until;             /* moments: alive in [from, until) */
    uint32_t before;                  /* the previous block at addr, MT_NO_TRACK */
    uint16_t pool;
};

/* Maximum number of segments at one time. The limit bounds the cost of an event, which may search
 * and move the whole list. */
enum { MT_MAX_SEGMENT_TRACKS = 1 << 16 };

/* A recorded segment; for expandable ones, a contiguous mapped range. */
struct mt_segment_track {
    uint64_t base, size_bytes;
    uint32_t since; /* the moment at which it got this size */
    uint32_t scan;  /* the last search that found it tiled (pool_restores.c) */
    uint16_t pool;
    bool expandable;
};

struct mt_pool_track {
    uint64_t hash;    /* of the addresses of live blocks */
    uint32_t live;    /* blocks */
    uint32_t *sinces; /* `since` of its segments, ascending */
    size_t since_count, since_capacity;
};

/* Zeroed memory has no pools. */
struct mt_pool_tracks {
    struct mt_block_track *blocks;
    uint32_t block_count;
    size_t block_capacity;
    struct mt_map newest; /* address -> the newest block there */
    struct mt_map states; /* pool and hash -> the newest moment of that state */
    uint32_t *earlier;    /* moment - first_moment -> the previous moment of the same state */
    size_t earlier_capacity;
    uint32_t first_moment; /* earlier moments are forgotten */
    struct mt_segment_track *segments;
    uint32_t segment_count;
    size_t segment_capacity;
    uint64_t segments_left_out;  /* beyond MT_MAX_SEGMENT_TRACKS: no restore can tile them */
    struct mt_map bases, ends;   /* address -> segment; ends: only expandable ones */
    struct mt_pool_track *pools; /* by pool id; 0 is unused */
    uint32_t pool_count;
    size_t pool_capacity;
    uint32_t now; /* current moment */
};

void mt_pool_tracks_release(struct mt_pool_tracks *tracks);

/* Takes segment events in the order of the trace; ignores those of the default pool. */
void mt_pool_tracks_segment(struct mt_pool_tracks *tracks, const struct mt_event *event,
                            uint16_t pool);

/* Starts a block of a private pool; `track` has everything except moments. Ends a block that is
 * still at that address. */
void mt_pool_tracks_begin(struct mt_pool_tracks *tracks, const struct mt_block_track *track);

/* Ends the live block at that address, if there is one. */
void mt_pool_tracks_end(struct mt_pool_tracks *tracks, uint64_t addr);

/* Adds an address to the hash of a state, or removes it. */
static inline uint64_t mt_pool_hash_with(uint64_t hash, uint64_t addr)
{
    return hash + mt_hash_u64(addr);
}

static inline uint64_t mt_pool_hash_without(uint64_t hash, uint64_t addr)
{
    return hash - mt_hash_u64(addr);
}

/* Returns the newest moment at which the pool held exactly the addresses of `hash`, or
 * MT_MAP_NONE. */
uint32_t mt_pool_tracks_moment(const struct mt_pool_tracks *tracks, uint16_t pool, uint64_t hash);

/* Returns the previous moment with the same addresses, or MT_MAP_NONE. */
uint32_t mt_pool_tracks_earlier(const struct mt_pool_tracks *tracks, uint32_t moment);

/* Returns the block that was alive at an address at a moment, or NULL if it is unknown. */
const struct mt_block_track *mt_pool_tracks_block(const struct mt_pool_tracks *tracks,
                                                  uint64_t addr, uint32_t moment);

/* Like mt_pool_tracks_block, but searches backward from block *id, which was at the address at that
 * moment or later. Sets *id to the result, or to the last block examined. O(blocks in between). */
const struct mt_block_track *mt_pool_tracks_back(const struct mt_pool_tracks *tracks, uint32_t *id,
                                                 uint32_t moment);

/* Returns the segment of a pool that begins at an address, or NULL. */
struct mt_segment_track *mt_pool_tracks_segment_at(struct mt_pool_tracks *tracks, uint16_t pool,
                                                   uint64_t base);

/* Returns the number of segments of the pool that have not changed size since `moment`. */
size_t mt_pool_tracks_segments_since(const struct mt_pool_tracks *tracks, uint16_t pool,
                                     uint32_t moment);

/* Checks that the counts of live blocks are correct, and that tables refer to existing entries. */
bool mt_pool_tracks_is_sound(const struct mt_pool_tracks *tracks, const char **why);

/* Results of the pass of pool_search.h: the segments of a trace and their pools. */

#define MT_NO_INSTANCE UINT32_MAX

struct mt_pool_instance {
    uint64_t base, end; /* for an expandable segment: all ranges that were mapped at some time */
    uint64_t mapped_bytes;
    uint64_t first_release_seq; /* UINT64_MAX = no part of the segment was released */
    uint64_t last_alloc_seq;    /* 0 = nothing was allocated from it */
    uint32_t stream;
    uint32_t group; /* number of the flush that last released it, 0 = it stayed */
    uint16_t device;
    uint16_t pool; /* from the trace, 0 = default or unknown */
    bool is_small, expandable;
    bool is_known;     /* its pool is certain */
    bool has_nameless; /* it has events without a pool */
};

struct mt_pool_pair {
    uint32_t a, b;
};

/* A set of pairs of small numbers, in the order in which they were added. Zeroed memory is an empty
 * set. */
struct mt_pool_pairs {
    struct mt_pool_pair *items;
    size_t count, capacity;
    struct mt_map seen;
};

/* (a, b) and (b, a) are different pairs. */
void mt_pool_pairs_add(struct mt_pool_pairs *pairs, uint32_t a, uint32_t b);

struct mt_pool_evidence {
    struct mt_pool_instance *instances;
    uint32_t count;
    size_t capacity;
    struct mt_pool_pairs unequal; /* a < b */
    struct mt_pool_pairs
        kept; /* a could have been released, but stayed when b was first released */
    struct mt_pool_pairs turns; /* a request from b directly followed one from a */
    uint32_t *instance_of;      /* by event number: the instance that the event concerns */
    size_t event_count, event_capacity;
    bool gave_up; /* the trace is too large for this search */
};

void mt_pool_evidence_release(struct mt_pool_evidence *evidence);

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
