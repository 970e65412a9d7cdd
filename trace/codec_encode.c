/* Events -> columns of a block. The first pass turns each event into a form (the fields that hardly
 * vary, and which columns it needs) and a few indexes into tables of the block. The second writes
 * tables and indexes.
 *
 * The free of a block that was allocated in the same block of events needs no address: it refers to
 * "the place n allocations ago", a small number for temporaries and a smooth one for
 * activations. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "buf.h"
#include "bytes.h"
#include "check.h"
#include "codec.h"
#include "event.h"
#include "map.h"
#include "symbols.h"

/* The encoder of a block between its two passes. */

struct encoder_form {
    uint64_t ids;       /* kind, flags, thread, device, heap */
    uint64_t more;      /* stream, pool, fields */
    struct mt_event of; /* an event of this form */
    uint16_t fields;
};

struct encoder_place {
    uint64_t addr, size_bytes;
};

struct dictionary_slot {
    uint64_t value;
    uint32_t stamp; /* != the dictionary's: empty */
    uint16_t index;
    uint16_t note; /* for the caller, e.g. the newest place at an address */
};

struct dictionary {
    struct dictionary_slot *slots;
    uint64_t *values; /* by index */
    uint32_t count, stamp, mask;
};

struct mt_encoder {
    size_t max_events;
    struct encoder_form *forms;
    uint32_t form_count;
    struct mt_map form_ids;
    struct dictionary addresses, sizes, stacks, names;
    struct encoder_place *places;
    uint32_t place_count, last_place;
    uint32_t last_stack;
    /* columns: values of the events that have one, in order */
    uint64_t *times, *gaps;
    uint16_t *form_index, *address_index, *back, *size_index, *aux_index, *stack_index, *name_index;
    size_t event_count, gap_count, address_index_count, back_count, size_index_count,
        aux_index_count, stack_index_count, name_index_count;
    struct mt_check_pace pace; /* of mt_block_holds */
};

/* Values of one block -> dense indexes 0, 1, 2, ... in order of first appearance. Fixed capacity; a
 * new stamp empties it in O(1). */

/* For at most `capacity` distinct values (a power of two <= 65,536). */
static inline bool dictionary_init(struct dictionary *dictionary, uint32_t capacity)
{
    dictionary->mask = capacity * 2 - 1;
    dictionary->slots = calloc((size_t)capacity * 2, sizeof *dictionary->slots);
    dictionary->values = malloc((size_t)capacity * sizeof *dictionary->values);
    dictionary->count = 0;
    dictionary->stamp = 1;
    return dictionary->slots && dictionary->values;
}

static inline void dictionary_release(struct dictionary *dictionary)
{
    free(dictionary->slots);
    free(dictionary->values);
}

static inline void dictionary_clear(struct dictionary *dictionary)
{
    dictionary->count = 0;
    if (++dictionary->stamp)
        return;
    for (uint32_t i = 0; i <= dictionary->mask; i++) /* the stamp wraps once in 2^32 blocks */
        dictionary->slots[i].stamp = 0;
    dictionary->stamp = 1;
}

/* Returns the slot of value, or an empty one (its stamp differs) for it. */
static inline struct dictionary_slot *dictionary_find(const struct dictionary *dictionary,
                                                      uint64_t value)
{
    uint32_t i = (uint32_t)mt_hash_u64(value) & dictionary->mask;

    while (dictionary->slots[i].stamp == dictionary->stamp && dictionary->slots[i].value != value)
        i = (i + 1) & dictionary->mask;
    return &dictionary->slots[i];
}

