/* Blocks -> events. The first pass reads and checks the columns, so the loop over events checks
 * only the distance to a place, and time. */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "check.h"
#include "codec.h"
#include "event.h"
#include "source.h"
#include "symbols.h"
#include "util.h"

/* The decoder of a block between its two passes: the columns are read and checked, the events are
 * not built yet. */

struct decoder_form {
    struct mt_event of; /* the fields that all events of this form share */
    uint16_t fields;
    bool lost;
};

struct decoder_place {
    uint64_t addr, size_bytes;
};

/* Arrays for blocks of up to `capacity` events. No table has more entries than the block has
 * events, except the one of sizes, which has at most twice as many. */
struct mt_decoder {
    uint32_t capacity;
    void *memory; /* of all arrays below */
    struct mt_event *events;
    struct decoder_form *forms;
    struct decoder_place *places;
    uint64_t *addresses, *sizes, *times, *gaps;
    uint32_t *form_uses, *stacks, *names;
    uint16_t *form_index, *address_index, *back, *size_index, *aux_index, *stack_index, *name_index;
    uint8_t *stack_lost, *name_lost;
};

/* The state of a block during decoding. */
struct decoding {
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

static inline enum mt_status malformed(const char **reason, const char *text)
{
    *reason = text;
    return MT_ERR_FORMAT;
}

static inline bool kind_is_known(unsigned kind)
{
    return kind > 0 && kind < MT_EVENT_KIND_COUNT;
}

/* First pass of the decoder: columns -> tables and indexes, all checked
 * (docs/internals/trace-format.md, "Columns"). */

static enum mt_status split_columns(struct decoding *job, const char **reason)
{
    struct mt_cursor in = job->block->columns;

    for (int i = 0; i < MT_COLUMN_COUNT; i++)
        job->columns[i] = (struct mt_cursor){in.end, in.end, false};
    while (mt_cursor_left(&in)) {
        uint64_t column = mt_cursor_varint(&in), length = mt_cursor_varint(&in);
        const uint8_t *bytes = mt_cursor_take(&in, length);
        if (in.bad)
            return malformed(reason, "columns are cut short");
        if (column < MT_COLUMN_COUNT) /* otherwise a column of a later version */
            job->columns[column] = (struct mt_cursor){bytes, bytes + length, false};
    }
    return MT_OK;
}

/* `count` indexes < limit: low bytes, then high bytes if limit > 256. */
static bool read_planes(struct mt_cursor *in, uint32_t count, uint32_t limit, uint16_t *out)
{
    const uint8_t *low = mt_cursor_take(in, count);
    const uint8_t *high = limit > 256 ? mt_cursor_take(in, count) : NULL;
    uint32_t i;
    uint16_t largest = 0;

    if (in->bad || mt_cursor_left(in))
        return false;
    if (high)
        for (i = 0; i < count; i++)
            out[i] = (uint16_t)(low[i] | high[i] << 8);
    else
        for (i = 0; i < count; i++)
            out[i] = low[i];
    for (i = 0; i < count; i++)
        largest = out[i] > largest ? out[i] : largest;
    return !count || largest < limit;
}

static bool read_differences(struct mt_cursor *in, uint32_t limit, uint64_t *out, uint32_t *count)
{
    uint64_t value = 0;

    *count = 0;
    if (!mt_cursor_left(in))
        return true;
    uint32_t n = (uint32_t)mt_cursor_bounded(in, limit);
    uint32_t shift = (uint32_t)mt_cursor_bounded(in, 63);
    for (uint32_t i = 0; i < n; i++) {
        value += mt_unzigzag(mt_cursor_varint(in));
        out[i] = value << shift;
    }
    *count = n;
    return !in->bad && !mt_cursor_left(in);
}

static bool read_sizes(struct mt_cursor *in, uint32_t limit, uint64_t *out, uint32_t *count)
{
    *count = 0;
    if (!mt_cursor_left(in))
        return true;
    uint32_t n = (uint32_t)mt_cursor_bounded(in, limit);
    for (uint32_t i = 0; i < n; i++)
        out[i] = mt_cursor_varint(in);
    *count = n;
    return !in->bad && !mt_cursor_left(in);
}

/* Unit, width, planes of that width, then a varint for each value whose bits are all ones. */
static bool read_times(struct decoding *job)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_TIMES];
    uint64_t *times = job->decoder->times, escape;
    uint64_t unit = mt_cursor_bounded(in, UINT32_MAX), width = mt_cursor_bounded(in, 2);
    const uint8_t *planes = mt_cursor_take(in, width * job->count);
    uint32_t i, n = job->count;

    if (in->bad || !unit || !width)
        return false;
    escape = width == 1 ? 0xFF : 0xFFFF;
    for (i = 0; i < n; i++) {
        uint64_t value = planes[i];
        if (width == 2)
            value |= (uint64_t)planes[n + i] << 8;
        if (value == escape) {
            value = mt_cursor_varint(in);
            if (value > UINT64_MAX / unit)
                return false;
        }
        times[i] = value * unit;
    }
    return !in->bad && !mt_cursor_left(in);
}

