/* First pass of the decoder: columns -> tables and indexes, all checked
 * (docs/internals/trace-format.md, "Columns"). */
#include "check.h"
#include "decoder.h"

#include <string.h>

#include "util.h"

static enum mt_status split_columns(struct mt_decoding *job, const char **reason)
{
    struct mt_cursor in = job->block->columns;
    int i;

    for (i = 0; i < MT_COLUMN_COUNT; i++)
        job->columns[i] = (struct mt_cursor){in.end, in.end, false};
    while (mt_cursor_left(&in)) {
        uint64_t column = mt_cursor_varint(&in), length = mt_cursor_varint(&in);
        const uint8_t *bytes = mt_cursor_take(&in, length);
        if (in.bad)
            return mt_malformed(reason, "columns are cut short");
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
    if (high) {
        for (i = 0; i < count; i++)
            out[i] = (uint16_t)(low[i] | high[i] << 8);
    } else {
        for (i = 0; i < count; i++)
            out[i] = low[i];
    }
    for (i = 0; i < count; i++)
        largest = out[i] > largest ? out[i] : largest;
    return !count || largest < limit;
}

static bool read_differences(struct mt_cursor *in, uint32_t limit, uint64_t *out, uint32_t *count)
{
    uint64_t value = 0;
    uint32_t i, n, shift;

    *count = 0;
    if (!mt_cursor_left(in))
        return true;
    n = (uint32_t)mt_cursor_bounded(in, limit);
    shift = (uint32_t)mt_cursor_bounded(in, 63);
    for (i = 0; i < n; i++) {
        value += mt_unzigzag(mt_cursor_varint(in));
        out[i] = value << shift;
    }
    *count = n;
    return !in->bad && !mt_cursor_left(in);
}

static bool read_sizes(struct mt_cursor *in, uint32_t limit, uint64_t *out, uint32_t *count)
{
    uint32_t i, n;

    *count = 0;
    if (!mt_cursor_left(in))
        return true;
    n = (uint32_t)mt_cursor_bounded(in, limit);
    for (i = 0; i < n; i++)
        out[i] = mt_cursor_varint(in);
    *count = n;
    return !in->bad && !mt_cursor_left(in);
}

/* Unit, width, planes of that width, then a varint for each value whose bits are all ones. */
static bool read_times(struct mt_decoding *job)
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

static bool read_gaps(struct mt_decoding *job)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_SEQ_GAPS];
    uint32_t i;

    MT_ASSERT(job->gapped <= job->count);
    for (i = 0; i < job->gapped; i++)
        job->decoder->gaps[i] = mt_cursor_varint(in);
    return !in->bad && !mt_cursor_left(in);
}

/* Payloads belong to kinds that this version does not know: only their lengths are read. */
static bool skip_payloads(struct mt_decoding *job)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_PAYLOADS];
    uint32_t i;

    for (i = 0; i < job->paid; i++)
        mt_cursor_take(in, mt_cursor_varint(in));
    return !in->bad && !mt_cursor_left(in);
}

static enum mt_status resolve_ids(struct mt_decoding *job, enum mt_table table,
                                  const uint64_t *values, uint32_t count, uint32_t *out,
                                  uint8_t *lost_flags)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
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
static uint64_t form_id(struct mt_decoding *job, enum mt_table table, uint64_t id,
                        struct mt_decoder_form *form, enum mt_status *status)
{
    uint32_t resolved = 0;
    enum mt_status now = mt_ids_resolve(job->ids, job->symbols, table, id, &resolved, &form->lost);

    MT_ASSERT(now != MT_OK || resolved < MT_NO_ID);
    if (*status == MT_OK)
        *status = now;
    return resolved;
}

/* A device without a description is still that device: nothing is lost. */
static enum mt_status form_device(struct mt_decoding *job, uint64_t device,
                                  struct mt_decoder_form *form)
{
    if (device >= MT_MAX_DEVICES)
        return MT_ERR_FORMAT;
    form->of.device = (uint16_t)device;
    MT_ASSERT(job->symbols->device_count <= MT_MAX_DEVICES);
    if (device < job->symbols->device_count)
        return MT_OK;
    return mt_symbols_device(job->symbols, (uint32_t)device, MT_NO_ID, 0);
}

static enum mt_status read_form(struct mt_decoding *job, struct mt_decoder_form *form)
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

static void note_heap(struct mt_decoding *job, const struct mt_event *form)
{
    uint32_t heap = form->kind == MT_EVENT_MEMORY_SAMPLE ? 0 : form->heap + 1u;

    if (!mt_event_kind_has_heap(form->kind) && heap)
        return;
    job->only_heap = job->only_heap == UINT32_MAX || job->only_heap == heap ? heap : 0;
}