/* Returns the slot of value; adds value if it is missing. */
static inline struct dictionary_slot *dictionary_add(struct dictionary *dictionary, uint64_t value)
{
    struct dictionary_slot *slot = dictionary_find(dictionary, value);

    if (slot->stamp != dictionary->stamp) {
        MT_ASSERT(dictionary->count <= dictionary->mask / 2);
        slot->value = value;
        slot->stamp = dictionary->stamp;
        slot->index = (uint16_t)dictionary->count;
        slot->note = 0;
        dictionary->values[dictionary->count++] = value;
    }
    MT_ASSERT(slot->index < dictionary->count && dictionary->values[slot->index] == value);
    return slot;
}

/* Checks that each value is found under its own index. */
static inline bool dictionary_is_sound(const struct dictionary *dictionary, const char **why)
{
    uint32_t filled = 0;

    MT_SOUND(why, dictionary->count <= dictionary->mask / 2 + 1);
    for (uint32_t i = 0; i < dictionary->count; i++) {
        const struct dictionary_slot *slot = dictionary_find(dictionary, dictionary->values[i]);
        MT_SOUND(why, slot->stamp == dictionary->stamp);
        MT_SOUND(why, slot->index == i);
    }
    for (uint32_t i = 0; i <= dictionary->mask; i++)
        filled += dictionary->slots[i].stamp == dictionary->stamp;
    MT_SOUND(why, filled == dictionary->count);
    return true;
}

/* Second pass of the encoder: tables and indexes -> columns (docs/internals/trace-format.md,
 * "Columns"). */

enum { MAX_FORM_BYTES = 9 * MT_VARINT_MAX_BYTES };

/* Returns room at the end of `scratch` for a table; the bytes then go into the column. NULL without
 * memory. */
static uint8_t *scratch_for(struct mt_buf *scratch, size_t entries, size_t entry_bytes)
{
    mt_buf_reset(scratch);
    return (uint8_t *)mt_buf_reserve(scratch, (entries + 3) * entry_bytes);
}

static void finish_column(struct mt_buf *out, enum mt_column column, struct mt_buf *scratch,
                          const uint8_t *end)
{
    const size_t length = (size_t)(end - (const uint8_t *)scratch->data);
    uint8_t *start = (uint8_t *)mt_buf_reserve(out, 2 * MT_VARINT_MAX_BYTES);

    MT_ASSERT(column > 0 && column < MT_COLUMN_COUNT && length <= scratch->capacity);
    if (!start || !length)
        return;
    out->length += (size_t)(mt_put_varint(mt_put_varint(start, (uint64_t)column), length) - start);
    mt_buf_add(out, scratch->data, length);
}

static void write_planes(struct mt_buf *out, struct mt_buf *scratch, enum mt_column column,
                         const uint16_t *values, size_t count, uint32_t table_count)
{
    uint8_t *at = scratch_for(scratch, count, 2);

    if (!at || !count)
        return;
    for (size_t i = 0; i < count; i++) {
        MT_ASSERT(values[i] < table_count);
        at[i] = (uint8_t)values[i];
    }
    at += count;
    if (table_count > 256) {
        for (size_t i = 0; i < count; i++)
            at[i] = (uint8_t)(values[i] >> 8);
        at += count;
    }
    finish_column(out, column, scratch, at);
}

static void write_forms(const struct mt_encoder *encoder, struct mt_buf *out,
                        struct mt_buf *scratch)
{
    uint8_t *at = scratch_for(scratch, encoder->form_count, MAX_FORM_BYTES);

    if (!at)
        return;
    at = mt_put_varint(at, encoder->form_count);
    for (uint32_t i = 0; i < encoder->form_count; i++) {
        const struct mt_event *of = &encoder->forms[i].of;
        at = mt_put_varint(at, of->kind);
        at = mt_put_varint(at, of->flags);
        at = mt_put_varint(at, encoder->forms[i].fields);
        at = mt_put_varint(at, of->thread);
        at = mt_put_varint(at, of->device);
        at = mt_put_varint(at, of->heap);
        at = mt_put_varint(at, of->pool);
        at = mt_put_varint(at, of->stream);
    }
    finish_column(out, MT_COLUMN_FORMS, scratch, at);
}

