/* Events -> columns of a block. The first pass turns each event into a form (the fields that hardly
 * vary, and which columns it needs) and a few indexes into tables of the block. The second writes
 * tables and indexes.
 *
 * The free of a block that was allocated in the same block of events needs no address: it refers to
 * "the place n allocations ago", a small number for temporaries and a smooth one for
 * activations. */
#include "encoder.h"

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
    uint32_t power;

    if (!encoder || n > MT_ENCODER_MAX_EVENTS)
        goto failed;
    power = power_of_two_from(n);
    encoder->max_events = n;
    encoder->forms = malloc(n * sizeof *encoder->forms);
    encoder->places = malloc(n * sizeof *encoder->places);
    encoder->times = malloc(n * sizeof *encoder->times);
    encoder->gaps = malloc(n * sizeof *encoder->gaps);
    encoder->form_index = malloc(n * 7 * sizeof *encoder->form_index);
    if (!mt_dictionary_init(&encoder->addresses, power) ||
        !mt_dictionary_init(&encoder->sizes, power * 2) ||
        !mt_dictionary_init(&encoder->stacks, power) ||
        !mt_dictionary_init(&encoder->names, power) || !encoder->forms || !encoder->places ||
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
    mt_dictionary_release(&encoder->addresses);
    mt_dictionary_release(&encoder->sizes);
    mt_dictionary_release(&encoder->stacks);
    mt_dictionary_release(&encoder->names);
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
    mt_dictionary_clear(&encoder->addresses);
    mt_dictionary_clear(&encoder->sizes);
    mt_dictionary_clear(&encoder->stacks);
    mt_dictionary_clear(&encoder->names);
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
        mt_dictionary_add(&encoder->sizes, size_bytes)->index;
    return MT_FIELD_SIZE;
}

/* A new block, or an address that is new in this block of events. */
static unsigned encode_new_place(struct mt_encoder *encoder, const struct mt_event *event)
{
    struct mt_dictionary_slot *slot = mt_dictionary_add(&encoder->addresses, event->addr);

    MT_ASSERT(encoder->address_index_count == encoder->place_count);
    MT_ASSERT(encoder->place_count < encoder->max_events);
    encoder->address_index[encoder->address_index_count++] = slot->index;
    slot->note = (uint16_t)encoder->place_count;
    encoder->last_place = encoder->place_count;
    encoder->places[encoder->place_count++] =
        (struct mt_encoder_place){event->addr, event->size_bytes};
    return MT_FIELD_PLACE_NEW | (event->size_bytes ? encode_size(encoder, event->size_bytes) : 0);
}

/* The newest place at this address, if the block has one. */
static unsigned encode_known_place(struct mt_encoder *encoder, const struct mt_event *event)
{
    const struct mt_dictionary_slot *slot = mt_dictionary_find(&encoder->addresses, event->addr);
    const struct mt_encoder_place *place;
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
    place = &encoder->places[slot->note];
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
        mt_dictionary_add(&encoder->stacks, event->stack)->index;
    return MT_FIELD_STACK;
}

static unsigned encode_rest(struct mt_encoder *encoder, const struct mt_event *event)
{
    unsigned fields = 0;

    if (event->aux_bytes) {
        encoder->aux_index[encoder->aux_index_count++] =
            mt_dictionary_add(&encoder->sizes, event->aux_bytes)->index;
        fields |= MT_FIELD_AUX;
    }
    if (event->name != MT_NO_ID) {
        encoder->name_index[encoder->name_index_count++] =
            mt_dictionary_add(&encoder->names, event->name)->index;
        fields |= MT_FIELD_NAME;
    }
    return fields;
}

static bool form_is(const struct mt_encoder_form *form, uint64_t ids, uint64_t more)
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
        encoder->forms[found] = (struct mt_encoder_form){ids, more, *event, (uint16_t)(more >> 48)};
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
    unsigned fields;

    if (event->seq < expected_seq || event->t_ns < last_t_ns) {
        *reason = "events out of order";
        return MT_ERR_USAGE;
    }
    fields =
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
    size_t i;

    clear(encoder);
    for (i = 0; i < count; i++) {
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
    return mt_dictionary_is_sound(&encoder->addresses, why) &&
           mt_dictionary_is_sound(&encoder->sizes, why) &&
           mt_dictionary_is_sound(&encoder->stacks, why) &&
           mt_dictionary_is_sound(&encoder->names, why) && mt_map_is_sound(&encoder->form_ids, why);
}

static bool values_below(const struct mt_dictionary *dictionary, uint32_t limit)
{
    uint32_t i;

    for (i = 0; i < dictionary->count; i++) {
        if (dictionary->values[i] >= limit)
            return false;
    }
    return true;
}

static bool form_is_valid(const struct mt_encoder_form *form, const struct mt_symbols *symbols)
{
    const struct mt_event *of = &form->of;

    return of->kind && of->thread < symbols->thread_count && of->device < MT_MAX_DEVICES &&
           of->heap < symbols->heap_count && of->heap < MT_MAX_POOLS &&
           of->pool < symbols->pool_count && of->pool < MT_MAX_POOLS &&
           of->stream < symbols->stream_count;
}

static bool refers_to_symbols(const struct mt_encoder *encoder, const struct mt_symbols *symbols)
{
    uint32_t i;

    for (i = 0; i < encoder->form_count; i++) {
        if (!form_is_valid(&encoder->forms[i], symbols))
            return false;
    }
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
    enum mt_status status;
    bool is_checked;

    if (count > encoder->max_events) {
        *reason = "too many events for one block";
        return MT_ERR_USAGE;
    }
    status = encode_events(encoder, events, count, reason);
    if (status != MT_OK)
        return status;
    if (!refers_to_symbols(encoder, symbols)) {
        *reason = "an event refers to symbols that do not exist";
        return MT_ERR_USAGE;
    }
    is_checked = mt_check_is_due(&encoder->pace, encoder->addresses.mask / (count + 1));
    if (is_checked)
        MT_ASSERT_SOUND(encoder_is_sound(encoder, &why), why);
    write_header(events, count, definitions->length, out);
    mt_buf_add(out, definitions->data, definitions->length);
    if (count)
        mt_columns_write(encoder, out, &scratch);
    if (scratch.failed || out->failed) {
        *reason = mt_status_text(MT_ERR_MEMORY);
        status = MT_ERR_MEMORY;
    }
    mt_buf_release(&scratch);
    if (status == MT_OK && is_checked)
        MT_ASSERT_SOUND(mt_block_holds(out, start, symbols, events, count, &why), why);
    return status;
}
