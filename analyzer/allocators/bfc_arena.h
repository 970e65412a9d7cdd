/* The best-fit arena of TensorFlow, which XLA, JAX and ONNX Runtime inherited: 256-byte steps, best
 * fit by (size, address), regions that double. The bins of the original only accelerate the
 * search. */
#ifndef MT_ANALYZER_BFC_ARENA_H
#define MT_ANALYZER_BFC_ARENA_H

#include "heap.h"

enum { MT_BFC_ALIGNMENT = 256 };

struct mt_bfc_arena {
    struct mt_heap heap;         /* first: see heap.h */
    uint64_t limit_bytes;        /* of the arena, 0 = none */
    uint64_t region_bytes;       /* minimum size of the next region */
    uint64_t doubling_cap_bytes; /* limit of doubling; 0 = none */
    uint64_t waste_bytes;        /* a chunk with at least this much excess is split */
    bool same_as_requested;      /* regions as long as the request */
    bool collects_garbage;       /* releases idle regions before it fails */
};

/* For mt_heap_rules.find: finds a chunk that belongs to `owner` or to no stream; `owner` then owns
 * it. A remainder that is split off keeps its owner; a new region has no owner. */
enum mt_status mt_bfc_arena_find(struct mt_bfc_arena *arena,
                                 const struct mt_policy_request *request, uint64_t owner,
                                 struct mt_heap_share *share) MT_MUST_USE;

#endif