static bool read_gaps(struct decoding *job)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_SEQ_GAPS];

    MT_ASSERT(job->gapped <= job->count);
    for (uint32_t i = 0; i < job->gapped; i++)
        job->decoder->gaps[i] = mt_cursor_varint(in);
    return !in->bad && !mt_cursor_left(in);
}

/* Payloads belong to kinds that this version does not know: only their lengths are read. */
static bool skip_payloads(struct decoding *job)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_PAYLOADS];

    for (uint32_t i = 0; i < job->paid; i++)
        mt_cursor_take(in, mt_cursor_varint(in));
    return !in->bad && !mt_cursor_left(in);
}

static enum mt_status resolve_ids(struct decoding *job, enum mt_table table, const uint64_t *values,
                                  uint32_t count, uint32_t *out, uint8_t *lost_flags)
{
    for (uint32_t i = 0; i < count; i++) {
        bool lost = false;
        enum mt_status status =
            mt_ids_resolve(job->ids, job->symbols, table, values[i], &out[i], &lost);
        if (status != MT_OK)
            return status;
        MT_ASSERT(out[i] < (table == MT_TABLE_STACKS ? job->symbols->stack_count
                                                     : job->symbols->strings.count));
        lost_flags[i] = lost;
        job->any_lost |= lost;
    }
    return MT_OK;
}

/* The symbols' id for a form's id. Small ids fit because the tables are bounded. */
static uint64_t form_id(struct decoding *job, enum mt_table table, uint64_t id,
                        struct decoder_form *form, enum mt_status *status)
{
    uint32_t resolved = 0;
    enum mt_status now = mt_ids_resolve(job->ids, job->symbols, table, id, &resolved, &form->lost);

    MT_ASSERT(now != MT_OK || resolved < MT_NO_ID);
    if (*status == MT_OK)
        *status = now;
    return resolved;
}

/* A device without a description is still that device: nothing is lost. */
static enum mt_status form_device(struct decoding *job, uint64_t device, struct decoder_form *form)
{
    if (device >= MT_MAX_DEVICES)
        return MT_ERR_FORMAT;
    form->of.device = (uint16_t)device;
    MT_ASSERT(job->symbols->device_count <= MT_MAX_DEVICES);
    if (device < job->symbols->device_count)
        return MT_OK;
    enum mt_status status = mt_source_change_symbols(job->ids->source);
    return status ? status : mt_symbols_device(job->symbols, (uint32_t)device, MT_NO_ID, 0);
}

static enum mt_status read_form(struct decoding *job, struct decoder_form *form)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_FORMS];
    uint64_t kind = mt_cursor_bounded(in, UINT8_MAX), flags = mt_cursor_bounded(in, UINT8_MAX);
    uint64_t fields = mt_cursor_bounded(in, UINT16_MAX), thread = mt_cursor_varint(in);
    uint64_t device = mt_cursor_varint(in), heap = mt_cursor_varint(in);
    uint64_t pool = mt_cursor_varint(in), stream = mt_cursor_varint(in);
    enum mt_status status = MT_OK;

    if (in->bad)
        return MT_ERR_FORMAT;
    memset(form, 0, sizeof *form);
    form->fields = (uint16_t)fields;
    form->of.kind = (uint8_t)kind;
    form->of.flags = (uint8_t)flags;
    form->of.stack = form->of.name = MT_NO_ID;
    form->of.thread = (uint16_t)form_id(job, MT_TABLE_THREADS, thread, form, &status);
    form->of.heap = (uint16_t)form_id(job, MT_TABLE_HEAPS, heap, form, &status);
    form->of.pool = (uint16_t)form_id(job, MT_TABLE_POOLS, pool, form, &status);
    form->of.stream = (uint32_t)form_id(job, MT_TABLE_STREAMS, stream, form, &status);
    return status == MT_OK ? form_device(job, device, form) : status;
}

static void note_heap(struct decoding *job, const struct mt_event *form)
{
    uint32_t heap = form->kind == MT_EVENT_MEMORY_SAMPLE ? 0 : form->heap + 1u;

    if (!mt_event_kind_has_heap(form->kind) && heap)
        return;
    job->only_heap = job->only_heap == UINT32_MAX || job->only_heap == heap ? heap : 0;
}

