/* The memory of a device over time. Rows are addresses, segment by segment. Columns are time or
 * events. Cells show reserved memory, and the allocated part of it by role.
 *
 * Every segment has a place with as many rows as it needs; that of an expandable segment grows with
 * the mapped memory. When a segment is freed its place stays, white, until another segment of that
 * size takes it. So rows do not move, and a picture may sort places freely.
 *
 * Bounded: at most MT_ADDRESS_ROWS rows and as many places, each row as runs of equal columns
 * (mosaic.h). A segment without room is counted, not drawn. The `blocks` single blocks
 * with the most bytes x time are kept by name. */
#ifndef MT_ANALYZER_ADDRESS_MODEL_H
#define MT_ANALYZER_ADDRESS_MODEL_H

#include "blocks_model.h"
#include "model_feed.h"
#include "mosaic.h"
#include "timeline_model.h"

#define MT_ADDRESS_ROWS   16384u
#define MT_ADDRESS_BLOCKS 500u
#define MT_STATE_BLOCKS   16384u /* without a history, when the blocks are the picture */

struct mt_address_range {
    uint64_t base;  /* of the last segment there */
    uint64_t bytes; /* of the largest segment there; expandable: the most that was mapped */
    uint64_t created_t_ns, created_event;
    uint32_t *rows, row_count; /* from the lowest address upwards */
    bool is_expandable, initial;
    uint16_t pool;         /* symbols; of the last segment there */
    uint32_t segments;     /* number of segments there, one after the other */
    uint64_t blocks;       /* number of blocks ever in it */
    uint64_t reserved_end; /* bytes, after the last event */
    uint64_t allocated_end;
    bool was_idle; /* reserved and empty during the whole last step */
    /* Bytes x seconds since the start of the first step: of blocks, and of reserved memory. */
    double used, held;
};

struct mt_address_axis {
    struct mt_mosaic_column *columns;
    uint32_t column_count;
    struct mt_mosaic_run *runs; /* by row, then column */
    uint32_t *first_run;        /* by row, and one more */
};

struct mt_address {
    uint64_t bytes_per_row;          /* of full rows; the last one of a place may have fewer */
    struct mt_address_range *places; /* by creation */
    uint32_t place_count, row_count;
    struct mt_address_axis time, event;

    struct mt_block_shape *blocks; /* by allocation; the caller adds words */
    uint32_t block_count;

    uint64_t reserved_end, allocated_end, segments_end;
    double used, held; /* of all places */
    /* Reserved at the end, and empty during the whole last step (without steps: at the end);
     * expandable ones do not count. */
    uint64_t idle_segments, idle_bytes;
    uint64_t once_segments, once_bytes; /* of those: with at most one block ever */
    bool has_steps;
    uint64_t homeless_segments, homeless_bytes; /* without room */
    uint64_t outside_blocks, outside_bytes;     /* in no known segment */
};

struct mt_address_options {
    uint64_t reserved_peak_bytes;
    uint64_t reservation_bytes; /* addresses of an expandable segment; 0 = unknown */
    uint32_t rows;              /* this many for the reserved peak, 0 = 2048 */
    uint32_t columns;           /* 0 = 2048 */
    uint32_t blocks;            /* MT_ADDRESS_BLOCKS, or MT_STATE_BLOCKS */
    uint64_t first_t_ns, last_t_ns, first_event, last_event;
    const struct mt_span *spans; /* of the drawn time */
    uint32_t span_count;
    uint64_t count_from_t_ns; /* occupancy: start of the first step */
    uint64_t last_step_event; /* start of the last step; UINT64_MAX = no steps */
};

struct mt_address_builder;

/* The model is in the arena; temporary memory is on the heap. */
void mt_address_builder_new(struct mt_arena *arena, const struct mt_address_options *options,
                            struct mt_address_builder **builder);
void mt_address_builder_release(void *builder);

/* Feeds; builder is a struct mt_address_builder. */
void mt_address_builder_birth(void *builder, const struct mt_block_life *life);
void mt_address_builder_end(void *builder, const struct mt_block_life *life,
                            struct mt_block_end end);
void mt_address_builder_state(void *builder, const struct mt_model_state *state);

void mt_address_builder_finish(struct mt_address_builder *builder, struct mt_address **address);

#endif
