#include "protobuf.h"

/* A varint has at most ten bytes of seven bits; the tenth holds one. */
static bool read_varint(struct mt_pb_reader *reader, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;

        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(struct mt_pb_reader *reader, size_t length, uint64_t *value)
{
    *value = 0;
    if ((size_t)(reader->end - reader->at) < length)
        return false;
    for (size_t i = 0; i < length; i++)
        *value |= (uint64_t)*reader->at++ << (8 * i);
    return true;
}

static bool read_bytes(struct mt_pb_reader *reader, struct mt_pb_bytes *bytes)
{
    uint64_t length;

    if (!read_varint(reader, &length) || length > (size_t)(reader->end - reader->at))
        return false;
    *bytes = (struct mt_pb_bytes){reader->at, (size_t)length};
    reader->at += length;
    return true;
}

static bool read_value(struct mt_pb_reader *reader, unsigned wire_type, struct mt_pb_field *field)
{
    switch (wire_type) {
    case 0: field->kind = MT_PB_VARINT; return read_varint(reader, &field->value);
    case 1: field->kind = MT_PB_FIXED; return read_fixed(reader, 8, &field->value);
    case 2: field->kind = MT_PB_BYTES; return read_bytes(reader, &field->bytes);
    case 5: field->kind = MT_PB_FIXED; return read_fixed(reader, 4, &field->value);
    default: return false;
    }
}

bool mt_pb_next(struct mt_pb_reader *reader, struct mt_pb_field *field)
{
    const uint8_t *begin = reader->at;
    uint64_t tag;

    *field = (struct mt_pb_field){0};
    if (reader->failed || reader->at == reader->end)
        return false;
    if (read_varint(reader, &tag) && tag >> 3 && tag >> 3 <= UINT32_MAX) {
        field->number = (uint32_t)(tag >> 3);
        if (read_value(reader, tag & 7, field))
            return true;
    }
    reader->at = begin;
    reader->failed = true;
    return false;
}
