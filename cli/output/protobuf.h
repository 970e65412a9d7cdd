/* Writes messages of protocol buffers: protobuf.dev/programming-guides/encoding. */
#ifndef MT_CLI_PROTOBUF_H
#define MT_CLI_PROTOBUF_H

#include "buf.h"

void mt_protobuf_add_varint(struct mt_buf *out, uint64_t value);

/* Adds a field with a number, a truth value or a member of an enum. */
void mt_protobuf_add_number(struct mt_buf *out, unsigned field, uint64_t value);

/* Adds a field with a message, packed numbers or bytes. */
void mt_protobuf_add_message(struct mt_buf *out, unsigned field, const struct mt_buf *message);

/* Adds a field with a text from elsewhere, which becomes valid UTF-8 (foreign_text.h). */
void mt_protobuf_add_text(struct mt_buf *out, unsigned field, const char *text);

#endif