/* Nanoseconds, or microseconds if that loses nothing. */
static uint64_t common_unit(const uint64_t *times, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (times[i] % 1000)
            return 1;
    return 1000;
}

/* Bytes per time (1 or 2) that give the shorter column. The largest value of that width means that
 * a varint follows. */
static unsigned best_width(const uint64_t *times, size_t count, uint64_t unit)
{
    size_t beyond_one = 0, beyond_two = 0;

    for (size_t i = 0; i < count; i++) {
        beyond_one += times[i] >= 0xFF * unit;
        beyond_two += times[i] >= 0xFFFF * unit;
    }
    return beyond_one * 2 <= count + beyond_two * 3 ? 1 : 2;
}

static void write_times(struct mt_encoder *encoder, struct mt_buf *out, struct mt_buf *scratch)
{
    size_t count = encoder->event_count, rest = 0;
    uint64_t *times = encoder->times, unit = common_unit(times, count);
    unsigned width = best_width(times, count, unit);
    uint64_t escape = width == 1 ? 0xFF : 0xFFFF;
    uint8_t *at = scratch_for(scratch, count, 2 + MT_VARINT_MAX_BYTES);

    if (!at)
        return;
    at = mt_put_varint(at, unit);
    *at++ = (uint8_t)width;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = unit == 1 ? times[i] : times[i] / 1000;
        MT_ASSERT(value * unit == times[i] && rest <= i);
        if (value >= escape) {
            times[rest++] = value; /* rest <= i, so this works in place */
            value = escape;
        }
        at[i] = (uint8_t)value;
        if (width == 2)
            at[count + i] = (uint8_t)(value >> 8);
    }
    at += count * width;
    for (size_t i = 0; i < rest; i++)
        at = mt_put_varint(at, times[i]);
    finish_column(out, MT_COLUMN_TIMES, scratch, at);
}

/* Values as differences from the previous one, without the low bits that are 0 in all. */
static void write_differences(struct mt_buf *out, struct mt_buf *scratch, enum mt_column column,
                              const struct dictionary *table)
{
    uint8_t *at = scratch_for(scratch, table->count, MT_VARINT_MAX_BYTES);
    uint64_t bits = 0, last = 0;

    if (!at || !table->count)
        return;
    for (uint32_t i = 0; i < table->count; i++)
        bits |= table->values[i];
    unsigned shift = bits ? (unsigned)__builtin_ctzll(bits) : 0;
    at = mt_put_varint(at, table->count);
    at = mt_put_varint(at, shift);
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t value = table->values[i] >> shift;
        MT_ASSERT(value << shift == table->values[i]);
        at = mt_put_varint(at, mt_zigzag(value - last));
        last = value;
    }
    finish_column(out, column, scratch, at);
}

static void write_varints(struct mt_buf *out, struct mt_buf *scratch, enum mt_column column,
                          const uint64_t *values, size_t count)
{
    uint8_t *at = scratch_for(scratch, count, MT_VARINT_MAX_BYTES);

    if (!at || !count)
        return;
    if (column == MT_COLUMN_SIZES) /* a table */
        at = mt_put_varint(at, count);
    for (size_t i = 0; i < count; i++)
        at = mt_put_varint(at, values[i]);
    finish_column(out, column, scratch, at);
}