static enum mt_status read_forms(struct decoding *job)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_FORMS];

    job->form_count = (uint32_t)mt_cursor_bounded(in, job->count);
    job->only_heap = UINT32_MAX;
    for (uint32_t i = 0; i < job->form_count; i++) {
        struct decoder_form *form = &job->decoder->forms[i];
        enum mt_status status = read_form(job, form);
        if (status != MT_OK)
            return status;
        job->any_lost |= form->lost;
        note_heap(job, &form->of);
        job->any_special |= !kind_is_known(form->of.kind) || form->of.kind == MT_EVENT_DROPPED ||
                            form->of.kind == MT_EVENT_END;
    }
    return in->bad || mt_cursor_left(in) ? MT_ERR_FORMAT : MT_OK;
}

static void count_fields(struct decoding *job, uint32_t uses, unsigned fields)
{
    unsigned place = fields & MT_FIELD_PLACE;

    job->new_places += place == MT_FIELD_PLACE_NEW ? uses : 0;
    job->back_places += place == MT_FIELD_PLACE_BACK ? uses : 0;
    job->sized += fields & MT_FIELD_SIZE ? uses : 0;
    job->auxed += fields & MT_FIELD_AUX ? uses : 0;
    job->stacked += fields & MT_FIELD_STACK ? uses : 0;
    job->named += fields & MT_FIELD_NAME ? uses : 0;
    job->gapped += fields & MT_FIELD_SEQ_GAP ? uses : 0;
    job->paid += fields & MT_FIELD_PAYLOAD ? uses : 0;
}

/* Counts the values that each column must have. */
static void count_uses(struct decoding *job)
{
    const uint16_t *form_index = job->decoder->form_index;
    uint32_t *uses = job->decoder->form_uses;
    uint32_t i, count = job->count;

    memset(uses, 0, job->form_count * sizeof *uses);
    for (i = 0; i < count; i++)
        uses[form_index[i]]++;
    MT_ASSERT(job->form_count <= count && count <= job->decoder->capacity);
    for (i = 0; i < job->form_count; i++)
        count_fields(job, uses[i], job->decoder->forms[i].fields);
}

static enum mt_status read_symbol_columns(struct decoding *job, const char **reason)
{
    struct mt_decoder *decoder = job->decoder;
    struct mt_cursor *columns = job->columns;

    /* The array of times holds the ids of the file until the times are read. */
    if (!read_differences(&columns[MT_COLUMN_STACKS], job->count, decoder->times,
                          &job->stack_count))
        return malformed(reason, "column of stacks is malformed");
    enum mt_status status = resolve_ids(job, MT_TABLE_STACKS, decoder->times, job->stack_count,
                                        decoder->stacks, decoder->stack_lost);
    if (status != MT_OK)
        return status;
    if (!read_differences(&columns[MT_COLUMN_NAMES], job->count, decoder->times, &job->name_count))
        return malformed(reason, "column of names is malformed");
    return resolve_ids(job, MT_TABLE_STRINGS, decoder->times, job->name_count, decoder->names,
                       decoder->name_lost);
}

/* Resolves all ids of the block: nothing else in it changes the symbols. */
static enum mt_status read_ids(struct decoding *job, const char **reason)
{
    enum mt_status status = split_columns(job, reason);

    if (status != MT_OK)
        return status;
    *reason = "forms are malformed";
    status = read_forms(job);
    return status == MT_OK ? read_symbol_columns(job, reason) : status;
}

static enum mt_status read_all(struct decoding *job, const char **reason)
{
    struct mt_decoder *decoder = job->decoder;
    struct mt_cursor *columns = job->columns;
    uint32_t sizes_limit = (uint32_t)mt_min_u64(2 * (uint64_t)job->count, MT_BLOCK_MAX_EVENTS);

    if (!read_planes(&columns[MT_COLUMN_FORM_INDEX], job->count, job->form_count,
                     decoder->form_index))
        return malformed(reason, "column of forms is malformed");
    count_uses(job);
    if (!read_times(job) || !read_gaps(job))
        return malformed(reason, "column of times is malformed");
    if (!read_differences(&columns[MT_COLUMN_ADDRESSES], job->count, decoder->addresses,
                          &job->address_count) ||
        !read_planes(&columns[MT_COLUMN_ADDRESS_INDEX], job->new_places, job->address_count,
                     decoder->address_index) ||
        !read_planes(&columns[MT_COLUMN_BACK], job->back_places, job->new_places, decoder->back))
        return malformed(reason, "column of addresses is malformed");
    if (!read_sizes(&columns[MT_COLUMN_SIZES], sizes_limit, decoder->sizes, &job->size_count) ||
        !read_planes(&columns[MT_COLUMN_SIZE_INDEX], job->sized, job->size_count,
                     decoder->size_index) ||
        !read_planes(&columns[MT_COLUMN_AUX_INDEX], job->auxed, job->size_count,
                     decoder->aux_index))
        return malformed(reason, "column of sizes is malformed");
    if (!read_planes(&columns[MT_COLUMN_STACK_INDEX], job->stacked, job->stack_count,
                     decoder->stack_index) ||
        !read_planes(&columns[MT_COLUMN_NAME_INDEX], job->named, job->name_count,
                     decoder->name_index) ||
        !skip_payloads(job))
        return malformed(reason, "column of stacks or names is malformed");
    return MT_OK;
}