static enum mt_status read_forms(struct mt_decoding *job)
{
    struct mt_cursor *in = &job->columns[MT_COLUMN_FORMS];
    uint32_t i;

    job->form_count = (uint32_t)mt_cursor_bounded(in, job->count);
    job->only_heap = UINT32_MAX;
    for (i = 0; i < job->form_count; i++) {
        struct mt_decoder_form *form = &job->decoder->forms[i];
        enum mt_status status = read_form(job, form);
        if (status != MT_OK)
            return status;
        job->any_lost |= form->lost;
        note_heap(job, &form->of);
        job->any_special |= !mt_kind_is_known(form->of.kind) || form->of.kind == MT_EVENT_DROPPED ||
                            form->of.kind == MT_EVENT_END;
    }
    return in->bad || mt_cursor_left(in) ? MT_ERR_FORMAT : MT_OK;
}

static void count_fields(struct mt_decoding *job, uint32_t uses, unsigned fields)
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
static void count_uses(struct mt_decoding *job)
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

static enum mt_status read_symbol_columns(struct mt_decoding *job, const char **reason)
{
    struct mt_decoder *decoder = job->decoder;
    struct mt_cursor *columns = job->columns;
    enum mt_status status;

    /* times are not read yet, so their array holds the file's ids for now */
    if (!read_differences(&columns[MT_COLUMN_STACKS], job->count, decoder->times,
                          &job->stack_count))
        return mt_malformed(reason, "column of stacks is malformed");
    status = resolve_ids(job, MT_TABLE_STACKS, decoder->times, job->stack_count, decoder->stacks,
                         decoder->stack_lost);
    if (status != MT_OK)
        return status;
    if (!read_differences(&columns[MT_COLUMN_NAMES], job->count, decoder->times, &job->name_count))
        return mt_malformed(reason, "column of names is malformed");
    return resolve_ids(job, MT_TABLE_STRINGS, decoder->times, job->name_count, decoder->names,
                       decoder->name_lost);
}

static enum mt_status read_all(struct mt_decoding *job, const char **reason)
{
    struct mt_decoder *decoder = job->decoder;
    struct mt_cursor *columns = job->columns;
    uint32_t sizes_limit = (uint32_t)mt_min_u64(2 * (uint64_t)job->count, MT_BLOCK_MAX_EVENTS);
    enum mt_status status = read_forms(job);

    *reason = "forms are malformed";
    if (status != MT_OK)
        return status;
    if (!read_planes(&columns[MT_COLUMN_FORM_INDEX], job->count, job->form_count,
                     decoder->form_index))
        return mt_malformed(reason, "column of forms is malformed");
    count_uses(job);
    status = read_symbol_columns(job, reason);
    if (status != MT_OK)
        return status;
    if (!read_times(job) || !read_gaps(job))
        return mt_malformed(reason, "column of times is malformed");
    if (!read_differences(&columns[MT_COLUMN_ADDRESSES], job->count, decoder->addresses,
                          &job->address_count) ||
        !read_planes(&columns[MT_COLUMN_ADDRESS_INDEX], job->new_places, job->address_count,
                     decoder->address_index) ||
        !read_planes(&columns[MT_COLUMN_BACK], job->back_places, job->new_places, decoder->back))
        return mt_malformed(reason, "column of addresses is malformed");
    if (!read_sizes(&columns[MT_COLUMN_SIZES], sizes_limit, decoder->sizes, &job->size_count) ||
        !read_planes(&columns[MT_COLUMN_SIZE_INDEX], job->sized, job->size_count,
                     decoder->size_index) ||
        !read_planes(&columns[MT_COLUMN_AUX_INDEX], job->auxed, job->size_count,
                     decoder->aux_index))
        return mt_malformed(reason, "column of sizes is malformed");
    if (!read_planes(&columns[MT_COLUMN_STACK_INDEX], job->stacked, job->stack_count,
                     decoder->stack_index) ||
        !read_planes(&columns[MT_COLUMN_NAME_INDEX], job->named, job->name_count,
                     decoder->name_index) ||
        !skip_payloads(job))
        return mt_malformed(reason, "column of stacks or names is malformed");
    return MT_OK;
}

enum mt_status mt_columns_read(struct mt_decoding *job, const char **reason)
{
    enum mt_status status = split_columns(job, reason);

    return status == MT_OK ? read_all(job, reason) : status;
}
