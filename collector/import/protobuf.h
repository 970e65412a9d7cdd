/* The wire format of protocol buffers (protobuf.dev, "Encoding"), read field by field from memory.
 * A message is a run of bytes; what a field means is the caller's to know. Nothing is copied,
 * nothing recurses, no byte behind the message is read.
 *
 *     struct mt_pb_reader reader = mt_pb_reader_of(bytes, length);
 *     while (mt_pb_next(&reader, &field)) ...
 *     if (reader.failed) the message is cut or damaged at reader.at
 */
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
    MT_PB_VARINT, /* number: as it stands; int64 as its two's complement */
    MT_PB_FIXED,  /* number: 4 or 8 bytes, such as the bits of a double */
    MT_PB_BYTES   /* bytes: a message, a text */
};

struct mt_pb_field {
    uint32_t number; /* of the field: 1 and more */
    enum mt_pb_kind kind;
    uint64_t value; /* of VARINT and FIXED */
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

/* The next field; false at the end, and with `failed` where the bytes are no field. Groups, which
 * were given up long ago, are no field. O(1). */
bool mt_pb_next(struct mt_pb_reader *reader, struct mt_pb_field *field);

#endif
