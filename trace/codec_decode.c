/* Blocks -> events. columns_read.c reads and checks the columns first, so the loop over events
 * checks only the distance to a place, and time. */
#include "decoder.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util.h"

struct mt_decoder *mt_decoder_new(void)
{
    return calloc(1, sizeof(struct mt_decoder));
}

void mt_decoder_free(struct mt_decoder *decoder)
{
    if (decoder)
        free(decoder->memory);
    free(decoder);
}

/* The next `count` entries of the decoder's memory; with NULL only counts. */
static void *carve(char *memory, size_t *used, size_t count, size_t entry_bytes)
{
    char *entries = memory ? memory + *used : NULL;

    *used += mt_round_up(count * entry_bytes, 64);
    return entries;
}

static size_t lay_out(struct mt_decoder *decoder, char *memory, size_t n)
{
    size_t used = 0;

    decoder->events = carve(memory, &used, n, sizeof *decoder->events);
    decoder->forms = carve(memory, &used, n, sizeof *decoder->forms);
    decoder->places = carve(memory, &used, n, sizeof *decoder->places);
    decoder->addresses = carve(memory, &used, n, sizeof *decoder->addresses);
    decoder->sizes = carve(memory, &used, 2 * n, sizeof *decoder->sizes);
    decoder->times = carve(memory, &used, n, sizeof *decoder->times);
    decoder->gaps = carve(memory, &used, n, sizeof *decoder->gaps);
    decoder->form_uses = carve(memory, &used, n, sizeof *decoder->form_uses);
    decoder->stacks = carve(memory, &used, n, sizeof *decoder->stacks);
    decoder->names = carve(memory, &used, n, sizeof *decoder->names);
    decoder->form_index = carve(memory, &used, n, sizeof *decoder->form_index);
    decoder->address_index = carve(memory, &used, n, sizeof *decoder->address_index);
    decoder->back = carve(memory, &used, n, sizeof *decoder->back);
    decoder->size_index = carve(memory, &used, n, sizeof *decoder->size_index);
    decoder->aux_index = carve(memory, &used, n, sizeof *decoder->aux_index);
    decoder->stack_index = carve(memory, &used, n, sizeof *decoder->stack_index);
    decoder->name_index = carve(memory, &used, n, sizeof *decoder->name_index);
    decoder->stack_lost = carve(memory, &used, n, sizeof *decoder->stack_lost);
    decoder->name_lost = carve(memory, &used, n, sizeof *decoder->name_lost);
    return used;
}

static enum mt_status make_room(struct mt_decoder *decoder, uint32_t count)
{
    uint32_t capacity = decoder->capacity ? decoder->capacity : 64;
    void *memory;

    if (count <= decoder->capacity)
        return MT_OK;
    while (capacity < count)
        capacity *= 2;
    memory = malloc(lay_out(decoder, NULL, capacity));
    if (!memory) {
        lay_out(decoder, decoder->memory, decoder->capacity);
        return MT_ERR_MEMORY;
    }
    free(decoder->memory);
    decoder->memory = memory;
    decoder->capacity = capacity;
    lay_out(decoder, memory, capacity);
    MT_ASSERT(decoder->capacity >= count && decoder->events == decoder->memory);
    return MT_OK;
}

static enum mt_status parse_header(const uint8_t *raw, struct mt_event_block_header *header,
                                   uint32_t *header_bytes, const char **reason)
{
    if (mt_get_u32(raw) != MT_BLOCK_MAGIC)
        return mt_malformed(reason, "not a block of events");
    if (mt_get_u16(raw + 4) != MT_FORMAT_VERSION) {
        *reason = "written by a later version of the format";
        return MT_ERR_UNSUPPORTED;
    }
    *header_bytes = mt_get_u16(raw + 6);
    header->first_seq = mt_get_u64(raw + 8);
    header->base_t_ns = mt_get_u64(raw + 16);
    header->event_count = mt_get_u32(raw + 24);
    header->definition_bytes = mt_get_u32(raw + 28);
    if (*header_bytes < MT_BLOCK_HEADER_BYTES || header->event_count > MT_BLOCK_MAX_EVENTS ||
        header->first_seq > MT_MAX_SEQ)
        return mt_malformed(reason, "block header is malformed");
    return MT_OK;
}

