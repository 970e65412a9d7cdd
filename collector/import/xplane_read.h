/* Extracts the memory events from the bytes of a profile, in order of time. For xplane.c. */
#ifndef MT_COLLECTOR_XPLANE_READ_H
#define MT_COLLECTOR_XPLANE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "symbols.h"

/* The wire format of protocol buffers (protobuf.dev, "Encoding"), read field by field from
 * memory. A message is a range of bytes; the caller knows what a field means. Nothing is copied,
 * nothing recurses, and no byte after the message is read.
 *
 *     struct mt_pb_reader reader = mt_pb_reader_of(bytes, length);
 *     while (mt_pb_next(&reader, &field)) ...
 *     if (reader.failed) the message is truncated or damaged at reader.at */

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

/* Takes the first number of a packed list. Returns false if it is damaged. O(1). */
bool mt_pb_take_varint(struct mt_pb_bytes *list, uint64_t *value);

/* One MemoryAllocation or MemoryDeallocation of a GPU's arena, or of host memory if the profile
 * has no GPU. */
struct mt_xplane_record {
    uint64_t t_ns;  /* since the profile's start, or Unix time; t_ps adds a fraction */
    uint32_t t_ps;  /* picoseconds in addition to t_ns */
    uint64_t order; /* position in the file */
    uint64_t addr, requested_bytes, chunk_bytes;
    uint64_t in_use_bytes; /* of the arena, after this event */
    uint64_t limit_bytes;  /* limit of the arena */
    uint32_t operation;    /* string id: TensorFlow's current operation, or MT_NO_ID */
    uint16_t device, thread;
    bool is_free, is_host;
};

struct mt_xplane_records {
    struct mt_symbols *symbols; /* borrowed; receives operations and threads */
    struct mt_xplane_record *list;
    size_t count, capacity;
    size_t of_gpus;      /* records of GPUs */
    uint64_t start_t_ns; /* Unix time of the profile's start, 0 = not known */
    uint64_t invalid;    /* number of impossible memory events */
};

/* Returns MT_ERR_FORMAT if the bytes are not a profile; *at is the offset. Release the records in
 * any case. */
enum mt_status mt_xplane_read(struct mt_pb_bytes profile, struct mt_xplane_records *records,
                              const uint8_t **at) MT_MUST_USE;
void mt_xplane_records_release(struct mt_xplane_records *records);

#endif