/* Appends all columns to `out`. The caller checks out->failed and scratch->failed. */
static void columns_write(struct mt_encoder *encoder, struct mt_buf *out, struct mt_buf *scratch)
{
    write_forms(encoder, out, scratch);
    write_planes(out, scratch, MT_COLUMN_FORM_INDEX, encoder->form_index, encoder->event_count,
                 encoder->form_count);
    write_times(encoder, out, scratch);
    write_differences(out, scratch, MT_COLUMN_ADDRESSES, &encoder->addresses);
    write_planes(out, scratch, MT_COLUMN_ADDRESS_INDEX, encoder->address_index,
                 encoder->address_index_count, encoder->addresses.count);
    write_planes(out, scratch, MT_COLUMN_BACK, encoder->back, encoder->back_count,
                 encoder->place_count);
    write_varints(out, scratch, MT_COLUMN_SIZES, encoder->sizes.values, encoder->sizes.count);
    write_planes(out, scratch, MT_COLUMN_SIZE_INDEX, encoder->size_index, encoder->size_index_count,
                 encoder->sizes.count);
    write_planes(out, scratch, MT_COLUMN_AUX_INDEX, encoder->aux_index, encoder->aux_index_count,
                 encoder->sizes.count);
    write_differences(out, scratch, MT_COLUMN_STACKS, &encoder->stacks);
    write_planes(out, scratch, MT_COLUMN_STACK_INDEX, encoder->stack_index,
                 encoder->stack_index_count, encoder->stacks.count);
    write_differences(out, scratch, MT_COLUMN_NAMES, &encoder->names);
    write_planes(out, scratch, MT_COLUMN_NAME_INDEX, encoder->name_index, encoder->name_index_count,
                 encoder->names.count);
    write_varints(out, scratch, MT_COLUMN_SEQ_GAPS, encoder->gaps, encoder->gap_count);
}

static uint32_t power_of_two_from(size_t count)
{
    uint32_t power = 16;

    while (power < count)
        power *= 2;
    return power;
}

struct mt_encoder *mt_encoder_new(size_t max_events)
{
    struct mt_encoder *encoder = calloc(1, sizeof *encoder);
    size_t n = max_events;

    if (!encoder || n > MT_ENCODER_MAX_EVENTS)
        goto failed;
    uint32_t power = power_of_two_from(n);
    encoder->max_events = n;
    encoder->forms = malloc(n * sizeof *encoder->forms);
    encoder->places = malloc(n * sizeof *encoder->places);
    encoder->times = malloc(n * sizeof *encoder->times);
    encoder->gaps = malloc(n * sizeof *encoder->gaps);
    encoder->form_index = malloc(n * 7 * sizeof *encoder->form_index);
    if (!dictionary_init(&encoder->addresses, power) ||
        !dictionary_init(&encoder->sizes, power * 2) || !dictionary_init(&encoder->stacks, power) ||
        !dictionary_init(&encoder->names, power) || !encoder->forms || !encoder->places ||
        !encoder->times || !encoder->gaps || !encoder->form_index)
        goto failed;
    encoder->address_index = encoder->form_index + n;
    encoder->back = encoder->form_index + 2 * n;
    encoder->size_index = encoder->form_index + 3 * n;
    encoder->aux_index = encoder->form_index + 4 * n;
    encoder->stack_index = encoder->form_index + 5 * n;
    encoder->name_index = encoder->form_index + 6 * n;
    return encoder;

failed:
    mt_encoder_free(encoder);
    return NULL;
}

void mt_encoder_free(struct mt_encoder *encoder)
{
    if (!encoder)
        return;
    dictionary_release(&encoder->addresses);
    dictionary_release(&encoder->sizes);
    dictionary_release(&encoder->stacks);
    dictionary_release(&encoder->names);
    mt_map_release(&encoder->form_ids);
    free(encoder->forms);
    free(encoder->places);
    free(encoder->times);
    free(encoder->gaps);
    free(encoder->form_index);
    free(encoder);
}

static void clear(struct mt_encoder *encoder)
{
    dictionary_clear(&encoder->addresses);
    dictionary_clear(&encoder->sizes);
    dictionary_clear(&encoder->stacks);
    dictionary_clear(&encoder->names);
    mt_map_release(&encoder->form_ids);
    encoder->form_count = 0;
    encoder->place_count = encoder->last_place = 0;
    encoder->last_stack = MT_NO_ID;
    encoder->event_count = encoder->gap_count = encoder->address_index_count = 0;
    encoder->back_count = encoder->size_index_count = encoder->aux_index_count = 0;
    encoder->stack_index_count = encoder->name_index_count = 0;
}