enum mt_status mt_event_block_parse(const uint8_t *raw, size_t length, struct mt_event_block *block,
                                    const char **reason)
{
    uint32_t header_bytes;
    enum mt_status status;

    if (length < MT_BLOCK_HEADER_BYTES)
        return mt_malformed(reason, "not a block of events");
    status = parse_header(raw, &block->header, &header_bytes, reason);
    if (status != MT_OK)
        return status;
    if (header_bytes > length || block->header.definition_bytes > length - header_bytes)
        return mt_malformed(reason, "block is shorter than its header says");
    block->definitions.at = raw + header_bytes;
    block->definitions.end = block->definitions.at + block->header.definition_bytes;
    block->columns.at = block->definitions.end;
    block->columns.end = raw + length;
    block->definitions.bad = block->columns.bad = false;
    MT_ASSERT(header_bytes + mt_cursor_left(&block->definitions) +
                  mt_cursor_left(&block->columns) ==
              length);
    return MT_OK;
}

/* Position of build_events in the columns that not every event has a value in. */
struct column_places {
    const uint16_t *address, *back, *size, *aux, *stack, *name;
    const uint64_t *gap;
};

/* Whether every value of every column was used. */
static bool are_used_up(const struct mt_decoding *job, const struct column_places *at)
{
    const struct mt_decoder *decoder = job->decoder;

    return at->address == decoder->address_index + job->new_places &&
           at->back == decoder->back + job->back_places &&
           at->size == decoder->size_index + job->sized &&
           at->aux == decoder->aux_index + job->auxed &&
           at->stack == decoder->stack_index + job->stacked &&
           at->name == decoder->name_index + job->named && at->gap == decoder->gaps + job->gapped;
}

static inline bool pass_gap(struct column_places *at, uint64_t *seq)
{
    bool sound = *at->gap <= MT_MAX_SEQ && *seq <= MT_MAX_SEQ;

    *seq += *at->gap++;
    return sound;
}

/* The loop that determines decoding speed: it repeats no check of columns_read.c. */
static bool build_events(struct mt_decoding *job)
{
    const struct mt_decoder *decoder = job->decoder;
    const struct mt_decoder_form *forms = decoder->forms;
    const uint16_t *form_index = decoder->form_index;
    const uint64_t *times = decoder->times;
    struct column_places at = {decoder->address_index, decoder->back,        decoder->size_index,
                               decoder->aux_index,     decoder->stack_index, decoder->name_index,
                               decoder->gaps};
    const uint64_t *addresses = decoder->addresses, *sizes = decoder->sizes;
    struct mt_decoder_place *places = decoder->places;
    struct mt_event *event = decoder->events;
    uint64_t seq = job->block->header.first_seq, t_ns = job->block->header.base_t_ns;
    uint32_t place_count = 0, last_place = 0, last_stack = MT_NO_ID, i, count = job->count;
    bool sound = true;

    for (i = 0; i < count; i++, event++) {
        const struct mt_decoder_form *form = &forms[form_index[i]];
        unsigned fields = form->fields;

        *event = form->of;
        if (fields & MT_FIELD_SEQ_GAP)
            sound &= pass_gap(&at, &seq);
        event->seq = seq++;
        sound &= times[i] <= UINT64_MAX - t_ns;
        t_ns += times[i];
        event->t_ns = t_ns;
        if (fields & MT_FIELD_SIZE)
            event->size_bytes = sizes[*at.size++];
        switch (fields & MT_FIELD_PLACE) {
        case MT_FIELD_PLACE_NONE: break;
        case MT_FIELD_PLACE_NEW:
            event->addr = addresses[*at.address++];
            MT_ASSERT(place_count < job->new_places);
            last_place = place_count++;
            places[last_place] = (struct mt_decoder_place){event->addr, event->size_bytes};
            break;
        case MT_FIELD_PLACE_BACK:
            last_place = place_count - 1 - *at.back++; /* may wrap: caught below */
            /* fall through */
        case MT_FIELD_PLACE_SAME:
            if (last_place >= place_count)
                return false;
            event->addr = places[last_place].addr;
            if (!(fields & MT_FIELD_SIZE))
                event->size_bytes = places[last_place].size_bytes;
            break;
        }
        if (fields & MT_FIELD_AUX)
            event->aux_bytes = sizes[*at.aux++];
        if (fields & MT_FIELD_STACK)
            last_stack = decoder->stacks[*at.stack++];
        if (fields & (MT_FIELD_STACK | MT_FIELD_STACK_SAME))
            event->stack = last_stack;
        if (fields & MT_FIELD_NAME)
            event->name = decoder->names[*at.name++];
    }
    MT_ASSERT(are_used_up(job, &at));
    return sound && seq - 1 <= MT_MAX_SEQ; /* the seq of the last event: they ascend */
}

