/* Sizes and lifetimes of all blocks, in cells: sizes by thirds of a power of two, lifetimes by
 * fifths of a power of ten. The set of possible cells is fixed, so the model is always small. All
 * bytes are requested ones. */
#ifndef MT_ANALYZER_LIFETIMES_MODEL_H
#define MT_ANALYZER_LIFETIMES_MODEL_H

#include "report.h"

#define MT_SIZES_PER_DOUBLING 3
#define MT_LIVES_PER_DECADE   5
#define MT_SIZE_COLUMNS       193 /* column c: above the edge c - 1, up to the edge c, in bytes */
#define MT_LIFE_ROWS          97  /* row r: at least the edge r, below the edge r + 1, in ns */
#define MT_LIFE_UNTIL_END     (MT_LIFE_ROWS - 1) /* the last row: never freed */

struct mt_lifetime_cell {
    uint16_t size, life; /* column, row */
    uint64_t blocks, bytes;
    uint64_t role_bytes[MT_ROLE_COUNT]; /* sum = bytes */
};

struct mt_lifetime_sum {
    uint64_t blocks, bytes;
};

struct mt_lifetimes {
    struct mt_lifetime_cell *cells; /* by row, then column */
    uint32_t cell_count;
    struct mt_lifetime_sum all;       /* sums of all cells */
    struct mt_lifetime_sum small;     /* of at most MT_LIFETIMES_SMALL */
    struct mt_lifetime_sum brief;     /* with lifetimes below MT_LIFETIMES_BRIEF_NS */
    struct mt_lifetime_sum until_end; /* that were never freed */
    struct mt_lifetime_sum older; /* than the recorded history: their lifetimes are lower bounds */
    uint64_t largest_bytes;
    /* PyTorch's limits: requests up to small_pool_bytes are in the small pool, and requests of at
     * least own_segment_bytes get a segment of their own size. 0 = the run has no such limit. */
    uint64_t small_pool_bytes, own_segment_bytes;
};

#define MT_LIFETIMES_SMALL    ((uint64_t)1 << 20)
#define MT_LIFETIMES_BRIEF_NS 1000000u

/* Column of a size and row of a lifetime in ns: 0 <= column < MT_SIZE_COLUMNS, 0 <= row <
 * MT_LIFE_UNTIL_END. */
uint32_t mt_size_column(uint64_t bytes);
uint32_t mt_life_row(uint64_t ns);
/* Upper edge of a column, lower edge of a row. */
double mt_size_edge(uint32_t column);
double mt_life_edge(uint32_t row);

struct mt_lifetimes_builder;

struct mt_lifetime {
    uint64_t bytes, ns; /* ns: the recorded part of it */
    bool ended, is_older;
    enum mt_role role;
};

void mt_lifetimes_builder_new(struct mt_arena *arena, struct mt_lifetimes_builder **builder);
void mt_lifetimes_builder_add(struct mt_lifetimes_builder *builder, const struct mt_lifetime *life);
/* The model, in the arena of the builder. */
struct mt_lifetimes *mt_lifetimes_builder_finish(struct mt_lifetimes_builder *builder);

#endif
