/* The memory of a device over time: rows are addresses, segment by segment, columns
 * are time (or events); what is reserved, and what of that is allocated, by role.
 *
 * Every segment has its place, of as many rows as it needs; an expandable segment one
 * that grows with what is mapped. When a segment is given back its place stays, white,
 * until another segment of that size takes it. So rows do not move, and a picture may
 * put places into any order.
 *
 * Bounded: at most MT_ADDRESS_ROWS rows and as many places, each row as runs of equal
 * columns (mosaic.h). A segment that finds no room is counted, not drawn. Of single blocks
 * the MT_ADDRESS_BLOCKS with the most bytes x time are kept by name. */
#ifndef MT_ANALYZER_ADDRESS_MODEL_H
#define MT_ANALYZER_ADDRESS_MODEL_H

#include "kept_blocks.h"
#include "mosaic.h"
#include "model_feed.h"
#include "timeline_model.h"

#define MT_ADDRESS_ROWS   16384u
#define MT_ADDRESS_BLOCKS 500u

struct mt_address_place {
    uint64_t base;  /* of the segment that was there last */
    uint64_t bytes; /* of the largest that was there; mapped at most */
    uint64_t created_t_ns, created_event;
    uint32_t *rows, row_count; /* from the lowest address up */
    uint32_t stream;           /* symbols */
    uint16_t pool;             /* symbols */
    bool is_expandable, initial;
    uint32_t segments;     /* that were there, one after the other */
    uint64_t blocks;       /* that were ever in it */
    uint64_t reserved_end; /* bytes, after the last event */
    uint64_t allocated_end;
    bool was_idle; /* reserved and empty, all through the last step */
    /* Bytes x seconds since the first step began: of blocks, and of what was
     * reserved. */
    double used, held;
};

struct mt_address_axis {
    struct mt_mosaic_column *columns;
    uint32_t column_count;
    struct mt_mosaic_run *runs; /* by row, then column */
    uint32_t *first_run;        /* by row, and one more */
};

struct mt_address {
    uint64_t bytes_per_row;          /* of full rows; the last of a place may be less */
    struct mt_address_place *places; /* by creation */
    uint32_t place_count, row_count;
    struct mt_address_axis time, event;

    struct mt_block_shape *blocks; /* by birth; words are left to the caller */
    uint32_t block_count;

    uint64_t reserved_end, allocated_end, segments_end;
    double used, held; /* of all places */
    /* Reserved at the end, and empty all through the last step (without steps: at the
     * end); expandable ones do not count. */
    uint64_t idle_segments, idle_bytes;
    uint64_t once_segments, once_bytes; /* of those: at most one block was ever in them */
    bool has_steps;
    uint64_t homeless_segments, homeless_bytes; /* for which there was no room */
    uint64_t outside_blocks, outside_bytes;     /* in no segment that is known */
};

struct mt_address_wish {
    uint64_t reserved_peak_bytes;
    uint64_t reservation_bytes; /* addresses of an expandable segment; 0 = not known */
    uint32_t rows;              /* that many for the reserved peak, 0 = 2048 */
    uint32_t columns;           /* 0 = 2048 */
    uint64_t first_t_ns, last_t_ns, first_event, last_event;
    const struct mt_span *spans; /* of time that is drawn */
    uint32_t span_count;
    uint64_t count_from_t_ns; /* occupancy: begin of the first step */
    uint64_t last_step_event; /* begin of the last step; UINT64_MAX = no steps */
};

struct mt_address_builder;

/* The model comes from the arena, what it takes to build it from the heap. */
enum mt_status mt_address_builder_new(struct mt_arena *arena, const struct mt_address_wish *wish,
                                      struct mt_address_builder **builder) MT_MUST_USE;
void mt_address_builder_release(void *builder);

/* Feeds; builder is a struct mt_address_builder. */
enum mt_status mt_address_builder_birth(void *builder,
                                        const struct mt_block_life *life) MT_MUST_USE;
enum mt_status mt_address_builder_end(void *builder, const struct mt_block_life *life) MT_MUST_USE;
enum mt_status mt_address_builder_state(void *builder,
                                        const struct mt_model_state *state) MT_MUST_USE;

enum mt_status mt_address_builder_finish(struct mt_address_builder *builder,
                                         struct mt_address **address) MT_MUST_USE;

#endif
