/* Single blocks that are kept by name: those with the highest scores of all candidates. O(1) for
 * most, O(log capacity) for a block that is kept. */
#ifndef MT_ANALYZER_KEPT_BLOCKS_H
#define MT_ANALYZER_KEPT_BLOCKS_H

#include "arena.h"
#include "model_feed.h"
#include "role.h"
#include "holding.h"

/* After event e a block is allocated if birth_event <= e < end_event. */
struct mt_block_shape {
    uint64_t addr;
    uint64_t block_bytes, requested_bytes;
    uint64_t birth_t_ns, birth_event;
    uint64_t end_t_ns, end_event; /* end_event UINT64_MAX: it exists at the end */
    uint32_t stack, tied;         /* see mt_holding */
    enum mt_tie tie;
    int32_t phase; /* innermost, at its allocation */
    enum mt_role role;
    bool initial;          /* it is older than the recorded history */
    uint32_t place;        /* the place in the map of addresses where it begins; MT_NO_ID */
    uint64_t offset;       /* bytes from the start of that place */
    const char *site;      /* in words, with the user's place */
    const char *head;      /* without the user's place */
    const char *operation; /* the operation; NULL if the site names it */
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
                                          const struct mt_block_life *life, double score);

/* Returns the kept shapes as an array in the arena, by allocation, then size. */
struct mt_block_shape *mt_kept_blocks_list(const struct mt_kept_blocks *kept,
                                           struct mt_arena *arena);

#endif
