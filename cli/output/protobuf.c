#include "protobuf.h"

#include <string.h>

#include "foreign_text.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_BITS = 3 };

void mt_protobuf_add_varint(struct mt_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        mt_buf_add_char(out, (char)(value | 0x80));
    mt_buf_add_char(out, (char)value);
}

void mt_protobuf_add_number(struct mt_buf *out, unsigned field, uint64_t value)
{
    mt_protobuf_add_varint(out, field << WIRE_BITS | WIRE_VARINT);
    mt_protobuf_add_varint(out, value);
}

void mt_protobuf_add_message(struct mt_buf *out, unsigned field, const struct mt_buf *message)
{
    mt_protobuf_add_varint(out, field << WIRE_BITS | WIRE_BYTES);
    mt_protobuf_add_varint(out, message->length);
    mt_buf_add(out, message->data, message->length);
}

void mt_protobuf_add_text(struct mt_buf *out, unsigned field, const char *text)
{
    struct mt_buf clean = {0};

    mt_buf_add_printable(&clean, text, strlen(text));
    mt_protobuf_add_message(out, field, &clean);
    mt_buf_release(&clean);
}
