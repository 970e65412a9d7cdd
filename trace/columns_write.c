/* Second pass of the encoder: tables and indexes -> columns
 * (docs/internals/trace-format.md, "Columns"). */
#include "encoder.h"

enum { MAX_FORM_BYTES = 9 * MT_VARINT_MAX_BYTES };

static void add_column(struct mt_buf *out, enum mt_column column, const uint8_t *bytes,
                       size_t length)
{
    uint8_t *start = (uint8_t *)mt_buf_reserve(out, 2 * MT_VARINT_MAX_BYTES), *at;

    MT_ASSERT(column > 0 && column < MT_COLUMN_COUNT);
    if (!start || !length)
        return;
    at = mt_put_varint(mt_put_varint(start, (uint64_t)column), length);
    out->length += (size_t)(at - start);
    mt_buf_add(out, bytes, length);
}

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
    const uint8_t *start = (const uint8_t *)scratch->data;

    MT_ASSERT(end >= start && (size_t)(end - start) <= scratch->capacity);
    add_column(out, column, start, (size_t)(end - start));
}

static void write_planes(struct mt_buf *out, struct mt_buf *scratch, enum mt_column column,
                         const uint16_t *values, size_t count, uint32_t table_count)
{
    uint8_t *at = scratch_for(scratch, count, 2);
    size_t i;

    if (!at || !count)
        return;
    for (i = 0; i < count; i++) {
        MT_ASSERT(values[i] < table_count);
        at[i] = (uint8_t)values[i];
    }
    at += count;
    if (table_count > 256) {
        for (i = 0; i < count; i++)
            at[i] = (uint8_t)(values[i] >> 8);
        at += count;
    }
    finish_column(out, column, scratch, at);
}

static void write_forms(const struct mt_encoder *encoder, struct mt_buf *out,
                        struct mt_buf *scratch)
{
    uint8_t *at = scratch_for(scratch, encoder->form_count, MAX_FORM_BYTES);
    uint32_t i;

    if (!at)
        return;
    at = mt_put_varint(at, encoder->form_count);
    for (i = 0; i < encoder->form_count; i++) {
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
    size_t i;

    for (i = 0; i < count; i++) {
        if (times[i] % 1000)
            return 1;
    }
    return 1000;
}

/* Bytes per time (1 or 2) that give the shorter column. The largest value of that width means that
 * a varint follows. */
static unsigned best_width(const uint64_t *times, size_t count, uint64_t unit)
{
    size_t beyond_one = 0, beyond_two = 0, i;

    for (i = 0; i < count; i++) {
        beyond_one += times[i] >= 0xFF * unit;
        beyond_two += times[i] >= 0xFFFF * unit;
    }
    return beyond_one * 2 <= count + beyond_two * 3 ? 1 : 2;
}

static void write_times(struct mt_encoder *encoder, struct mt_buf *out, struct mt_buf *scratch)
{
    size_t count = encoder->event_count, i, rest = 0;
    uint64_t *times = encoder->times, unit = common_unit(times, count);
    unsigned width = best_width(times, count, unit);
    uint64_t escape = width == 1 ? 0xFF : 0xFFFF;
    uint8_t *at = scratch_for(scratch, count, 2 + MT_VARINT_MAX_BYTES);

    if (!at)
        return;
    at = mt_put_varint(at, unit);
    *at++ = (uint8_t)width;
    for (i = 0; i < count; i++) {
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
    for (i = 0; i < rest; i++)
        at = mt_put_varint(at, times[i]);
    finish_column(out, MT_COLUMN_TIMES, scratch, at);
}

/* Values as differences from the previous one, without the low bits that are 0 in all. */
static void write_differences(struct mt_buf *out, struct mt_buf *scratch, enum mt_column column,
                              const struct mt_dictionary *table)
{
    uint8_t *at = scratch_for(scratch, table->count, MT_VARINT_MAX_BYTES);
    uint64_t bits = 0, last = 0;
    unsigned shift;
    uint32_t i;

    if (!at || !table->count)
        return;
    for (i = 0; i < table->count; i++)
        bits |= table->values[i];
    shift = bits ? (unsigned)__builtin_ctzll(bits) : 0;
    at = mt_put_varint(at, table->count);
    at = mt_put_varint(at, shift);
    for (i = 0; i < table->count; i++) {
        uint64_t value = table->values[i] >> shift;
        MT_ASSERT(value << shift == table->values[i]);
        at = mt_put_varint(at, mt_zigzag(value - last));
        last = value;
    }
    finish_column(out, column, scratch, at);
}

static void write_sizes(const struct mt_encoder *encoder, struct mt_buf *out,
                        struct mt_buf *scratch)
{
    const struct mt_dictionary *sizes = &encoder->sizes;
    uint8_t *at = scratch_for(scratch, sizes->count, MT_VARINT_MAX_BYTES);
    uint32_t i;

    if (!at || !sizes->count)
        return;
    at = mt_put_varint(at, sizes->count);
    for (i = 0; i < sizes->count; i++)
        at = mt_put_varint(at, sizes->values[i]);
    finish_column(out, MT_COLUMN_SIZES, scratch, at);
}

static void write_gaps(const struct mt_encoder *encoder, struct mt_buf *out, struct mt_buf *scratch)
{
    uint8_t *at = scratch_for(scratch, encoder->gap_count, MT_VARINT_MAX_BYTES);
    size_t i;

    if (!at)
        return;
    for (i = 0; i < encoder->gap_count; i++)
        at = mt_put_varint(at, encoder->gaps[i]);
    finish_column(out, MT_COLUMN_SEQ_GAPS, scratch, at);
}

void mt_columns_write(struct mt_encoder *encoder, struct mt_buf *out, struct mt_buf *scratch)
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
    write_sizes(encoder, out, scratch);
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
    write_gaps(encoder, out, scratch);
}
