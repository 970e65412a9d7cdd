/* Single blocks of one part of a run, each from its allocation to its end, for a picture in which
 * every block has its own shape.
 *
 * Bounded: of all blocks that live in the window, the MT_MAX_KEPT_BLOCKS with the most bytes x
 * length are kept by name. The length is that of the part in the window, in nanoseconds on the time
 * axis and in events on the event axis. No bytes of the other blocks are lost: at the fullest
 * instant of every bin, they are the difference between the allocated bytes and the kept ones. */
#ifndef MT_ANALYZER_BLOCKS_MODEL_H
#define MT_ANALYZER_BLOCKS_MODEL_H

#include "flamechart_model.h"
#include "kept_blocks.h"
#include "model_feed.h"
#include "model_window.h"

#define MT_MAX_KEPT_BLOCKS 400
#define MT_BLOCKS_GROUPS   8
#define MT_BLOCKS_AROUND   48 /* events on either side of the peak */

/* Bytes of roles at the two instants of a bin; each sums to its level. */
struct mt_role_levels {
    uint64_t max[MT_ROLE_COUNT], last[MT_ROLE_COUNT];
};

/* The window along one axis. */
struct mt_block_set {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event;
    struct mt_curve_bin *bins; /* of allocated; the first is that of the start */
    uint32_t bin_count;
    struct mt_role_levels *levels; /* parallel to the bins */
    struct mt_block_shape *blocks; /* by allocation */
    uint32_t block_count;
    uint64_t others; /* blocks alive in the window without a shape */
};

/* Blocks of one size and origin alive at the peak. */
struct mt_block_group {
    const char *site, *head;
    enum mt_role role;
    uint64_t block_bytes, blocks, bytes;
};

struct mt_blocks {
    int64_t step;  /* that contains the window, MT_NO_STEP */
    int32_t phase; /* the window, or MT_NO_PHASE: the whole run */
    uint64_t peak_allocated, peak_t_ns, peak_event;
    uint64_t events;                                /* of the window that concern memory */
    struct mt_block_set time, event;                /* the window on either axis */
    struct mt_block_set around;                     /* the events around the peak, by event */
    struct mt_block_group groups[MT_BLOCKS_GROUPS]; /* at the peak, largest first */
    uint32_t group_count, groups_in_all;
};

struct mt_blocks_builder;

/* Everything comes from the arena. `peak_event`: the event with the largest allocated level in the
 * window; `bins`: at most 8192. */
void mt_blocks_builder_new(struct mt_arena *arena, const struct mt_model_window *window,
                           uint64_t peak_event, uint32_t bins, struct mt_blocks_builder **builder);

/* Feeds: every block at its end, and the state after every event. O(1), except for a
 * block that is kept. */
void mt_blocks_builder_end(void *builder, const struct mt_block_life *life);
void mt_blocks_builder_state(void *builder, const struct mt_model_state *state);

/* Without words: the caller adds sites and groups. */
struct mt_blocks *mt_blocks_builder_finish(struct mt_blocks_builder *builder);

#endif