/* Fills the decoder's arrays, which have room. Afterwards every column has exactly the values that
 * the forms of the events require, and every index is within its table. The loop over events relies
 * on this. */
static enum mt_status columns_read(struct decoding *job, const char **reason)
{
    enum mt_status status = read_ids(job, reason);

    return status == MT_OK ? read_all(job, reason) : status;
}

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
        return malformed(reason, "not a block of events");
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
        return malformed(reason, "block header is malformed");
    return MT_OK;
}

enum mt_status mt_event_block_parse(const uint8_t *raw, size_t length, struct mt_event_block *block,
                                    const char **reason)
{
    uint32_t header_bytes;

    if (length < MT_BLOCK_HEADER_BYTES)
        return malformed(reason, "not a block of events");
    enum mt_status status = parse_header(raw, &block->header, &header_bytes, reason);
    if (status != MT_OK)
        return status;
    if (header_bytes > length || block->header.definition_bytes > length - header_bytes)
        return malformed(reason, "block is shorter than its header says");
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
static bool are_used_up(const struct decoding *job, const struct column_places *at)
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

/* The loop that determines decoding speed: it repeats no check of columns_read. */
static bool build_events(struct decoding *job)
{
    const struct mt_decoder *decoder = job->decoder;
    const struct decoder_form *forms = decoder->forms;
    const uint16_t *form_index = decoder->form_index;
    const uint64_t *times = decoder->times;
    struct column_places at = {decoder->address_index, decoder->back,        decoder->size_index,
                               decoder->aux_index,     decoder->stack_index, decoder->name_index,
                               decoder->gaps};
    const uint64_t *addresses = decoder->addresses, *sizes = decoder->sizes;
    struct decoder_place *places = decoder->places;
    struct mt_event *event = decoder->events;
    uint64_t seq = job->block->header.first_seq, t_ns = job->block->header.base_t_ns;
    uint32_t place_count = 0, last_place = 0, last_stack = MT_NO_ID, i, count = job->count;
    bool sound = true;

    for (i = 0; i < count; i++, event++) {
        const struct decoder_form *form = &forms[form_index[i]];
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
            places[last_place] = (struct decoder_place){event->addr, event->size_bytes};
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
static uint64_t count_invalid(const struct decoding *job)
{
    const struct mt_decoder *decoder = job->decoder;
    const uint16_t *stack_index = decoder->stack_index, *name_index = decoder->name_index;
    uint64_t invalid = 0;
    bool stack_lost = false;

    for (uint32_t i = 0; i < job->count; i++) {
        const struct decoder_form *form = &decoder->forms[decoder->form_index[i]];
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
static void sort_out_special(const struct decoding *job, struct mt_decoded *decoded)
{
    struct mt_event *events = decoded->events;
    size_t kept = 0, i;

    for (i = 0; i < job->count; i++) {
        if (!kind_is_known(events[i].kind)) {
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
    struct decoding job = {.decoder = decoder,
                           .block = block,
                           .ids = ids,
                           .symbols = symbols,
                           .count = block->header.event_count};

    memset(decoded, 0, sizeof *decoded);
    if (!job.count)
        return MT_OK;
    *reason = mt_status_text(MT_ERR_MEMORY);
    if (make_room(decoder, job.count) != MT_OK)
        return MT_ERR_MEMORY;
    decoded->events = decoder->events;
    enum mt_status status = columns_read(&job, reason);
    if (status == MT_OK && !build_events(&job))
        status = malformed(reason, "events are malformed");
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

enum mt_status mt_event_block_resolve(struct mt_decoder *decoder,
                                      const struct mt_event_block *block, struct mt_ids *ids,
                                      struct mt_symbols *symbols)
{
    struct decoding job = {.decoder = decoder,
                           .block = block,
                           .ids = ids,
                           .symbols = symbols,
                           .count = block->header.event_count};
    const char *reason;

    if (!job.count)
        return MT_OK;
    return make_room(decoder, job.count) == MT_OK ? read_ids(&job, &reason) : MT_ERR_MEMORY;
}