static unsigned encode_size(struct mt_encoder *encoder, uint64_t size_bytes)
{
    MT_ASSERT(encoder->size_index_count < encoder->max_events);
    encoder->size_index[encoder->size_index_count++] =
        dictionary_add(&encoder->sizes, size_bytes)->index;
    return MT_FIELD_SIZE;
}

/* A new block, or an address that is new in this block of events. */
static unsigned encode_new_place(struct mt_encoder *encoder, const struct mt_event *event)
{
    struct dictionary_slot *slot = dictionary_add(&encoder->addresses, event->addr);

    MT_ASSERT(encoder->address_index_count == encoder->place_count);
    MT_ASSERT(encoder->place_count < encoder->max_events);
    encoder->address_index[encoder->address_index_count++] = slot->index;
    slot->note = (uint16_t)encoder->place_count;
    encoder->last_place = encoder->place_count;
    encoder->places[encoder->place_count++] =
        (struct encoder_place){event->addr, event->size_bytes};
    return MT_FIELD_PLACE_NEW | (event->size_bytes ? encode_size(encoder, event->size_bytes) : 0);
}

/* The newest place at this address, if the block has one. */
static unsigned encode_known_place(struct mt_encoder *encoder, const struct mt_event *event)
{
    const struct dictionary_slot *slot = dictionary_find(&encoder->addresses, event->addr);
    unsigned fields;

    if (slot->stamp != encoder->addresses.stamp)
        return encode_new_place(encoder, event);
    MT_ASSERT(slot->note < encoder->place_count);
    MT_ASSERT(encoder->places[slot->note].addr == event->addr);
    if (slot->note == encoder->last_place) {
        fields = MT_FIELD_PLACE_SAME;
    } else {
        fields = MT_FIELD_PLACE_BACK;
        encoder->back[encoder->back_count++] = (uint16_t)(encoder->place_count - 1 - slot->note);
        encoder->last_place = slot->note;
    }
    const struct encoder_place *place = &encoder->places[slot->note];
    if (place->size_bytes != event->size_bytes)
        fields |= encode_size(encoder, event->size_bytes);
    return fields;
}

static unsigned encode_place(struct mt_encoder *encoder, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_SEGMENT_ALLOC ||
        event->kind == MT_EVENT_SEGMENT_MAP)
        return encode_new_place(encoder, event);
    if (event->addr)
        return encode_known_place(encoder, event);
    return event->size_bytes ? encode_size(encoder, event->size_bytes) : 0;
}

static unsigned encode_stack(struct mt_encoder *encoder, const struct mt_event *event)
{
    if (event->stack == MT_NO_ID)
        return 0;
    if (event->stack == encoder->last_stack)
        return MT_FIELD_STACK_SAME;
    MT_ASSERT(encoder->stack_index_count < encoder->max_events);
    encoder->last_stack = event->stack;
    encoder->stack_index[encoder->stack_index_count++] =
        dictionary_add(&encoder->stacks, event->stack)->index;
    return MT_FIELD_STACK;
}

static unsigned encode_rest(struct mt_encoder *encoder, const struct mt_event *event)
{
    unsigned fields = 0;

    if (event->aux_bytes) {
        encoder->aux_index[encoder->aux_index_count++] =
            dictionary_add(&encoder->sizes, event->aux_bytes)->index;
        fields |= MT_FIELD_AUX;
    }
    if (event->name != MT_NO_ID) {
        encoder->name_index[encoder->name_index_count++] =
            dictionary_add(&encoder->names, event->name)->index;
        fields |= MT_FIELD_NAME;
    }
    return fields;
}

static bool form_is(const struct encoder_form *form, uint64_t ids, uint64_t more)
{
    return form->ids == ids && form->more == more;
}

