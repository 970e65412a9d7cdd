/* The encoder of a block between its two passes: codec_encode.c turns events into indexes of
 * tables, and columns_write.c turns these into bytes. Private to these two. */
#ifndef MT_TRACE_ENCODER_H
#define MT_TRACE_ENCODER_H

#include "codec.h"
#include "dictionary.h"

struct mt_encoder_form {
    uint64_t ids;       /* kind, flags, thread, device, heap */
    uint64_t more;      /* stream, pool, fields */
    struct mt_event of; /* an event of this form */
    uint16_t fields;
};

struct mt_encoder_place {
    uint64_t addr, size_bytes;
};

struct mt_encoder {
    size_t max_events;
    struct mt_encoder_form *forms;
    uint32_t form_count;
    struct mt_map form_ids;
    struct mt_dictionary addresses, sizes, stacks, names;
    struct mt_encoder_place *places;
    uint32_t place_count, last_place;
    uint32_t last_stack;
    /* columns: values of the events that have one, in order */
    uint64_t *times, *gaps;
    uint16_t *form_index, *address_index, *back, *size_index, *aux_index, *stack_index, *name_index;
    size_t event_count, gap_count, address_index_count, back_count, size_index_count,
        aux_index_count, stack_index_count, name_index_count;
    struct mt_check_pace pace; /* of mt_block_holds */
};

/* Returns whether the bytes at `start` decode to exactly these events; *why is the first
 * difference. Also returns true if memory for the check is missing. */
bool mt_block_holds(const struct mt_buf *bytes, size_t start, const struct mt_symbols *symbols,
                    const struct mt_event *events, size_t count, const char **why);

/* Appends all columns to `out`. The caller checks out->failed and scratch->failed. */
void mt_columns_write(struct mt_encoder *encoder, struct mt_buf *out, struct mt_buf *scratch);

#endif
