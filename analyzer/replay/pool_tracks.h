/* What the private pools of a device held, and when: as recorded, and where the simulated allocator
 * has it. A restore (pool_restores.h) puts a pool back to such a moment.
 *
 * Moments are numbered by the allocations and frees of all private pools. Memory: about 130 bytes
 * for each of the newest 262,144 blocks of private pools; what is older is forgotten. */
#ifndef MT_ANALYZER_POOL_TRACKS_H
#define MT_ANALYZER_POOL_TRACKS_H

#include <stdbool.h>

#include "event.h"
#include "map.h"

#define MT_NO_TRACK UINT32_MAX

struct mt_block_track {
    uint64_t addr, size_bytes;        /* recorded: place, requested */
    uint64_t block_addr, block_bytes; /* simulated; 0 bytes = it found no place */
    uint32_t from, until;             /* moments: alive in [from, until) */
    uint32_t before;                  /* the block that lay at addr before, MT_NO_TRACK */
    uint16_t pool;
};

/* At the same time; their lists are searched and moved as a whole. */
enum { MT_MAX_SEGMENT_TRACKS = 1 << 16 };

/* A recorded segment; of expandable ones, as much as is mapped without a gap. */
struct mt_segment_track {
    uint64_t base, size_bytes;
    uint32_t since; /* the moment from which on it has this size */
    uint32_t scan;  /* the last search that found it tiled (pool_restores.h) */
    uint16_t pool;
    bool expandable;
};

struct mt_pool_track {
    uint64_t hash;    /* of the addresses of what is alive */
    uint32_t live;    /* blocks */
    uint32_t *sinces; /* of its segments, ascending */
    size_t since_count, since_capacity;
};

/* Zeroed memory has no pools. */
struct mt_pool_tracks {
    struct mt_block_track *blocks;
    uint32_t block_count;
    size_t block_capacity;
    struct mt_map newest; /* address -> the newest block there */
    struct mt_map states; /* pool and hash -> the newest moment of that state */
    uint32_t *earlier;    /* moment - first_moment -> the moment before of the same state */
    size_t earlier_capacity;
    uint32_t first_moment; /* what was before it is forgotten */
    struct mt_segment_track *segments;
    uint32_t segment_count;
    size_t segment_capacity;
    uint64_t segments_left_out;  /* there were MT_MAX_SEGMENT_TRACKS: no restore can tile them */
    struct mt_map bases, ends;   /* address -> segment; ends: of expandable ones */
    struct mt_pool_track *pools; /* by pool id; 0 is not used */
    uint32_t pool_count;
    size_t pool_capacity;
    uint32_t now; /* moment */
};

void mt_pool_tracks_release(struct mt_pool_tracks *tracks);

/* A segment event, in the order of the trace; those of the default pool are ignored. */
enum mt_status mt_pool_tracks_segment(struct mt_pool_tracks *tracks, const struct mt_event *event,
                                      uint16_t pool) MT_MUST_USE;

/* A block of a private pool begins; `track` has all that is not a moment. A block that lies there
 * still ends. */
enum mt_status mt_pool_tracks_begin(struct mt_pool_tracks *tracks,
                                    const struct mt_block_track *track) MT_MUST_USE;

/* The block at that address ends, if one lives there. */
enum mt_status mt_pool_tracks_end(struct mt_pool_tracks *tracks, uint64_t addr) MT_MUST_USE;

/* Adds an address to the hash of a state, or takes it out. */
uint64_t mt_pool_hash_with(uint64_t hash, uint64_t addr);
uint64_t mt_pool_hash_without(uint64_t hash, uint64_t addr);

/* The newest moment at which the pool held exactly the addresses of `hash`; MT_MAP_NONE = none. */
uint32_t mt_pool_tracks_moment(const struct mt_pool_tracks *tracks, uint16_t pool, uint64_t hash);

/* The moment before that one with the same addresses, MT_MAP_NONE = none. */
uint32_t mt_pool_tracks_earlier(const struct mt_pool_tracks *tracks, uint32_t moment);

/* The block that lived at an address at a moment, NULL if none is known. */
const struct mt_block_track *mt_pool_tracks_block(const struct mt_pool_tracks *tracks,
                                                  uint64_t addr, uint32_t moment);

/* The same, from a block that lay there at that moment or later: *id, which becomes the one that is
 * returned, or the last one that was looked at. O(blocks between them). */
const struct mt_block_track *mt_pool_tracks_back(const struct mt_pool_tracks *tracks, uint32_t *id,
                                                 uint32_t moment);

/* The segment of a pool that begins at an address, NULL if there is none. */
struct mt_segment_track *mt_pool_tracks_segment_at(struct mt_pool_tracks *tracks, uint16_t pool,
                                                   uint64_t base);

/* How many segments of the pool have had their size since `moment` or longer. */
size_t mt_pool_tracks_segments_since(const struct mt_pool_tracks *tracks, uint16_t pool,
                                     uint32_t moment);

/* Pools count what is alive, and tables name what there is. */
bool mt_pool_tracks_is_sound(const struct mt_pool_tracks *tracks, const char **why);

#endif