/* Finds or adds the form. Keys are hashes of both words; forms with equal hashes use the next
 * key. */
static enum mt_status find_form(struct mt_encoder *encoder, uint64_t ids, uint64_t more,
                                const struct mt_event *event, uint32_t *index)
{
    uint64_t key = mt_hash_u64(ids) ^ mt_hash_u64(more * 3);
    uint32_t found;

    while ((found = mt_map_get(&encoder->form_ids, key)) != MT_MAP_NONE &&
           !form_is(&encoder->forms[found], ids, more))
        key++;
    if (found == MT_MAP_NONE) {
        found = encoder->form_count;
        if (mt_map_set(&encoder->form_ids, key, found) != MT_OK)
            return MT_ERR_MEMORY;
        encoder->forms[found] = (struct encoder_form){ids, more, *event, (uint16_t)(more >> 48)};
        encoder->form_count++;
    }
    MT_ASSERT(found < encoder->form_count && encoder->forms[found].fields == more >> 48);
    *index = found;
    return MT_OK;
}

static enum mt_status encode_form(struct mt_encoder *encoder, const struct mt_event *event,
                                  unsigned fields)
{
    uint64_t ids = (uint64_t)event->kind | (uint64_t)event->flags << 8 |
                   (uint64_t)event->thread << 16 | (uint64_t)event->device << 32 |
                   (uint64_t)event->heap << 48;
    uint64_t more = (uint64_t)event->stream | (uint64_t)event->pool << 32 | (uint64_t)fields << 48;
    uint32_t index;

    MT_ASSERT(encoder->event_count < encoder->max_events && fields <= UINT16_MAX);
    if (find_form(encoder, ids, more, event, &index) != MT_OK)
        return MT_ERR_MEMORY;
    encoder->form_index[encoder->event_count] = (uint16_t)index;
    return MT_OK;
}

static enum mt_status encode_event(struct mt_encoder *encoder, const struct mt_event *event,
                                   uint64_t expected_seq, uint64_t last_t_ns, const char **reason)
{
    if (event->seq < expected_seq || event->t_ns < last_t_ns) {
        *reason = "events out of order";
        return MT_ERR_USAGE;
    }
    unsigned fields =
        encode_place(encoder, event) | encode_stack(encoder, event) | encode_rest(encoder, event);
    if (event->seq > expected_seq) {
        encoder->gaps[encoder->gap_count++] = event->seq - expected_seq;
        fields |= MT_FIELD_SEQ_GAP;
    }
    MT_ASSERT(encoder->gap_count <= encoder->event_count + 1);
    if (encode_form(encoder, event, fields) != MT_OK) {
        *reason = mt_status_text(MT_ERR_MEMORY);
        return MT_ERR_MEMORY;
    }
    encoder->times[encoder->event_count++] = event->t_ns - last_t_ns;
    return MT_OK;
}

static enum mt_status encode_events(struct mt_encoder *encoder, const struct mt_event *events,
                                    size_t count, const char **reason)
{
    uint64_t seq = events[0].seq, t_ns = events[0].t_ns;

    clear(encoder);
    for (size_t i = 0; i < count; i++) {
        enum mt_status status = encode_event(encoder, &events[i], seq, t_ns, reason);
        if (status != MT_OK)
            return status;
        seq = events[i].seq + 1;
        t_ns = events[i].t_ns;
    }
    MT_ASSERT(encoder->event_count == count);
    return MT_OK;
}