/* Counts events that refer to lost definitions, if there are any. */
static uint64_t count_invalid(const struct mt_decoding *job)
{
    const struct mt_decoder *decoder = job->decoder;
    const uint16_t *stack_index = decoder->stack_index, *name_index = decoder->name_index;
    uint64_t invalid = 0;
    bool stack_lost = false;
    uint32_t i;

    for (i = 0; i < job->count; i++) {
        const struct mt_decoder_form *form = &decoder->forms[decoder->form_index[i]];
        bool lost = form->lost;
        if (form->fields & MT_FIELD_STACK)
            stack_lost = decoder->stack_lost[*stack_index++];
        if (form->fields & (MT_FIELD_STACK | MT_FIELD_STACK_SAME))
            lost |= stack_lost;
        if (form->fields & MT_FIELD_NAME)
            lost |= decoder->name_lost[*name_index++] != 0;
        invalid += lost;
    }
    MT_ASSERT(invalid <= job->count);
    return invalid;
}

/* Counts drops and the end; removes unknown kinds. */
static void sort_out_special(const struct mt_decoding *job, struct mt_decoded *decoded)
{
    struct mt_event *events = decoded->events;
    size_t kept = 0, i;

    for (i = 0; i < job->count; i++) {
        if (!mt_kind_is_known(events[i].kind)) {
            decoded->unknown++;
            continue;
        }
        if (events[i].kind == MT_EVENT_DROPPED)
            decoded->dropped += events[i].size_bytes;
        decoded->closed |= events[i].kind == MT_EVENT_END;
        events[kept++] = events[i];
    }
    MT_ASSERT(kept + decoded->unknown == job->count);
    decoded->count = kept;
}

enum mt_status mt_event_block_decode(struct mt_decoder *decoder, const struct mt_event_block *block,
                                     struct mt_ids *ids, struct mt_symbols *symbols,
                                     struct mt_decoded *decoded, const char **reason)
{
    struct mt_decoding job = {.decoder = decoder,
                              .block = block,
                              .ids = ids,
                              .symbols = symbols,
                              .count = block->header.event_count};
    enum mt_status status;

    memset(decoded, 0, sizeof *decoded);
    if (!job.count)
        return MT_OK;
    *reason = mt_status_text(MT_ERR_MEMORY);
    if (make_room(decoder, job.count) != MT_OK)
        return MT_ERR_MEMORY;
    decoded->events = decoder->events;
    status = mt_columns_read(&job, reason);
    if (status == MT_OK && !build_events(&job))
        status = mt_malformed(reason, "events are malformed");
    if (status != MT_OK)
        return status;
    decoded->count = job.count;
    decoded->only_heap = job.only_heap == UINT32_MAX ? 0 : job.only_heap;
    if (job.any_lost)
        decoded->invalid = count_invalid(&job);
    if (job.any_special)
        sort_out_special(&job, decoded);
    return MT_OK;
}
