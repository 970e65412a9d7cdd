/* The decoder of a block between its two passes: columns_read.c has read and checked the columns,
 * codec_decode.c has not built the events yet. Private to these two. */
#ifndef MT_TRACE_DECODER_H
#define MT_TRACE_DECODER_H

#include "codec.h"

struct mt_decoder_form {
    struct mt_event of; /* the fields that all events of this form share */
    uint16_t fields;
    bool lost;
};

struct mt_decoder_place {
    uint64_t addr, size_bytes;
};

/* Arrays for blocks of up to `capacity` events. No table has more entries than the block has
 * events, except the one of sizes, which has at most twice as many. */
struct mt_decoder {
    uint32_t capacity;
    void *memory; /* of all arrays below */
    struct mt_event *events;
    struct mt_decoder_form *forms;
    struct mt_decoder_place *places;
    uint64_t *addresses, *sizes, *times, *gaps;
    uint32_t *form_uses, *stacks, *names;
    uint16_t *form_index, *address_index, *back, *size_index, *aux_index, *stack_index, *name_index;
    uint8_t *stack_lost, *name_lost;
};

/* The state of a block during decoding. */
struct mt_decoding {
    struct mt_decoder *decoder;
    const struct mt_event_block *block;
    struct mt_ids *ids;
    struct mt_symbols *symbols;
    struct mt_cursor columns[MT_COLUMN_COUNT];
    uint32_t count, form_count, address_count, size_count, stack_count, name_count;
    /* number of events with a value in each column, from their forms */
    uint32_t new_places, back_places, sized, auxed, stacked, named, gapped, paid;
    uint32_t only_heap;         /* see struct mt_event_batch; UINT32_MAX = none so far */
    bool any_lost, any_special; /* special events are counted one by one afterwards */
};

static inline enum mt_status mt_malformed(const char **reason, const char *text)
{
    *reason = text;
    return MT_ERR_FORMAT;
}

static inline bool mt_kind_is_known(unsigned kind)
{
    return kind > 0 && kind < MT_EVENT_KIND_COUNT;
}

/* Fills the decoder's arrays, which have room. Afterwards every column has exactly the values that
 * the forms of the events require, and every index is within its table. The loop over events relies
 * on this. */
enum mt_status mt_columns_read(struct mt_decoding *job, const char **reason) MT_MUST_USE;

#endif