/* Tables hold each value once, and no column has more values than there are events. */
static bool encoder_is_sound(const struct mt_encoder *encoder, const char **why)
{
    MT_SOUND(why, encoder->form_count <= encoder->event_count);
    MT_SOUND(why, encoder->form_ids.count == encoder->form_count);
    MT_SOUND(why, encoder->place_count == encoder->address_index_count);
    MT_SOUND(why, encoder->back_count + encoder->place_count <= encoder->event_count);
    MT_SOUND(why, encoder->size_index_count <= encoder->event_count);
    MT_SOUND(why, encoder->aux_index_count <= encoder->event_count);
    MT_SOUND(why, encoder->addresses.count <= encoder->place_count);
    return dictionary_is_sound(&encoder->addresses, why) &&
           dictionary_is_sound(&encoder->sizes, why) &&
           dictionary_is_sound(&encoder->stacks, why) &&
           dictionary_is_sound(&encoder->names, why) && mt_map_is_sound(&encoder->form_ids, why);
}

static bool values_below(const struct dictionary *dictionary, uint32_t limit)
{
    for (uint32_t i = 0; i < dictionary->count; i++)
        if (dictionary->values[i] >= limit)
            return false;
    return true;
}

static bool form_is_valid(const struct encoder_form *form, const struct mt_symbols *symbols)
{
    const struct mt_event *of = &form->of;

    return of->kind && of->thread < symbols->thread_count && of->device < MT_MAX_DEVICES &&
           of->heap < symbols->heap_count && of->heap < MT_MAX_POOLS &&
           of->pool < symbols->pool_count && of->pool < MT_MAX_POOLS &&
           of->stream < symbols->stream_count;
}

static bool refers_to_symbols(const struct mt_encoder *encoder, const struct mt_symbols *symbols)
{
    for (uint32_t i = 0; i < encoder->form_count; i++)
        if (!form_is_valid(&encoder->forms[i], symbols))
            return false;
    return values_below(&encoder->stacks, symbols->stack_count) &&
           values_below(&encoder->names, symbols->strings.count);
}

static void write_header(const struct mt_event *events, size_t count, size_t definition_bytes,
                         struct mt_buf *out)
{
    uint8_t header[MT_BLOCK_HEADER_BYTES] = {0}, *at = header;

    at = mt_put_u32(at, MT_BLOCK_MAGIC);
    at = mt_put_u32(at, MT_FORMAT_VERSION | MT_BLOCK_HEADER_BYTES << 16);
    at = mt_put_u64(at, events[0].seq);
    at = mt_put_u64(at, events[0].t_ns);
    at = mt_put_u32(at, (uint32_t)count);
    mt_put_u32(at, (uint32_t)definition_bytes);
    mt_buf_add(out, header, sizeof header);
}

enum mt_status mt_event_block_encode(struct mt_encoder *encoder, const struct mt_symbols *symbols,
                                     const struct mt_event *events, size_t count,
                                     const struct mt_buf *definitions, struct mt_buf *out,
                                     const char **reason)
{
    struct mt_buf scratch = {0};
    size_t start = out->length;
    const char *why = "";

    if (count > encoder->max_events) {
        *reason = "too many events for one block";
        return MT_ERR_USAGE;
    }
    enum mt_status status = encode_events(encoder, events, count, reason);
    if (status != MT_OK)
        return status;
    if (!refers_to_symbols(encoder, symbols)) {
        *reason = "an event refers to symbols that do not exist";
        return MT_ERR_USAGE;
    }
    bool is_checked = mt_check_is_due(&encoder->pace, encoder->addresses.mask / (count + 1));
    if (is_checked)
        MT_ASSERT_SOUND(encoder_is_sound(encoder, &why), why);
    write_header(events, count, definitions->length, out);
    mt_buf_add(out, definitions->data, definitions->length);
    if (count)
        columns_write(encoder, out, &scratch);
    if (scratch.failed || out->failed) {
        *reason = mt_status_text(MT_ERR_MEMORY);
        status = MT_ERR_MEMORY;
    }
    mt_buf_release(&scratch);
    if (status == MT_OK && is_checked)
        MT_ASSERT_SOUND(mt_block_holds(out, start, symbols, events, count, &why), why);
    return status;
}
