/* Single blocks of one part of a run, each from its allocation to its end, for a picture in which
 * every block has its own shape.
 *
 * Bounded: of all blocks that live in the window, the MT_MAX_KEPT_BLOCKS with the most bytes x
 * length are kept by name. The length is that of the part in the window, in nanoseconds on the time
 * axis and in events on the event axis. No bytes of the other blocks are lost: at the fullest
 * instant of every bin, they are the difference between the allocated bytes and the kept ones. */
#ifndef MT_ANALYZER_BLOCKS_MODEL_H
#define MT_ANALYZER_BLOCKS_MODEL_H

#include "arena.h"
#include "attributed.h"
#include "flamechart_model.h"
#include "holding.h"
#include "model_feed.h"
#include "timeline_model.h"

/* Single blocks that are kept by name: those with the highest scores of all candidates. O(1) for
 * most, O(log capacity) for a block that is kept. */

/* After event e a block is allocated if life.birth_event <= e < end.event. */
struct mt_block_shape {
    struct mt_block_life life;
    struct mt_block_end end;
    struct mt_block_end completed; /* set only in a history */
    uint32_t place;                /* the place in the map of addresses where it begins; MT_NO_ID */
    uint64_t offset;               /* bytes from the start of that place */
    const char *site;              /* in words, with the user's place */
    const char *head;              /* without the user's place */
    const char *operation;         /* the operation; NULL if the site names it */
};

struct mt_kept_block {
    double score;
    struct mt_block_shape shape;
};

/* A heap with the smallest score at the top: a new block is compared with the top, which rejects
 * most. */
struct mt_kept_blocks {
    struct mt_kept_block *heap;
    uint32_t count, capacity;
};

/* Memory comes from the arena. */
void mt_kept_blocks_init(struct mt_kept_blocks *kept, struct mt_arena *arena, uint32_t capacity);

/* Offers a block. Returns its shape, without words and place, or NULL if the block is not kept.
 * Among equal scores the older block is kept. The pointer is valid until the next call. */
struct mt_block_shape *mt_kept_blocks_add(struct mt_kept_blocks *kept,
                                          const struct mt_block_life *life, struct mt_block_end end,
                                          double score);

/* Returns the kept shapes as an array in the arena, by allocation, then size. */
struct mt_block_shape *mt_kept_blocks_list(const struct mt_kept_blocks *kept,
                                           struct mt_arena *arena);

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
void mt_blocks_builder_end(void *builder, const struct mt_block_life *life,
                           struct mt_block_end end);
void mt_blocks_builder_state(void *builder, const struct mt_model_state *state);

/* Without words: the caller adds sites and groups. */
struct mt_blocks *mt_blocks_builder_finish(struct mt_blocks_builder *builder);

/* Words for single blocks: the site that allocated them, and the operation. */

/* Sets site, head and operation of each. */
void mt_block_words_name(const struct mt_attribution *attribution, struct mt_block_shape *blocks,
                         uint32_t count);

#endif
