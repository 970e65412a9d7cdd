/* The best-fit arena of TensorFlow, which XLA, JAX and ONNX Runtime inherited:
 * 256-byte steps, best fit by (size, address), regions that double. The bins of
 * the original only speed the search up. */
#ifndef MT_ANALYZER_BFC_ARENA_H
#define MT_ANALYZER_BFC_ARENA_H

#include "heap.h"

enum { MT_BFC_ALIGNMENT = 256 };

struct mt_bfc_arena {
    struct mt_heap heap;         /* first: see heap.h */
    uint64_t limit_bytes;        /* of the arena, 0 = none */
    uint64_t region_bytes;       /* size of the next region at least */
    uint64_t doubling_cap_bytes; /* region_bytes is not doubled beyond; 0 = no cap */
    uint64_t waste_bytes;        /* a chunk that is this much too long is split */
    bool same_as_requested;      /* regions as long as the request */
    bool collects_garbage;       /* gives idle regions back before it fails */
};

/* Owner of chunks that belong to no stream. */
#define MT_BFC_NOBODY 0

/* For mt_heap_rules.find: a chunk that belongs to `owner` or to nobody; from then on it is the
 * owner's. A remainder that is split off keeps its owner; a new region has no owner. */
enum mt_status mt_bfc_arena_find(struct mt_bfc_arena *arena,
                                 const struct mt_policy_request *request, uint64_t owner,
                                 struct mt_heap_share *share) MT_MUST_USE;

#endif
