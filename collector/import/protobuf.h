/* The wire format of protocol buffers (protobuf.dev, "Encoding"), read field by field from
 * memory. A message is a range of bytes; the caller knows what a field means. Nothing is copied,
 * nothing recurses, and no byte after the message is read.
 *
 *     struct mt_pb_reader reader = mt_pb_reader_of(bytes, length);
 *     while (mt_pb_next(&reader, &field)) ...
 *     if (reader.failed) the message is truncated or damaged at reader.at */
#ifndef MT_COLLECTOR_PROTOBUF_H
#define MT_COLLECTOR_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_pb_bytes {
    const uint8_t *at; /* borrowed */
    size_t length;
};

enum mt_pb_kind {
    MT_PB_VARINT, /* number: the raw value; int64 is two's complement */
    MT_PB_FIXED,  /* number: 4 or 8 bytes, such as the bits of a double */
    MT_PB_BYTES   /* bytes: a message, a text */
};

struct mt_pb_field {
    uint32_t number; /* of the field, at least 1 */
    enum mt_pb_kind kind;
    uint64_t value; /* if VARINT or FIXED */
    struct mt_pb_bytes bytes;
};

struct mt_pb_reader {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct mt_pb_reader mt_pb_reader_of(struct mt_pb_bytes message)
{
    return (struct mt_pb_reader){message.at, message.at + message.length, false};
}

/* Reads the next field. Returns false at the end, and sets `failed` if the bytes are not a field.
 * Groups (deprecated) count as damage. O(1). */
bool mt_pb_next(struct mt_pb_reader *reader, struct mt_pb_field *field);

#endif
